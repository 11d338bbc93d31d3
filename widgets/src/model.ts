/** The synced traits, as payload.py makes them. Nothing here is computed in the browser. */

import type { AnyModel } from "@anywidget/types";

export type Severity = "note" | "warning" | "error";
export type Verdict = "aliased" | "donor" | "unusable" | "unused" | "not donated";
export type VariantName = "none" | "jax" | "pass";

/** Flat arguments in JAX's order, one entry a leaf in every list. */
export interface Arguments {
  path: string[];
  label: string[];
  nbytes: (number | null)[];
  perDevice: (number | null)[];
  /** Index into `Program.wholes`. */
  whole: number[];
  /** JAX dropped the leaf because nothing reads it. */
  dropped: boolean[];
}

export interface Whole {
  name: string;
  togglable: boolean;
  hint: string;
}

export interface Message {
  severity: Severity;
  text: string;
}

/** What donation never changes; sent once. */
export interface Program {
  name: string;
  versions: Record<string, string>;
  platform: string;
  operations: number;
  lines: number;
  arguments: Arguments;
  wholes: Whole[];
  results: { path: string[]; label: string[]; nbytes: (number | null)[] };
  /** Newline-joined, one entry a live range. */
  rangeNames: string;
  rangeSources: string;
  kinds: string[];
  multiDevice: boolean;
  notes: Message[];
}

/** One operation that the pass added, removed or rewrote; lines are 0-based. */
export interface Change {
  kind: "added" | "removed" | "changed";
  before: number | null;
  after: number | null;
  beforeText: string | null;
  afterText: string | null;
}

/** What one set of donated arguments gives; sent again after every toggle. */
export interface State {
  revision: number;
  headline: { text: string; strong: boolean }[];
  sub: string;
  fix: string | null;
  donated: number[];
  verdicts: Verdict[];
  results: (number | null)[];
  reasons: string[];
  candidates: number[];
  /** [argument leaf, result] made by the pass. */
  pairs: [number, number][];
  diagnostics: Message[];
  peak: { bytes: number; at: number };
  unknown: number;
  changes: Change[];
  pipeline: string;
  error: { text: string } | null;
}

export interface Compiled {
  name: VariantName;
  argument: number | null;
  output: number | null;
  alias: number | null;
  temp: number | null;
  total: number | null;
  seconds: number | null;
  error: string | null;
}

export interface Comparison {
  revision: number;
  target: string;
  note: string;
  variants: Compiled[];
  sentence: string;
}

export interface Measured {
  name: VariantName;
  peak: number | null;
  spread: number | null;
  predicted: number | null;
  seconds: number | null;
  status: string;
  error: string | null;
}

export interface Measurement {
  revision: number;
  variants: Measured[];
  outputsEqual: boolean | null;
  sentence: string;
}

export interface Job {
  kind: "" | "compare" | "measure";
  running: boolean;
  step: number;
  steps: number;
  label: string;
  error: string | null;
}

export interface Traits extends Record<string, unknown> {
  program: Program;
  ir: string;
  /** int32, n each: [start][kind][line in `ir`, -1 none][argument leaf, -1 none]. */
  ranges: DataView;
  /** float64[n]; NaN is unknown. */
  range_bytes: DataView;
  state: State;
  /** float64[operations]. */
  curve: DataView;
  baseline_curve: DataView;
  /** int32[n], inclusive. */
  ends: DataView;
  comparison: Comparison | null;
  measurement: Measurement | null;
  job: Job;
}

export type Request =
  | { type: "donate"; whole: number; donate: boolean }
  | { type: "compare" }
  | { type: "measure" }
  | { type: "cancel" };

export type Model = AnyModel<Traits>;
