/** The IR before, after, and what the pass changed, in rows that are used again. */

import { afterRows, beforeRows, hunks, type Line, merge, type Row } from "../diff";
import { h, setText } from "../dom";
import { count, plural } from "../format";
import { type Painted, painter } from "../highlight";
import { tokens } from "../mlir";
import type { Change } from "../model";
import { tabs } from "../tabs";
import type { Tab } from "../viewstate";
import { virtualList } from "../virtual";
import type { Context, View } from "./view";

const ROW = 18;
const ROWS_SHOWN = 18;
const TABS: [Tab, string][] = [
  ["before", "StableHLO before"],
  ["after", "after the pass"],
  ["diff", "diff"],
];

interface RowElement extends HTMLDivElement {
  code: Text;
  painted: Painted;
}

export function irView(context: Context): View {
  const { synced, view } = context;
  const bar = tabs<Tab>("IR", TABS, (tab) => {
    view.tab = tab;
    context.changed();
  });
  const painting = painter();
  let rows: Row[] = [];
  let changes: Change[] | null = null;
  let merged: Line[] | null = null;

  const list = virtualList<RowElement>({
    rowHeight: ROW,
    fallbackHeight: ROW * ROWS_SHOWN,
    overscan: 2,
    count: () => rows.length,
    create: () => {
      const code = document.createTextNode("");
      const row = Object.assign(h("div", { class: "di-line" }, code), { code, painted: [] as Painted });
      row.addEventListener("click", () => {
        const fold = rows[Number(row.dataset.index)];
        if (fold?.kind === "fold") unfold(fold.at);
      });
      return row;
    },
    fill,
    release: (row) => painting.erase(row.painted),
    attributes: { class: "di-ir", role: "tabpanel", id: bar.panel, "data-testid": "ir" },
  });
  list.el.style.height = `${Math.max(4, Math.min(ROWS_SHOWN, synced.ir.length)) * ROW + 2}px`;
  list.el.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const fold = rows.find((row, i) => row.kind === "fold" && list.row(i) !== undefined);
    if (fold) unfold(fold.at);
  });

  const summary = h("span", { class: "di-muted di-ir-summary", role: "status", "data-testid": "ir-summary" });
  const el = h(
    "section",
    { class: "di-ir-section", "aria-label": "IR" },
    h("div", { class: "di-tabbar" }, bar.el, summary),
    list.el,
  );

  function unfold(at: number): void {
    view.unfolded.add(at);
    context.changed();
  }

  /** An argument's line is the function's whole signature: only the row with its name is meant. */
  function points(row: Row): boolean {
    if (row.before === null || row.before !== view.line) return false;
    if (view.range < 0 || synced.ranges.leaf[view.range]! < 0) return true;
    return row.text.includes(`%arg${view.range}:`);
  }

  function fill(element: RowElement, index: number): void {
    const row = rows[index]!;
    painting.erase(element.painted);
    element.dataset.index = String(index);
    element.className = `di-line di-${row.kind}${points(row) ? " di-pointed" : ""}`;
    const number = view.tab === "before" || row.after === null ? row.before : row.after;
    element.dataset.n = row.head && number !== null ? String(number + 1) : "";
    element.dataset.mark = row.kind === "added" ? "+" : row.kind === "removed" ? "−" : "";
    if (row.kind === "fold") {
      element.code.data =
        row.hidden === 0 ? "⋯" : `⋯ ${plural(row.hidden, row.unit === "line" ? "unchanged line" : "more row")}`;
      element.title = "Show them";
      return;
    }
    element.title = "";
    element.code.data = row.text;
    element.painted = painting.paint(element.code, tokens(row.text));
  }

  function lines(): Line[] {
    const now = synced.state().changes;
    if (merged === null || now !== changes) {
      changes = now;
      merged = merge(synced.ir, now);
    }
    return merged;
  }

  const rowsOf: Record<Tab, () => Row[]> = {
    before: () => beforeRows(lines()),
    after: () => afterRows(lines()),
    diff: () => (synced.state().changes.length === 0 ? [] : hunks(lines(), view.unfolded)),
  };

  let shown = "";
  let shownChanges: Change[] | null = null;
  let pointed = "";
  const update = (): void => {
    const state = synced.state();
    if (state.changes !== shownChanges) {
      // A fold is named by its place, and the places have moved.
      if (shownChanges !== null) view.unfolded.clear();
      shownChanges = state.changes;
      shown = "";
    }
    const key = `${view.tab} ${view.unfolded.size}`;
    if (key !== shown) {
      const otherTab = shown.split(" ")[0] !== view.tab;
      shown = key;
      rows = rowsOf[view.tab]();
      if (otherTab && view.line < 0) list.el.scrollTop = 0;
      list.refresh();
      if (otherTab) pointed = "";
    }
    const target = `${view.line} ${view.range}`;
    if (target !== pointed) {
      pointed = target;
      const index = view.line < 0 ? -1 : rows.findIndex(points);
      list.refresh();
      if (index >= 0) list.scrollTo(index, "middle");
    }
    bar.update(view.tab);
    list.el.setAttribute("aria-labelledby", bar.id(view.tab));
    const n = (kind: Change["kind"]): number => state.changes.filter((c) => c.kind === kind).length;
    const told = (["added", "changed", "removed"] as const)
      .map((kind) => [n(kind), kind] as const)
      .filter(([many]) => many > 0)
      .map(([many, kind]) => `${count(many)} ${kind}`);
    setText(summary, `${state.pipeline} · ${told.length === 0 ? "changes nothing" : told.join(", ")}`);
    list.el.classList.toggle("di-empty", rows.length === 0);
    list.el.dataset.empty = rows.length === 0 ? "The pass changes nothing: before and after are the same." : "";
  };
  return { el, update, destroy: list.destroy };
}
