import { describe, expect, test } from "vitest";
import type { Arguments } from "../src/model";
import { segments, short } from "../src/paths";
import { chain, donated, type Node, total, tree, verdicts, visible } from "../src/tree";

describe("paths", () => {
  test.each([
    ["params['blocks'][0]['w']", ["params", "['blocks']", "[0]", "['w']"]],
    ["opt_state[0].mu['w']", ["opt_state", "[0]", ".mu", "['w']"]],
    ["model.layers[0].weight", ["model", ".layers", "[0]", ".weight"]],
    ["p['a.b'][\"it's\"]", ["p", "['a.b']", '["it\'s"]']],
    ["p['x]y']", ["p", "['x]y']"]],
    ["[<flat index 3>]", ["[<flat index 3>]"]],
    ["x", ["x"]],
    ["", []],
  ])("%s", (path, parts) => {
    expect(segments(path)).toEqual(parts);
    expect(segments(path).join("")).toBe(path);
  });

  test("a row's first key loses its brackets, indices and attributes keep theirs", () => {
    expect(short(["['qkv']", "['w']"])).toBe("qkv['w']");
    expect(short(["[0]", ".mu"])).toBe("[0].mu");
  });
});

function args(paths: string[], whole: number[]): Arguments {
  const n = paths.length;
  return {
    path: paths,
    label: paths.map(() => "f32[2]"),
    nbytes: paths.map(() => 8),
    perDevice: paths.map(() => 8),
    whole,
    dropped: Array.from({ length: n }, () => false),
  };
}
const wholes = (...names: string[]) => names.map((name) => ({ name, togglable: true, hint: "" }));
const outline = (nodes: readonly Node[]): unknown[] =>
  nodes.map((n) => (n.children.length > 0 ? [n.name, ...outline(n.children)] : n.name));

const paths = [
  "params['blocks'][0]['qkv']['w']",
  "params['blocks'][0]['out']['b']",
  "params['blocks'][0]['out']['w']",
  "params['emb']",
  "opt_state[0].count",
  "opt_state[0].mu['w']",
  "opt_state[0].mu['b']",
  "ids",
];
const roots = tree(args(paths, [0, 0, 0, 0, 1, 1, 1, 2]), wholes("params", "opt_state", "ids"));

describe("tree", () => {
  test("whole arguments are roots, groups of one share a row", () => {
    expect(outline(roots)).toEqual([
      ["params", ["blocks[0]", "qkv['w']", ["out", "b", "w"]], "emb"],
      ["opt_state", "[0].count", ["[0].mu", "w", "b"]],
      "ids",
    ]);
  });

  test("every leaf is in exactly one row, and its root holds it", () => {
    const found: number[] = [];
    const walk = (node: Node): void => {
      if (node.leaf !== null) found.push(node.leaf);
      node.children.forEach(walk);
    };
    roots.forEach(walk);
    expect(found.sort((a, b) => a - b)).toEqual(paths.map((_, i) => i));
    expect(roots.map((root) => root.leaves)).toEqual([[0, 1, 2, 3], [4, 5, 6], [7]]);
  });

  test("keys are unique", () => {
    const keys = visible(roots, new Set(everyKey(roots))).map((node) => node.key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("only open groups show their rows, and a chain opens the way to a leaf", () => {
    expect(visible(roots, new Set()).map((n) => n.name)).toEqual(["params", "opt_state", "ids"]);
    const keys = chain(roots, 2);
    const rows = visible(roots, new Set(keys)).map((n) => n.name);
    expect(rows).toEqual(["params", "blocks[0]", "qkv['w']", "out", "b", "w", "emb", "opt_state", "ids"]);
  });

  test.each([[["x", "x"]], [["x", "x['a']"]], [["x['a']", "x"]]])(
    "leaves of odd paths %j do not hide each other",
    (odd) => {
      const found = tree(args(odd, [0, 0]), wholes("x"));
      const rows = visible(found, new Set(everyKey(found)));
      expect(rows.flatMap((node) => node.leaf ?? []).sort()).toEqual([0, 1]);
      expect(found[0]!.leaves).toEqual([0, 1]);
    },
  );

  test("totals are unknown as soon as one size is", () => {
    expect(total([0, 1], [8, 4])).toBe(12);
    expect(total([0, 1], [8, null])).toBeNull();
  });

  test("verdicts are counted, most first", () => {
    expect(verdicts([0, 1, 2], (leaf) => (leaf === 1 ? "donor" : "aliased"))).toEqual([
      ["aliased", 2],
      ["donor", 1],
    ]);
  });

  test("a whole is donated in all, some or none of its leaves", () => {
    expect([new Set<number>(), new Set([0]), new Set([0, 1])].map((set) => donated([0, 1], set))).toEqual([
      "none",
      "some",
      "all",
    ]);
  });
});

function everyKey(nodes: readonly Node[]): string[] {
  return nodes.flatMap((node) => [node.key, ...everyKey(node.children)]);
}
