/** The kernel's side as the views see it: decoded traits, requests on their way, and whether the kernel answers. */

import { allEnds, float64, lowered, type Ranges, ranges, type ScheduleCurves, scheduleCurves } from "./decode";
import type { Comparison, Job, Measurement, Model, Program, Request, State } from "./model";

export const PATIENCE_MS = 10_000;

const WATCHED = ["state", "freed", "ends", "comparison", "xla_curves", "measurement", "job"] as const;

export interface Synced {
  readonly program: Program;
  readonly ir: readonly string[];
  readonly ranges: Ranges;
  /** Bytes live at each operation with nothing donated. */
  readonly baseline: Float64Array;
  state(): State;
  curve(): Float64Array;
  ends(): Int32Array;
  comparison(): Comparison | null;
  /** One entry for each of the comparison's buffers. */
  schedules(): readonly ScheduleCurves[];
  measurement(): Measurement | null;
  job(): Job;
  /** What the user asked for and the kernel has not confirmed. */
  asked(whole: number): boolean | undefined;
  /** A compare or measure that was asked for and has not begun. */
  starting(): boolean;
  /** The kernel has been asked something and has said nothing for `PATIENCE_MS`. */
  silent(): boolean;
  send(request: Request): void;
  destroy(): void;
}

export function connect(model: Model, changed: () => void): Synced {
  const program = model.get("program");
  const decoded = ranges(model.get("ranges"), model.get("range_bytes"), program.rangeNames, program.rangeSources);
  const baseline = float64(model.get("baseline_curve"), "baseline_curve");
  const ir = model.get("ir").split("\n");
  const pending = new Map<number, { donate: boolean; revision: number }>();
  let curve = lowered(baseline, model.get("freed"));
  let ends = allEnds(decoded, model.get("ends"));
  let schedules: ScheduleCurves[] | null = null;
  let expected = model.get("state").revision;
  let starting = false;
  let silent = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let queued = false;
  let alive = true;

  const notify = (): void => {
    if (queued) return;
    queued = true;
    queueMicrotask(() => {
      queued = false;
      if (alive) changed();
    });
  };
  const answered = (): void => {
    silent = false;
    clearTimeout(timer);
    timer = pending.size > 0 || starting ? setTimeout(givenUp, PATIENCE_MS) : undefined;
  };
  /** The boxes fall back to what the kernel last said. */
  const givenUp = (): void => {
    timer = undefined;
    silent = true;
    starting = false;
    pending.clear();
    notify();
  };
  const settle = (): void => {
    const { revision, error } = model.get("state");
    expected = Math.max(expected, revision);
    for (const [whole, request] of pending) if (error || request.revision <= revision) pending.delete(whole);
  };
  const listeners = WATCHED.map((name) => {
    const listener = (): void => {
      if (name === "freed") curve = lowered(baseline, model.get("freed"));
      if (name === "ends") ends = allEnds(decoded, model.get("ends"));
      if (name === "comparison" || name === "xla_curves") schedules = null;
      if (name === "state") settle();
      if (name === "job") starting = false;
      answered();
      notify();
    };
    model.on(`change:${name}`, listener);
    return [name, listener] as const;
  });

  return {
    program,
    ir,
    ranges: decoded,
    baseline,
    state: () => model.get("state"),
    curve: () => curve,
    ends: () => ends,
    comparison: () => model.get("comparison"),
    schedules() {
      schedules ??= scheduleCurves(model.get("xla_curves"), model.get("comparison")?.buffers ?? []);
      return schedules;
    },
    measurement: () => model.get("measurement"),
    job: () => model.get("job"),
    asked: (whole) => pending.get(whole)?.donate,
    starting: () => starting,
    silent: () => silent,
    send(request) {
      if (request.type === "donate") {
        expected += 1;
        pending.set(request.whole, { donate: request.donate, revision: expected });
      }
      if (request.type === "compare" || request.type === "measure") starting = true;
      silent = false;
      timer ??= setTimeout(givenUp, PATIENCE_MS);
      model.send(request);
      notify();
    },
    destroy() {
      alive = false;
      clearTimeout(timer);
      for (const [name, listener] of listeners) model.off(`change:${name}`, listener);
    },
  };
}
