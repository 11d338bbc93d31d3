/** Pytree paths as `jax.tree_util.keystr` prints them. */

const SEGMENT = /\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\]]*)\]|<flat index \d+>|\.?[^.[<]+|./y;

/** "opt_state[0].mu['w']" → ["opt_state", "[0]", ".mu", "['w']"]. */
export function segments(path: string): string[] {
  const found: string[] = [];
  SEGMENT.lastIndex = 0;
  for (let m = SEGMENT.exec(path); m; m = SEGMENT.exec(path)) found.push(m[0]);
  return found;
}

/** Segments after a group's own, short enough for a row: the first key loses its brackets. */
export function short(parts: readonly string[]): string {
  const [first = "", ...rest] = parts;
  const key = /^\[(['"])([^'"\\]+)\1\]$/.exec(first);
  return (key ? key[2]! : first) + rest.join("");
}
