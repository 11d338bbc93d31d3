import { describe, expect, test } from "vitest";
import type { Fixture } from "../dev/fixture";
import { gpt, large } from "../dev/fixture";
import { allEnds, float64, lowered, type Ranges, ranges } from "../src/decode";
import { bySize, lanes, liveAt, restCurve } from "../src/lanes";

function decoded({ traits }: Fixture): { found: Ranges; ends: Int32Array; operations: number } {
  const { rangeNames, rangeSources, operations } = traits.program;
  const found = ranges(traits.ranges, traits.range_bytes, rangeNames, rangeSources);
  return { found, ends: allEnds(found, traits.ends), operations };
}

describe.each([
  ["gpt", gpt],
  ["large", large],
])("lanes of %s", (_, make) => {
  const { found, ends, operations } = decoded(make());
  const order = bySize(found.bytes);
  const packed = lanes(found, ends, order, operations, 48, 1000);

  test("every range has one lane or is in the rest", () => {
    const all = [...packed.members.flat(), ...packed.rest].sort((a, b) => a - b);
    expect(all).toEqual(Array.from({ length: found.n }, (_, i) => i));
    expect(packed.used).toBeLessThanOrEqual(48);
    packed.members.forEach((members, lane) => {
      for (const i of members) expect(packed.lane[i]).toBe(lane);
    });
  });

  test("no two ranges of a lane are live at once", () => {
    for (const members of packed.members) {
      const sorted = [...members].sort((a, b) => found.start[a]! - found.start[b]!);
      for (let k = 1; k < sorted.length; k++) {
        expect(ends[sorted[k - 1]!]!).toBeLessThan(found.start[sorted[k]!]!);
      }
    }
  });

  test("small ranges and surplus arguments are left to the rest", () => {
    for (const members of packed.members) for (const i of members) expect(found.bytes[i]!).toBeGreaterThanOrEqual(1000);
    const withArgument = packed.members.filter((members) => members.some((i) => found.leaf[i]! >= 0));
    expect(withArgument.length).toBeLessThanOrEqual(24);
  });

  test("the rest adds up at every operation", () => {
    const rest = restCurve(found, ends, packed.rest, 4, operations);
    for (const op of [0, 1, Math.floor(operations / 3), operations - 1]) {
      const sums = [0, 0, 0, 0];
      for (const i of packed.rest)
        if (found.start[i]! <= op && ends[i]! >= op) sums[found.kind[i]!]! += found.bytes[i]!;
      expect(rest.byKind.map((column) => column[op])).toEqual(sums);
      expect(rest.most).toBeGreaterThanOrEqual(sums.reduce((a, b) => a + b));
    }
  });

  test("who is live is everyone whose range holds the operation, largest first, and adds up to the curve", () => {
    const { traits } = make();
    const curve = lowered(float64(traits.baseline_curve, "baseline_curve"), traits.freed);
    for (const op of [0, 17, operations - 1]) {
      const { indices } = liveAt(found, ends, order, op);
      const expected = Array.from(found.bytes.keys()).filter((i) => found.start[i]! <= op && ends[i]! >= op);
      expect([...indices].sort((a, b) => a - b)).toEqual(expected);
      expect(indices.reduce((n, i) => n + found.bytes[i]!, 0)).toBe(curve[op]);
      for (let k = 1; k < indices.length; k++) {
        expect(found.bytes[indices[k - 1]!]!).toBeGreaterThanOrEqual(found.bytes[indices[k]!]!);
      }
    }
  });
});

test("unknown sizes come last and are counted, not added", () => {
  const columns = Int32Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, 1, 1, 1);
  const found = ranges(columns.buffer, Float64Array.of(Number.NaN, 4, 8).buffer, "a\nb\nc", "");
  const order = bySize(found.bytes);
  expect([...order]).toEqual([2, 1, 0]);
  expect(liveAt(found, Int32Array.of(1, 1, 1), order, 0)).toEqual({ indices: [2, 1, 0], unknown: 1 });
});
