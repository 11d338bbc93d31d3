import { describe, expect, test } from "vitest";
import { gpt } from "../dev/fixture";
import { afterRows, afterText, beforeRows, hunks, merge } from "../src/diff";
import { operation, tokens, wrap } from "../src/mlir";
import type { Change } from "../src/model";

/** Edits a text at random and says what it did, as text.diff does. */
function edited(seed: number): { before: string[]; after: string[]; changes: Change[] } {
  let s = seed;
  const next = (n: number): number => {
    s = (Math.imul(s, 1103515245) + 12345) >>> 0;
    return (s >>> 8) % n;
  };
  const before = Array.from({ length: 5 + next(30) }, (_, i) => `%${i} = op${next(4)}`);
  const after: string[] = [];
  const changes: Change[] = [];
  before.forEach((text, line) => {
    while (next(5) === 0) {
      const block = Array.from({ length: 1 + next(3) }, (_, k) => `added ${line}.${k}`);
      changes.push({ kind: "added", before: null, after: after.length, beforeText: null, afterText: block.join("\n") });
      after.push(...block);
    }
    const what = next(6);
    if (what === 0) changes.push({ kind: "removed", before: line, after: null, beforeText: text, afterText: null });
    else if (what === 1) {
      const now = `${text} changed`;
      changes.push({ kind: "changed", before: line, after: after.length, beforeText: text, afterText: now });
      after.push(now);
    } else after.push(text);
  });
  if (next(2) === 0) {
    changes.push({ kind: "added", before: null, after: after.length, beforeText: null, afterText: "last" });
    after.push("last");
  }
  return { before, after, changes };
}

describe("merge", () => {
  test.each(Array.from({ length: 60 }, (_, i) => i))("derives the text after random edits, seed %i", (seed) => {
    const { before, after, changes } = edited(seed);
    const lines = merge(before, [...changes].reverse());
    expect(afterText(lines)).toEqual(after);
    expect(lines.filter((line) => line.before !== null).map((line) => line.before)).toEqual(before.map((_, i) => i));
    expect(lines.filter((line) => line.after !== null).map((line) => line.after)).toEqual(after.map((_, i) => i));
    expect(lines.filter((line) => line.kind !== "added").map((line) => line.old)).toEqual(before);
  });

  test("an operation that spans lines is removed and rewritten whole", () => {
    const before = ["a", "while {", "  body", "}", "z"];
    const changes: Change[] = [
      { kind: "changed", before: 1, after: 1, beforeText: "while {\n  body\n}", afterText: "for {\n  body\n  more\n}" },
    ];
    expect(afterText(merge(before, changes))).toEqual(["a", "for {", "  body", "  more", "}", "z"]);
  });

  test("no change leaves the text", () => {
    expect(afterText(merge(["a", "b"], []))).toEqual(["a", "b"]);
  });
});

describe("rows", () => {
  const { traits } = gpt();
  const before = traits.ir.split("\n");
  const lines = merge(before, traits.state.changes);

  test("a signature shows one argument a row, its number once", () => {
    const rows = beforeRows(lines).filter((row) => row.before === 1);
    expect(rows.filter((row) => row.head)).toHaveLength(1);
    expect(rows.filter((row) => /%arg\d+:/.test(row.text))).toHaveLength(101);
    expect(rows.map((row) => row.text.trim()).join(" ")).toBe(before[1]!.trim());
  });

  test("one changed argument of a long signature is one removed and one added row", () => {
    const changed = before[1]!.replace(
      "%arg7: tensor<3072xf32>",
      "%arg7: tensor<3072xf32> {tf.aliasing_output = 7 : i32}",
    );
    const change: Change = { kind: "changed", before: 1, after: 1, beforeText: before[1]!, afterText: changed };
    const found = hunks(merge(before, [change]), new Set()).filter(
      (row) => row.kind === "removed" || row.kind === "added",
    );
    expect(found.map((row) => [row.kind, row.text.trim()])).toEqual([
      ["removed", "%arg7: tensor<3072xf32>,"],
      ["added", "%arg7: tensor<3072xf32> {tf.aliasing_output = 7 : i32},"],
    ]);
  });

  test("hunks keep context and fold the rest; every line is shown or counted once", () => {
    const rows = hunks(lines, new Set());
    expect(rows[0]).toMatchObject({ kind: "fold" });
    expect(rows.length).toBeLessThan(120);
    const shown = rows.filter((row) => row.kind !== "fold" && row.head && row.before !== null).length;
    const folded = rows.reduce((n, row) => n + row.hidden, 0);
    expect(shown + folded).toBe(before.length);
    const added = rows.findIndex((row) => row.kind === "added");
    expect(rows.slice(added - 3, added).map((row) => row.kind)).toEqual(["same", "same", "same"]);
  });

  test("the IR before has the text that the pass was given, not what was sent once", () => {
    const beforeText = "    return %a, %b";
    const change: Change = { kind: "changed", before: 2, after: 2, beforeText, afterText: "    return %c" };
    expect(beforeRows(merge(["x", "y", "z"], [change])).map((row) => row.text)).toEqual(["x", "y", beforeText]);
  });

  test("a signature that changes everywhere is folded in the middle", () => {
    const changed = before[1]!.replaceAll(/(%arg\d+: tensor<[^>]*>)/g, "$1 {tf.aliasing_output = 0 : i32}");
    const change: Change = { kind: "changed", before: 1, after: 1, beforeText: before[1]!, afterText: changed };
    const rows = hunks(merge(before, [change]), new Set());
    expect(rows.map((row) => row.kind).slice(1, 18)).toEqual([
      ...["removed", "removed", "removed", "removed", "removed", "removed", "fold", "removed"],
      ...["added", "added", "added", "added", "added", "added", "fold", "added"],
      "same",
    ]);
    expect(rows[7]).toMatchObject({ hidden: 101 - 7, unit: "row" });
    expect(hunks(merge(before, [change]), new Set([rows[7]!.at])).length).toBe(rows.length + 101 - 8);
  });

  test("an opened fold shows its rows", () => {
    const fold = hunks(lines, new Set())[0]!;
    expect(hunks(lines, new Set([fold.at])).length).toBeGreaterThan(before.length);
  });

  test("the IR after has no removed row and marks what is new", () => {
    const rows = afterRows(lines);
    expect(rows.some((row) => row.kind === "removed")).toBe(false);
    expect(
      rows.filter((row) => row.text.includes("materialize_in_destination")).every((row) => row.kind === "added"),
    ).toBe(true);
    expect(new Set(rows.map((row) => row.after)).size).toBe(afterText(lines).length);
  });
});

describe("mlir", () => {
  const line = '  %0:2 = stablehlo.while(%arg1 = %c) {x = "a, b"} : tensor<4x?xbf16>, tensor<i32> // note';
  test("tokens are classed by their kind and never overlap", () => {
    const found = tokens(line).map((t) => [t.class, line.slice(t.start, t.end)]);
    expect(found).toContainEqual(["value", "%0"]);
    expect(found).toContainEqual(["op", "stablehlo.while"]);
    expect(found).toContainEqual(["string", '"a, b"']);
    expect(found).toContainEqual(["type", "tensor"]);
    expect(found).toContainEqual(["comment", "// note"]);
    let end = 0;
    for (const token of tokens(line)) {
      expect(token.start).toBeGreaterThanOrEqual(end);
      end = token.end;
    }
  });

  test("commas inside braces, types, strings and regions of attributes do not break a line", () => {
    const one = `func.func @main(%arg0: tensor<2xf32> {a = "x, y", b = 1 : i32}, %arg1: tensor<2xf32>) -> (tensor<2xf32>, ${"tensor<2x3x4xf32>, ".repeat(9)}f32)`;
    const rows = wrap(one);
    expect(rows[0]).toContain("b = 1 : i32},");
    expect(rows[1]!.trim()).toBe("%arg1: tensor<2xf32>) -> (tensor<2xf32>,");
    expect(rows.map((row) => row.trim()).join(" ")).toBe(one);
  });

  test.each([
    ["    %4:2 = stablehlo.while(%iterArg = %c) : tensor<i32>", "while"],
    ["    %5 = func.call @f(%arg0) : () -> ()", "func.call"],
    ['    %5 = "stablehlo.custom"(%arg0) : () -> ()', "custom"],
    ["    return %3 : tensor<f32>", ""],
    ["  func.func public @main(%arg0: tensor<f32> {a = 1 : i32}) {", ""],
  ])("the operation of %j is %j", (line, name) => {
    expect(operation(line)).toBe(name);
  });

  test("a short line is one row", () => {
    expect(wrap("  return %0, %1, %2 : i32, i32, i32")).toHaveLength(1);
  });
});
