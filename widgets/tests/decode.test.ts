import { expect, test } from "vitest";
import { allEnds, float64, int32, lowered, ranges } from "../src/decode";

function shifted(data: ArrayBuffer, by: number): DataView {
  const buffer = new ArrayBuffer(data.byteLength + by);
  new Uint8Array(buffer, by).set(new Uint8Array(data));
  return new DataView(buffer, by, data.byteLength);
}

const integers = Int32Array.of(1, -1, 2 ** 31 - 1, 0);
const doubles = Float64Array.of(1.5, Number.NaN, 3e15);

test.each([0, 1, 2, 3, 4, 7])("columns are read from byte offset %i", (by) => {
  expect(int32(shifted(integers.buffer, by), "x")).toEqual(integers);
  expect(float64(shifted(doubles.buffer, by), "x")).toEqual(doubles);
});

test("an aligned column is not copied", () => {
  const view = shifted(integers.buffer, 8);
  expect(int32(view, "x").buffer).toBe(view.buffer);
});

test("a column cut short is refused by name", () => {
  expect(() => int32(new DataView(new ArrayBuffer(6)), "ends")).toThrow("ends: 6 bytes are no multiple of 4");
});

test("ranges are five columns, with names and sources beside them", () => {
  const columns = Int32Array.of(0, 0, 3, 0, 0, 2, 1, 1, 4, 1, 0, -1, 5, 5, 4);
  const found = ranges(columns.buffer, Float64Array.of(8, 16, Number.NaN).buffer, "a\nb\n%0", "\n\nf.py:4");
  expect([...found.start]).toEqual([0, 0, 3]);
  expect([...found.kind]).toEqual([0, 0, 2]);
  expect([...found.line]).toEqual([1, 1, 4]);
  expect([...found.leaf]).toEqual([1, 0, -1]);
  expect([...found.end]).toEqual([5, 5, 4]);
  expect([...allEnds(found, Int32Array.of(2, 5).buffer)]).toEqual([2, 5, 4]);
  expect(found.names).toEqual(["a", "b", "%0"]);
  expect(found.sources[2]).toBe("f.py:4");
  expect(found.ofLeaf.get(1)).toBe(0);
  expect(found.ofLeaf.get(0)).toBe(1);
});

test("the curve is the baseline less what is freed, from each step to the next", () => {
  const baseline = Float64Array.of(9, 9, 8, 7, 9);
  expect([...lowered(baseline, Float64Array.of(1, 3, 2, 5).buffer)]).toEqual([9, 7, 6, 2, 4]);
  expect([...lowered(baseline, new ArrayBuffer(0))]).toEqual([...baseline]);
  expect([...baseline]).toEqual([9, 9, 8, 7, 9]);
});

test("columns and sizes of unequal length are refused", () => {
  expect(() => ranges(Int32Array.of(0, 0, 0).buffer, Float64Array.of(1).buffer, "a", "")).toThrow(
    "3 integers for 1 ranges",
  );
});

test("a program without values has no names", () => {
  const found = ranges(new ArrayBuffer(0), new ArrayBuffer(0), "", "");
  expect(found.n).toBe(0);
  expect(found.names).toEqual([]);
});
