/** Draws what XLA needs, holds and reserves over its schedule, for several variants on one time axis. */

import { FINER, ROUND, tick } from "./axis";
import type { ScheduleCurves } from "./decode";
import { bytes, count } from "./format";
import type { VariantName } from "./model";
import type { Palette } from "./theme";
import type { CurveName } from "./viewstate";

export interface Trace {
  name: VariantName;
  label: string;
  curves: ScheduleCurves;
  steps: number;
  reserved: number;
  peak: number;
  peakAt: number;
}

export interface CurvesScene {
  traces: Trace[];
  kinds: ReadonlySet<CurveName>;
  /** The one whose peak is named and whose needed bytes are filled. */
  chosen: VariantName;
  /** Bytes of the device, null where they are unknown or far above everything drawn. */
  capacity: number | null;
  steps: number;
  time: number;
}

export const HEIGHT = 300;
const LEFT = 62;
const RIGHT = 10;
const TOP = 26;
const BOTTOM = 18;
/** Without colours the curves still differ: needed is dotted, reserved dashed. */
const DASHES: Record<CurveName, number[]> = { needed: [1.5, 2.5], held: [], reserved: [7, 4] };
const WIDTHS: Record<CurveName, number> = { needed: 1.25, held: 1.75, reserved: 1.25 };
/** A capacity of more than this many times the highest curve is not drawn: it would flatten everything. */
export const FAR = 1.6;

export function timeAt(width: number, steps: number, x: number): number {
  const at = Math.floor(((x - LEFT) / (width - LEFT - RIGHT)) * steps);
  return Math.max(0, Math.min(steps - 1, at));
}

/** The last point at or before a time. */
export function pointAt(times: Float64Array, time: number): number {
  let low = 0;
  let high = times.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle]! <= time) low = middle;
    else high = middle;
  }
  return low;
}

export function highest(traces: readonly Trace[], kinds: ReadonlySet<CurveName>): number {
  let most = 1;
  for (const { peak, reserved } of traces) most = Math.max(most, peak, kinds.has("reserved") ? reserved : 0);
  return most;
}

export function drawCurves(c: CanvasRenderingContext2D, width: number, scene: CurvesScene, colours: Palette): void {
  const { traces, kinds, chosen, capacity, steps, time } = scene;
  const right = width - RIGHT;
  const bottom = HEIGHT - BOTTOM;
  const most = Math.max(highest(traces, kinds), capacity ?? 0) * 1.02;
  const x = (at: number): number => LEFT + (at / Math.max(1, steps)) * (right - LEFT);
  const y = (value: number): number => TOP + (bottom - TOP) * (1 - value / most);
  c.clearRect(0, 0, width, HEIGHT);
  c.font = "11px system-ui, sans-serif";
  c.lineWidth = 1;
  c.strokeStyle = colours.grid;
  c.fillStyle = colours.muted;
  c.textAlign = "right";
  c.textBaseline = "middle";
  c.beginPath();
  const step = tick(most, 4, FINER);
  for (let value = 0; value <= most; value += step) {
    const at = Math.round(y(value)) + 0.5;
    c.moveTo(LEFT, at);
    c.lineTo(right, at);
    c.fillText(bytes(value), LEFT - 8, at);
  }
  c.stroke();
  c.textBaseline = "alphabetic";
  const timeStep = Math.max(1, tick(steps, right - LEFT > 320 ? 5 : 3, ROUND));
  for (let at = 0; at <= steps; at += timeStep) {
    c.textAlign = at === 0 ? "left" : x(at) > right - 20 ? "right" : "center";
    c.fillText(at === 0 ? "time 0" : count(at), x(at), HEIGHT - 4);
  }

  const trace = (curves: ScheduleCurves, values: Float64Array, end: number): void => {
    curves.times.forEach((from, i) => {
      const to = curves.times[i + 1] ?? end;
      if (i === 0) c.moveTo(x(from), y(values[i]!));
      else c.lineTo(x(from), y(values[i]!));
      c.lineTo(x(to), y(values[i]!));
    });
  };
  const ordered = [...traces].sort((a, b) => Number(a.name === chosen) - Number(b.name === chosen));
  for (const one of ordered) {
    const colour = colours.variants[one.name];
    if (one.name === chosen && kinds.has("needed")) {
      c.beginPath();
      trace(one.curves, one.curves.needed, one.steps);
      c.lineTo(x(one.steps), y(0));
      c.lineTo(x(0), y(0));
      c.globalAlpha = 0.12;
      c.fillStyle = colour;
      c.fill();
      c.globalAlpha = 1;
    }
    for (const kind of ["needed", "held", "reserved"] as const) {
      if (!kinds.has(kind)) continue;
      c.beginPath();
      if (kind === "reserved") {
        c.moveTo(LEFT, y(one.reserved));
        c.lineTo(x(one.steps), y(one.reserved));
      } else trace(one.curves, one.curves[kind], one.steps);
      c.strokeStyle = colour;
      c.lineWidth = WIDTHS[kind];
      c.setLineDash(DASHES[kind]);
      c.stroke();
    }
    c.setLineDash([]);
  }

  if (capacity !== null) {
    c.strokeStyle = colours.bad;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(LEFT, y(capacity));
    c.lineTo(right, y(capacity));
    c.stroke();
    c.fillStyle = colours.bad;
    c.textAlign = "right";
    c.fillText(`device ${bytes(capacity)}`, right, y(capacity) - 4);
  }
  for (const one of ordered) drawPeak(c, one, one.name === chosen, colours.variants[one.name], x, y);

  const cursor = Math.round(x(time + 0.5)) + 0.5;
  c.strokeStyle = colours.cursor;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(cursor, TOP - 8);
  c.lineTo(cursor, bottom);
  c.stroke();
  c.fillStyle = colours.cursor;
  for (const one of ordered) {
    if (time >= one.steps || !kinds.has("held")) continue;
    c.beginPath();
    c.arc(cursor, y(one.curves.held[pointAt(one.curves.times, time)] ?? 0), 3, 0, 2 * Math.PI);
    c.fill();
  }
}

function drawPeak(
  c: CanvasRenderingContext2D,
  one: Trace,
  named: boolean,
  colour: string,
  x: (at: number) => number,
  y: (value: number) => number,
): void {
  const [at, top] = [x(one.peakAt + 0.5), y(one.peak)];
  c.fillStyle = colour;
  c.beginPath();
  c.moveTo(at, top);
  c.lineTo(at - 4, top - 7);
  c.lineTo(at + 4, top - 7);
  c.closePath();
  c.fill();
  if (!named) return;
  const atRight = one.peakAt > one.steps / 2;
  c.textAlign = atRight ? "right" : "left";
  c.font = "600 11px system-ui, sans-serif";
  c.fillText(`${one.label} peak ${bytes(one.peak)}`, at + (atRight ? 4 : -4), 12);
  c.font = "11px system-ui, sans-serif";
}
