/** The arguments as a foldable tree: one root a whole argument, groups along the pytree paths, one leaf an array. */

import type { Arguments, State, Verdict, Whole } from "./model";
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

function insert(root: Trie, parts: readonly string[], leaf: number): void {
  root.leaves.push(leaf);
  let at = root;
  for (const part of parts) {
    let next = at.children.get(part);
    if (!next) {
      next = trie(part);
      at.children.set(part, next);
    }
    next.leaves.push(leaf);
    at = next;
  }
  // Two leaves of one path (a pytree node without keys): the second stands beside the first.
  if (at.leaf === null && at !== root) at.leaf = leaf;
  else if (at === root && parts.length === 0 && at.leaf === null) at.leaf = leaf;
  else at.children.set(`#${leaf}`, { ...trie(` #${leaf}`), leaf, leaves: [leaf] });
}

/** A group with one group inside is no choice to make: its row is left out and its name goes before its children's. */
function children(group: Trie, prefix: readonly string[], depth: number, key: string, whole: number): Node[] {
  const found = [...group.children.values()];
  const only = found[0];
  if (found.length === 1 && only && only.children.size > 0 && only.leaf === null) {
    return children(only, [...prefix, only.part], depth, key + only.part, whole);
  }
  return found.map((child) => {
    const parts = [...prefix, child.part];
    const own = key + child.part;
    return {
      key: own,
      name: short(parts),
      whole,
      depth,
      children: child.children.size > 0 ? children(child, [], depth + 1, own, whole) : [],
      leaves: child.leaves,
      leaf: child.children.size > 0 ? null : child.leaf,
    };
  });
}

export function tree(args: Arguments, wholes: readonly Whole[]): Node[] {
  const roots = wholes.map((whole) => trie(whole.name));
  args.path.forEach((path, leaf) => {
    const index = args.whole[leaf]!;
    const name = wholes[index]?.name ?? "";
    const root = roots[index];
    if (!root) return;
    insert(root, segments(path.startsWith(name) ? path.slice(name.length) : path), leaf);
  });
  return roots.map((root, whole) => ({
    key: `${whole}:${root.part}`,
    name: root.part,
    whole,
    depth: 0,
    children: root.children.size > 0 ? children(root, [], 1, `${whole}:${root.part}`, whole) : [],
    leaves: root.leaves,
    leaf: root.children.size > 0 ? null : root.leaf,
  }));
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
export function verdicts(leaves: readonly number[], state: State): [Verdict, number][] {
  const counts = new Map<Verdict, number>();
  for (const leaf of leaves) {
    const verdict = state.verdicts[leaf];
    if (verdict) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** "all", "some" or "none" of the leaves are donated. */
export function donated(leaves: readonly number[], set: ReadonlySet<number>): "all" | "some" | "none" {
  let n = 0;
  for (const leaf of leaves) if (set.has(leaf)) n++;
  if (n === 0) return "none";
  return n === leaves.length ? "all" : "some";
}
