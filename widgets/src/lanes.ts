/** Live ranges packed into lanes, largest first; what finds no room is added up instead of drawn over. */

import type { Ranges } from "./decode";

export interface Lanes {
  /** Lane of each range, -1 where it is in `rest`. */
  lane: Int16Array;
  /** Lanes in use, ordered by their first range. */
  used: number;
  /** Ranges of each lane. */
  members: number[][];
  /** Ranges without a lane. */
  rest: number[];
}

/** Ranges by bytes, largest first; unknown sizes last. */
export function bySize(bytes: Float64Array): Int32Array {
  const order = Int32Array.from(bytes.keys());
  const size = (i: number): number => (Number.isNaN(bytes[i]!) ? -1 : bytes[i]!);
  return order.sort((a, b) => size(b) - size(a) || a - b);
}

const BINS = 1024;

/**
 * First fit over `BINS` steps of the program. Arguments take at most half of the lanes, so that what the program makes
 * stays on show; ranges below `floor` bytes are left to `rest`.
 */
export function lanes(
  ranges: Ranges,
  ends: Int32Array,
  order: Int32Array,
  operations: number,
  most: number,
  floor: number,
): Lanes {
  const bins = Math.max(1, Math.min(BINS, operations));
  const scale = bins / Math.max(1, operations);
  const taken = new Uint8Array(most * bins);
  const lane = new Int16Array(ranges.n).fill(-1);
  const members: number[][] = [];
  const rest: number[] = [];
  const forArguments = Math.ceil(most / 2);
  for (const i of order) {
    const from = Math.min(bins - 1, Math.floor(Math.max(0, ranges.start[i]!) * scale));
    const to = Math.min(bins - 1, Math.floor(Math.max(0, ends[i]!) * scale));
    const limit = ranges.leaf[i]! >= 0 ? forArguments : most;
    let found = -1;
    if (!(ranges.bytes[i]! < floor)) {
      for (let k = 0; k < limit && found < 0; k++) {
        const at = taken.indexOf(1, k * bins + from);
        if (at < 0 || at > k * bins + to) found = k;
      }
    }
    if (found < 0) {
      rest.push(i);
      continue;
    }
    taken.fill(1, found * bins + from, found * bins + to + 1);
    const mates = members[found];
    if (mates) mates.push(i);
    else members[found] = [i];
  }
  const first = (list: number[]): number => Math.min(...list.map((i) => ranges.start[i]! * ranges.n + i));
  const sorted = members.map((list) => ({ list, first: first(list) })).sort((a, b) => a.first - b.first);
  sorted.forEach(({ list }, k) => {
    for (const i of list) lane[i] = k;
  });
  return { lane, used: sorted.length, members: sorted.map(({ list }) => list), rest };
}

export interface Rest {
  /** Bytes live at each operation, one column a kind. */
  byKind: Float64Array[];
  /** Largest sum of the kinds. */
  most: number;
}

/** What the ranges without a lane hold together. */
export function restCurve(
  ranges: Ranges,
  ends: Int32Array,
  rest: readonly number[],
  kinds: number,
  operations: number,
): Rest {
  const byKind = Array.from({ length: kinds }, () => new Float64Array(operations + 1));
  for (const i of rest) {
    const size = ranges.bytes[i]!;
    const column = byKind[ranges.kind[i]!];
    if (Number.isNaN(size) || !column) continue;
    column[Math.max(0, ranges.start[i]!)]! += size;
    column[Math.min(operations, ends[i]! + 1)]! -= size;
  }
  let most = 0;
  const running = new Float64Array(kinds);
  for (let op = 0; op < operations; op++) {
    let sum = 0;
    byKind.forEach((column, kind) => {
      running[kind]! += column[op]!;
      column[op] = running[kind]!;
      sum += running[kind]!;
    });
    most = Math.max(most, sum);
  }
  return { byKind, most };
}

export interface Live {
  /** Live at the operation, largest first. */
  indices: number[];
  unknown: number;
}

/** Who is live while operation `op` runs. */
export function liveAt(ranges: Ranges, ends: Int32Array, order: Int32Array, op: number): Live {
  const indices: number[] = [];
  let unknown = 0;
  for (const i of order) {
    if (ranges.start[i]! > op || ends[i]! < op) continue;
    indices.push(i);
    if (Number.isNaN(ranges.bytes[i]!)) unknown++;
  }
  return { indices, unknown };
}
