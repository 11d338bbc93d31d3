/** The arguments as a foldable tree: one root a whole argument, groups along the pytree paths, one leaf an array. */

import type { Arguments, Whole } from "./model";
import { segments, short } from "./paths";

export interface Node {
  /** Unique in the tree: the path's text from the root on. */
  key: string;
  name: string;
  whole: number;
  depth: number;
  children: Node[];
  /** Flat leaf indices under the node. */
  leaves: number[];
  /** The leaf that the row itself stands for. */
  leaf: number | null;
}

interface Trie {
  part: string;
  leaf: number | null;
  leaves: number[];
  children: Map<string, Trie>;
}

const trie = (part: string): Trie => ({ part, leaf: null, leaves: [], children: new Map() });

/** A leaf that has no path of its own below `at`. */
function unnamed(at: Trie, leaf: number): void {
  at.children.set(`#${leaf}`, { ...trie(` #${leaf}`), leaf, leaves: [leaf] });
}

/** Paths of odd pytrees may repeat, or one may go on below another: each leaf still gets a row. */
function insert(root: Trie, parts: readonly string[], leaf: number): void {
  root.leaves.push(leaf);
  let at = root;
  const openUp = (): void => {
    if (at.leaf !== null) unnamed(at, at.leaf);
    at.leaf = null;
  };
  for (const part of parts) {
    openUp();
    let next = at.children.get(part);
    if (!next) {
      next = trie(part);
      at.children.set(part, next);
    }
    next.leaves.push(leaf);
    at = next;
  }
  if (at.leaf === null && at.children.size === 0) at.leaf = leaf;
  else {
    openUp();
    unnamed(at, leaf);
  }
}

/** A group of one is no choice to make: it shares a row with what it holds. */
function node(entry: Trie, prefix: readonly string[], depth: number, key: string, whole: number): Node {
  const parts = [...prefix, entry.part];
  let at = entry;
  while (at.children.size === 1 && at.leaf === null) {
    at = [...at.children.values()][0]!;
    parts.push(at.part);
  }
  const own = key + parts.slice(prefix.length).join("");
  return {
    key: own,
    name: short(parts),
    whole,
    depth,
    children: [...at.children.values()].map((child) => node(child, [], depth + 1, own, whole)),
    leaves: at.leaves,
    leaf: at.children.size > 0 ? null : at.leaf,
  };
}

/** A whole argument keeps its own row; where it holds one group alone, that group's name goes before its children's. */
function root(entry: Trie, whole: number): Node {
  const key = `${whole}:${entry.part}`;
  let at = entry;
  const prefix: string[] = [];
  while (at.children.size === 1 && at.leaf === null) {
    const only = [...at.children.values()][0]!;
    if (only.children.size === 0) break;
    at = only;
    prefix.push(at.part);
  }
  const below = key + prefix.join("");
  return {
    key,
    name: entry.part,
    whole,
    depth: 0,
    children: [...at.children.values()].map((child) => node(child, prefix, 1, below, whole)),
    leaves: entry.leaves,
    leaf: entry.children.size > 0 ? null : entry.leaf,
  };
}

export function tree(args: Arguments, wholes: readonly Whole[]): Node[] {
  const entries = wholes.map((whole) => trie(whole.name));
  args.path.forEach((path, leaf) => {
    const index = args.whole[leaf]!;
    const name = wholes[index]?.name ?? "";
    const entry = entries[index];
    if (entry) insert(entry, segments(path.startsWith(name) ? path.slice(name.length) : path), leaf);
  });
  return entries.map(root);
}

/** Rows on show: a node's children follow it where it is open. */
export function visible(roots: readonly Node[], open: ReadonlySet<string>): Node[] {
  const rows: Node[] = [];
  const walk = (node: Node): void => {
    rows.push(node);
    if (open.has(node.key)) node.children.forEach(walk);
  };
  roots.forEach(walk);
  return rows;
}

/** Keys from the root down to the row of a leaf, the row's own last. */
export function chain(roots: readonly Node[], leaf: number): string[] {
  const keys: string[] = [];
  let level: readonly Node[] = roots;
  for (;;) {
    const next = level.find((node) => node.leaves.includes(leaf));
    if (!next) return keys;
    keys.push(next.key);
    level = next.children;
  }
}

/** Sum over leaves; null as soon as one is unknown. */
export function total(leaves: readonly number[], nbytes: readonly (number | null)[]): number | null {
  let sum = 0;
  for (const leaf of leaves) {
    const size = nbytes[leaf] ?? null;
    if (size === null) return null;
    sum += size;
  }
  return sum;
}

/** How many leaves have each verdict, most first. */
export function verdicts<V>(leaves: readonly number[], of: (leaf: number) => V): [V, number][] {
  const counts = new Map<V, number>();
  for (const leaf of leaves) counts.set(of(leaf), (counts.get(of(leaf)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** "all", "some" or "none" of the leaves are donated. */
export function donated(leaves: readonly number[], set: ReadonlySet<number>): "all" | "some" | "none" {
  let n = 0;
  for (const leaf of leaves) if (set.has(leaf)) n++;
  if (n === 0) return "none";
  return n === leaves.length ? "all" : "some";
}
