/** The synced traits, as payload.py makes them. Nothing here is computed in the browser. */

import type { AnyModel } from "@anywidget/types";

export type Severity = "note" | "warning" | "error";
export type Verdict = "aliased" | "aliased, saves nothing" | "donor" | "unusable" | "unused" | "not donated";
/** What the user's own call made of a donated argument's buffer. */
export type Reuse = "reused" | "freed" | "alive" | "unknown";
export type VariantName = "none" | "jax" | "pass";

/** A piece of a sentence; the strong ones carry the numbers that matter. */
export interface Part {
  text: string;
  strong: boolean;
}

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

/** A device that the program can be compiled for. */
export interface Target {
  name: string;
  device: string;
  /** Bytes of one device. */
  capacity: number | null;
  available: boolean;
  whyNot: string;
  /** It can be run in this process; otherwise it is compiled, not run. */
  here: boolean;
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
  /** `path` is a noun, as in the reasons: "the updated params['w']". */
  results: { path: string[]; label: string[]; nbytes: (number | null)[] };
  /** Newline-joined, one entry a live range. */
  rangeNames: string;
  rangeSources: string;
  kinds: string[];
  multiDevice: boolean;
  notes: Message[];
  available: Target[];
  /** Every class of bytes at a peak, in the order of a bar. */
  classes: string[];
}

/** One operation that the pass added, removed or rewrote; lines are 0-based. */
export interface Change {
  kind: "added" | "removed" | "changed";
  before: number | null;
  after: number | null;
  beforeText: string | null;
  afterText: string | null;
}

/** The user's own call, run once; one entry a leaf, null where it is not donated. */
export interface Verified {
  outcomes: (Reuse | null)[];
  /** Why it was not reused. */
  reasons: string[];
  sentence: string;
}

/** What one set of donated arguments gives; sent again after every toggle. */
export interface State {
  revision: number;
  headline: Part[];
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
  /** Null where the call was not verified with this set. */
  verified: Verified | null;
  error: { text: string } | null;
}

/** A buffer that is live at the peak. */
export interface Contributor {
  class: string;
  /** The argument's path, or the operation in the user's words. */
  label: string;
  type: string;
  bytes: number;
  /** Innermost line of the user's, "" where there is none. */
  source: string;
  stack: string[];
  opName: string;
  instruction: string;
  /** Times of the schedule, both included; null where the bytes hold no value. */
  start: number | null;
  end: number | null;
}

/** An aliased argument that costs copies. */
export interface Copied {
  argument: string;
  result: string;
  /** Of all its copies. */
  bytes: number;
  /** What still reads the argument's old value, where, and what XLA does about it. */
  sentence: string;
  /** What would avoid it. */
  advice: string;
}

export interface Space {
  name: string;
  peak: number;
  reserved: number;
}

/** XLA's own buffers of one compiled module, over the main memory of one device. */
export interface Buffers {
  /** Length of the schedule. */
  steps: number;
  peak: number;
  peakAt: number;
  peakInstruction: string;
  sentence: Part[];
  /** What the runtime takes for the whole call. */
  reserved: number;
  constant: number;
  padding: number | null;
  fragmentation: number | null;
  classes: { name: string; bytes: number }[];
  /** Most bytes first. */
  contributors: Contributor[];
  more: { count: number; bytes: number };
  /** Those that save nothing first. */
  copies: Copied[];
  moreCopies: { count: number; bytes: number };
  spaces: Space[];
  /** How many times `xla_curves` has of it, the peak among them. */
  points: number;
  /** Newline-joined, one instruction a point. */
  instructions: string;
}

export interface Compiled {
  name: VariantName;
  argument: number | null;
  output: number | null;
  alias: number | null;
  temp: number | null;
  total: number | null;
  seconds: number | null;
  status: string;
  error: string | null;
  fits: boolean | null;
  /** Bytes beyond the device's capacity. */
  over: number | null;
  /** Index into `Comparison.buffers`; null where they are unknown, `buffersError` says why. */
  buffers: number | null;
  buffersError: string | null;
}

/** One variant on one target. */
export interface TargetRow {
  target: string;
  here: boolean;
  capacity: number | null;
  variant: VariantName;
  total: number | null;
  saved: number | null;
  fits: boolean | null;
  over: number | null;
  status: string;
}

export interface Comparison {
  revision: number;
  target: string;
  /** False: compiled, not run. */
  here: boolean;
  capacity: number | null;
  note: string;
  variants: Compiled[];
  /** Equal variants share one entry. */
  buffers: Buffers[];
  /** Every target that this donation was compared for. */
  targets: TargetRow[];
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
  /** int32, n each: [start][kind][line in `ir`, -1 none][argument leaf, -1 none][end with nothing donated, inclusive]. */
  ranges: DataView;
  /** float64[n]; NaN is unknown. */
  range_bytes: DataView;
  state: State;
  /** float64[operations]: with nothing donated. */
  baseline_curve: DataView;
  /** float64, as many each: [operation from which on][bytes below the baseline]. */
  freed: DataView;
  /** int32, inclusive: of the program's arguments, which are the first ranges; donation changes no other. */
  ends: DataView;
  comparison: Comparison | null;
  /** For each of `comparison.buffers`, float64, n points each: [time][needed][held]. */
  xla_curves: DataView;
  measurement: Measurement | null;
  job: Job;
}

export type Request =
  | { type: "donate"; whole: number; donate: boolean }
  | { type: "compare"; target: string | null }
  | { type: "measure" }
  | { type: "cancel" };

export type Model = AnyModel<Traits>;
