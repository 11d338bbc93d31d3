/** Draws the memory curve over the packed live ranges, both on one time axis. One path a colour. */

import { FINER, ROUND, tick } from "./axis";
import type { Ranges } from "./decode";
import { bytes, count } from "./format";
import type { Lanes, Rest } from "./lanes";
import type { Palette } from "./theme";

export interface Scene {
  ranges: Ranges;
  ends: Int32Array;
  lanes: Lanes;
  rest: Rest;
  curve: Float64Array;
  baseline: Float64Array;
  operations: number;
  peak: { bytes: number; at: number };
  op: number;
  /** Range that is looked at, -1 for none. */
  range: number;
}

export interface Geometry {
  width: number;
  left: number;
  right: number;
  curveTop: number;
  curveHeight: number;
  lanesTop: number;
  laneHeight: number;
  lanesHeight: number;
  restTop: number;
  restHeight: number;
  height: number;
}

const LEFT = 62;
const RIGHT = 10;
const CURVE = 132;
const LANES_HEIGHT = 192;
const LANE = 10;
export const LANES_AT_MOST = 48;
const REST = 30;
const AXIS = 18;

/** Below this share of the peak the rest is told, not drawn: on a scale of its own it would look like something. */
const WORTH_DRAWING = 1 / 200;

/** The picture is as tall as `lanesUsed` lanes and the rest need. */
export function geometry(width: number, lanesUsed: number, scene: Scene): Geometry {
  const curveTop = 18;
  const lanesTop = curveTop + CURVE + 14;
  const laneHeight = Math.min(LANE, LANES_HEIGHT / Math.max(1, lanesUsed));
  const lanesHeight = Math.min(LANES_HEIGHT, LANE * Math.max(1, lanesUsed));
  const hasRest = scene.lanes.rest.length > 0;
  const restTop = lanesTop + lanesHeight + (hasRest ? 18 : 0);
  const restHeight = hasRest && scene.rest.most >= scene.peak.bytes * WORTH_DRAWING ? REST : 0;
  const height = restTop + restHeight + AXIS;
  return {
    width,
    left: LEFT,
    right: RIGHT,
    curveTop,
    curveHeight: CURVE,
    lanesTop,
    laneHeight,
    lanesHeight,
    restTop,
    restHeight,
    height,
  };
}

export function opAt(g: Geometry, operations: number, x: number): number {
  const at = Math.floor(((x - g.left) / (g.width - g.left - g.right)) * operations);
  return Math.max(0, Math.min(operations - 1, at));
}

/** Largest value of each pixel column. */
function columns(values: Float64Array, operations: number, width: number): Float64Array {
  const n = Math.max(1, Math.min(Math.floor(width), operations));
  const found = new Float64Array(n);
  for (let column = 0; column < n; column++) {
    const from = Math.floor((column * operations) / n);
    const to = Math.max(from + 1, Math.floor(((column + 1) * operations) / n));
    for (let op = from; op < to; op++) found[column] = Math.max(found[column]!, values[op] ?? 0);
  }
  return found;
}

export function draw(c: CanvasRenderingContext2D, g: Geometry, scene: Scene, colours: Palette): void {
  const { operations, curve, baseline, peak } = scene;
  const inner = g.width - g.left - g.right;
  const x = (op: number): number => g.left + (op / Math.max(1, operations)) * inner;
  let most = 1;
  for (let op = 0; op < operations; op++) most = Math.max(most, curve[op] ?? 0, baseline[op] ?? 0);
  const y = (value: number): number => g.curveTop + g.curveHeight * (1 - value / most);
  c.clearRect(0, 0, g.width, g.height);
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
    c.moveTo(g.left, at);
    c.lineTo(g.width - g.right, at);
    c.fillText(bytes(value), g.left - 8, at);
  }
  c.stroke();

  const trace = (values: Float64Array): void => {
    const steps = columns(values, operations, inner);
    steps.forEach((value, i) => {
      const from = g.left + (i / steps.length) * inner;
      if (i === 0) c.moveTo(from, y(value));
      else c.lineTo(from, y(value));
      c.lineTo(g.left + ((i + 1) / steps.length) * inner, y(value));
    });
  };
  c.beginPath();
  trace(curve);
  c.lineTo(g.width - g.right, y(0));
  c.lineTo(g.left, y(0));
  c.fillStyle = colours.accent;
  c.globalAlpha = 0.13;
  c.fill();
  c.globalAlpha = 1;
  c.beginPath();
  trace(baseline);
  c.strokeStyle = colours.muted;
  c.lineWidth = 1.25;
  c.setLineDash([4, 3]);
  c.stroke();
  c.setLineDash([]);
  c.beginPath();
  trace(curve);
  c.strokeStyle = colours.accent;
  c.lineWidth = 1.75;
  c.stroke();

  drawRanges(c, g, scene, colours, x);
  drawRest(c, g, scene, colours);

  c.fillStyle = colours.muted;
  c.textBaseline = "alphabetic";
  const opStep = Math.max(1, tick(operations, inner > 320 ? 5 : 3, ROUND));
  for (let op = 0; op <= operations; op += opStep) {
    c.textAlign = op === 0 ? "left" : x(op) > g.width - g.right - 20 ? "right" : "center";
    c.fillText(op === 0 ? "op 0" : count(op), x(op), g.height - 4);
  }

  const peakX = x(peak.at + 0.5);
  c.fillStyle = colours.peak;
  c.strokeStyle = colours.peak;
  c.beginPath();
  c.moveTo(peakX, y(peak.bytes));
  c.lineTo(peakX - 4, y(peak.bytes) - 7);
  c.lineTo(peakX + 4, y(peak.bytes) - 7);
  c.closePath();
  c.fill();
  const atRight = peakX > g.left + inner / 2;
  c.textAlign = atRight ? "right" : "left";
  c.font = "600 11px system-ui, sans-serif";
  c.fillText(`peak ${bytes(peak.bytes)}`, peakX + (atRight ? 4 : -4), 11);

  const cursorX = Math.round(x(scene.op + 0.5)) + 0.5;
  c.strokeStyle = colours.cursor;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(cursorX, g.curveTop);
  c.lineTo(cursorX, g.height - AXIS);
  c.stroke();
  c.fillStyle = colours.cursor;
  c.beginPath();
  c.arc(cursorX, y(curve[scene.op] ?? 0), 3, 0, 2 * Math.PI);
  c.fill();
}

function drawRanges(
  c: CanvasRenderingContext2D,
  g: Geometry,
  scene: Scene,
  colours: Palette,
  x: (op: number) => number,
): void {
  const { ranges, ends, lanes } = scene;
  const gap = g.laneHeight >= 6 ? 2 : 1;
  const box = (i: number): [number, number, number, number] => {
    const from = x(Math.max(0, ranges.start[i]!));
    const to = x(ends[i]! + 1);
    return [from, g.lanesTop + lanes.lane[i]! * g.laneHeight, Math.max(1, to - from - 0.5), g.laneHeight - gap];
  };
  colours.kinds.forEach((colour, kind) => {
    c.fillStyle = colour;
    c.beginPath();
    for (const members of lanes.members) for (const i of members) if (ranges.kind[i] === kind) c.rect(...box(i));
    c.fill();
  });
  if (scene.range >= 0 && lanes.lane[scene.range]! >= 0) {
    const [left, top, width, height] = box(scene.range);
    c.strokeStyle = colours.text;
    c.lineWidth = 1.5;
    c.strokeRect(left - 1, top - 1, width + 2, height + 2);
  }
}

/** What has no lane, as bytes over time, stacked by kind. */
function drawRest(c: CanvasRenderingContext2D, g: Geometry, scene: Scene, colours: Palette): void {
  const { lanes, operations } = scene;
  const { byKind, most } = scene.rest;
  if (lanes.rest.length === 0) return;
  const inner = g.width - g.left - g.right;
  const bottom = g.restTop + g.restHeight;
  c.fillStyle = colours.muted;
  c.textAlign = "left";
  c.textBaseline = "alphabetic";
  c.fillText(`${count(lanes.rest.length)} smaller values, at most ${bytes(most)}`, g.left, g.restTop - 4);
  if (g.restHeight === 0) return;
  const steps = byKind.map((values) => columns(values, operations, inner));
  const base = new Float64Array(steps[0]?.length ?? 0);
  steps.forEach((values, kind) => {
    c.fillStyle = colours.kinds[kind]!;
    c.beginPath();
    values.forEach((value, i) => {
      if (value === 0 || most === 0) return;
      const height = (value / most) * g.restHeight;
      c.rect(g.left + (i / values.length) * inner, bottom - base[i]! - height, inner / values.length, height);
      base[i] = base[i]! + height;
    });
    c.fill();
  });
}

/** The range under a point: one of a lane, or -1. */
export function rangeAt(g: Geometry, scene: Scene, px: number, py: number): number {
  const lane = Math.floor((py - g.lanesTop) / g.laneHeight);
  if (lane < 0 || py > g.lanesTop + g.lanesHeight) return -1;
  const op = opAt(g, scene.operations, px);
  const near = scene.operations / Math.max(1, g.width - g.left - g.right);
  const hit = (scene.lanes.members[lane] ?? []).filter(
    (i) => scene.ranges.start[i]! <= op + near && scene.ends[i]! >= op - near,
  );
  const exact = hit.find((i) => scene.ranges.start[i]! <= op && scene.ends[i]! >= op);
  return exact ?? hit[0] ?? -1;
}
