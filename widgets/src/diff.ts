/** The IR before, after and between them: whole lines first, then the rows that show them. */

import { wrap } from "./mlir";
import type { Change } from "./model";

/** A line of one side or of both; a rewritten one keeps its old text. */
export interface Line {
  kind: "same" | "added" | "removed" | "changed";
  text: string;
  old: string;
  /** 0-based; null where the line has none on that side. */
  before: number | null;
  after: number | null;
}

export interface Row {
  kind: "same" | "added" | "removed" | "fold";
  text: string;
  before: number | null;
  after: number | null;
  /** First row of its line; the others go on with it. */
  head: boolean;
  /** How many lines, or rows of one line, are folded away here, and the place that names the fold. */
  hidden: number;
  unit: "line" | "row";
  at: number;
}

/** Both sides, in order. A change's text may span lines; `before` and `after` name its first. */
export function merge(before: readonly string[], changes: readonly Change[]): Line[] {
  const added = changes
    .filter((c) => c.kind === "added" && c.afterText !== null)
    .sort((a, b) => (a.after ?? Number.MAX_SAFE_INTEGER) - (b.after ?? Number.MAX_SAFE_INTEGER));
  const touched = new Map<number, Change>();
  for (const c of changes) if (c.kind !== "added" && c.before !== null) touched.set(c.before, c);
  const lines: Line[] = [];
  let line = 0;
  let after = 0;
  const add = (text: string): void => {
    for (const part of text.split("\n"))
      lines.push({ kind: "added", text: part, old: "", before: null, after: after++ });
  };
  const remove = (text: string): void => {
    for (const part of text.split("\n")) {
      lines.push({ kind: "removed", text: part, old: part, before: line++, after: null });
    }
  };
  let next = 0;
  while (line < before.length || next < added.length) {
    const insert = added[next];
    if (insert && (line >= before.length || (insert.after !== null && insert.after <= after))) {
      add(insert.afterText!);
      next++;
      continue;
    }
    const text = before[line]!;
    const change = touched.get(line);
    if (!change) lines.push({ kind: "same", text, old: text, before: line++, after: after++ });
    else {
      const old = change.beforeText ?? text;
      const now = change.kind === "changed" ? change.afterText : null;
      if (now !== null && !old.includes("\n") && !now.includes("\n")) {
        lines.push({ kind: "changed", text: now, old, before: line++, after: after++ });
      } else {
        remove(old);
        if (now !== null) add(now);
      }
    }
  }
  return lines;
}

/** The IR after the pass. */
export function afterText(lines: readonly Line[]): string[] {
  return lines.filter((line) => line.kind !== "removed").map((line) => line.text);
}

function rowsOf(kind: Row["kind"], text: string, before: number | null, after: number | null): Row[] {
  return wrap(text).map((part, i) => ({
    kind,
    text: part,
    before,
    after,
    head: i === 0,
    hidden: 0,
    unit: "line",
    at: -1,
  }));
}

/** The IR that the pass was given: what it rewrote or removed as it stood then. */
export function beforeRows(lines: readonly Line[]): Row[] {
  return lines.flatMap((line) => (line.kind === "added" ? [] : rowsOf("same", line.old, line.before, line.before)));
}

/** What the pass added or rewrote keeps its mark. */
export function afterRows(lines: readonly Line[]): Row[] {
  return lines.flatMap((line) => {
    if (line.kind === "removed") return [];
    if (line.kind !== "changed") return rowsOf(line.kind, line.text, line.before, line.after);
    return changedRows(line).filter((row) => row.kind !== "removed");
  });
}

/** Where both texts break into as many rows, each pair is compared: one changed argument is one changed row. */
function changedRows(line: Line): Row[] {
  const old = rowsOf("removed", line.old, line.before, null);
  const now = rowsOf("added", line.text, null, line.after);
  if (old.length !== now.length) return [...old, ...now];
  const rows: Row[] = [];
  for (let i = 0; i < old.length; ) {
    if (old[i]!.text === now[i]!.text) {
      rows.push({ ...now[i]!, kind: "same", before: line.before });
      i++;
      continue;
    }
    let end = i;
    while (end < old.length && old[end]!.text !== now[end]!.text) end++;
    rows.push(...old.slice(i, end), ...now.slice(i, end));
    i = end;
  }
  return rows;
}

const CONTEXT = 3;
/** A rewritten signature of many arguments shows this many changed rows, then a fold. */
const CHANGED_ROWS = 8;

/**
 * What changed, with context. A run of unchanged rows is one fold, and so is the inside of a long line that changed
 * nearly everywhere, unless `opened` names it.
 */
export function hunks(lines: readonly Line[], opened: ReadonlySet<number>): Row[] {
  const all = lines.flatMap((line) =>
    line.kind === "changed" ? changedRows(line) : rowsOf(line.kind, line.text, line.before, line.after),
  );
  const keep = new Uint8Array(all.length);
  all.forEach((row, i) => {
    if (row.kind !== "same") keep.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1);
  });
  const rows: Row[] = [];
  const fold = (from: number, end: number, unit: Row["unit"]): void => {
    if (end - from < 2 || opened.has(from)) rows.push(...all.slice(from, end));
    else {
      const hidden = unit === "row" ? end - from : all.slice(from, end).filter((row) => row.head).length;
      rows.push({ kind: "fold", text: "", before: null, after: null, head: true, hidden, unit, at: from });
    }
  };
  for (let i = 0; i < all.length; ) {
    const first = all[i]!;
    const along = (row: Row, k: number): boolean =>
      keep[k] === keep[i] &&
      (!keep[i] || (row.kind === first.kind && row.before === first.before && row.after === first.after));
    let end = i;
    while (end < all.length && along(all[end]!, end)) end++;
    if (!keep[i]) fold(i, end, "line");
    else if (first.kind === "same" || end - i <= CHANGED_ROWS) rows.push(...all.slice(i, end));
    else {
      rows.push(...all.slice(i, i + CHANGED_ROWS - 2));
      fold(i + CHANGED_ROWS - 2, end - 1, "row");
      rows.push(all[end - 1]!);
    }
    i = end;
  }
  return rows;
}
