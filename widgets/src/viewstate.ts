/** What one view of the widget looks at; never sent to the kernel. */

import type { VariantName } from "./model";

export type Tab = "before" | "after" | "diff";

/** XLA's schedule, or the StableHLO's program order. */
export type Picture = "xla" | "program";

export type CurveName = "needed" | "held" | "reserved";

export interface ViewState {
  /** Rows of the tree that are open, by key. */
  open: Set<string>;
  /** Row of the tree that the keys move, by key. */
  row: string;
  /** Live range that is looked at, -1 for none. */
  range: number;
  /** Operation under the cursor; null stays at the peak. */
  op: number | null;
  tab: Tab;
  /** 0-based line of the IR before that is pointed at, -1 for none. */
  line: number;
  /** Folds of the diff that were opened. */
  unfolded: Set<number>;
  /** The compiled variant that is looked at. */
  variant: VariantName;
  /** null: XLA's schedule once it is known. */
  picture: Picture | null;
  /** Switched off in the legend of XLA's schedule. */
  hidden: Set<VariantName | CurveName>;
  /** Time of XLA's schedule under the cursor; null stays at the variant's peak. */
  time: number | null;
  /** The target that Compare asks for, null for the device here. */
  target: string | null;
}

/** Starts at the diff where there is one. */
export function viewState(tab: Tab): ViewState {
  return {
    open: new Set(),
    row: "",
    range: -1,
    op: null,
    tab,
    line: -1,
    unfolded: new Set(),
    variant: "jax",
    picture: null,
    hidden: new Set(),
    time: null,
    target: null,
  };
}
