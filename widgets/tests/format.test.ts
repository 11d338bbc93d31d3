import { expect, test } from "vitest";
import { bytes, count, place, plural, seconds } from "../src/format";
import parity from "./bytes.json";

// The table is what units.py prints, halves that Python rounds to even among it.
test.each(parity as [number | null, string][])("%s bytes are written as the Python side writes them", (n, text) => {
  expect(bytes(n)).toBe(text);
});

test("a size that is no number is unknown, never 0", () => {
  expect(bytes(Number.NaN)).toBe("unknown");
  expect(seconds(null)).toBe("unknown");
});

test("counts have thousands separators and the right number", () => {
  expect([0, 999, 1000, 3618, 1_234_567].map(count)).toEqual(["0", "999", "1,000", "3,618", "1,234,567"]);
  expect(plural(1, "leaf", "leaves")).toBe("1 leaf");
  expect(plural(1200, "leaf", "leaves")).toBe("1,200 leaves");
});

test("seconds keep three digits or so", () => {
  expect([0.0042, 0.388, 1.42, 24.31].map(seconds)).toEqual(["4.2 ms", "388 ms", "1.42 s", "24.3 s"]);
});

test.each([
  ["/home/me/model.py:41", "model.py:41"],
  ["/tmp/ipykernel_6019/2340954363.py:6", "cell:6"],
  ["model.py:41", "model.py:41"],
  ["", ""],
])("a source %j is shown as %j", (source, text) => {
  expect(place(source)).toBe(text);
});
