/** What one view of the widget looks at; never sent to the kernel. */

export type Tab = "before" | "after" | "diff";

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
}

/** Starts at the diff where there is one. */
export function viewState(tab: Tab): ViewState {
  return { open: new Set(), row: "", range: -1, op: null, tab, line: -1, unfolded: new Set() };
}
