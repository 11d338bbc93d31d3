import { expect, test } from "vitest";
import { highest, pointAt, type Trace, timeAt } from "../src/curves";
import { scheduleCurves } from "../src/decode";

test.each([
  [0, 0],
  [3, 0],
  [4, 1],
  [9, 2],
  [1000, 2],
])("time %i is told by point %i", (time, point) => {
  expect(pointAt(Float64Array.of(0, 4, 9), time)).toBe(point);
});

test("a pixel is a time of the schedule, the edges are its ends", () => {
  expect(timeAt(572, 1000, 0)).toBe(0);
  expect(timeAt(572, 1000, 62 + 250)).toBe(500);
  expect(timeAt(572, 1000, 572)).toBe(999);
});

test("the axis goes up to what is shown", () => {
  const trace = { peak: 10, reserved: 25 } as Trace;
  expect(highest([trace], new Set(["held"]))).toBe(10);
  expect(highest([trace], new Set(["held", "reserved"]))).toBe(25);
});

test("the curves of several modules lie one after the other", () => {
  const columns = Float64Array.of(0, 1, 10, 11, 20, 21, 5, 6, 7);
  const [one, two] = scheduleCurves(columns.buffer, [
    { points: 2, instructions: "a\nb" },
    { points: 1, instructions: "c" },
  ]);
  expect([[...one!.times], [...one!.needed], [...one!.held], one!.instructions]).toEqual([
    [0, 1],
    [10, 11],
    [20, 21],
    ["a", "b"],
  ]);
  expect([[...two!.times], [...two!.needed], [...two!.held], two!.instructions]).toEqual([[5], [6], [7], ["c"]]);
});
