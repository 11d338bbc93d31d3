/** The arguments: a foldable tree, checkboxes on whole arguments, verdict and reason of every leaf. */

import { h, setText } from "../dom";
import { bytes, plural } from "../format";
import type { Copied, Verdict } from "../model";
import { chain, donated, type Node, total, tree, verdicts, visible } from "../tree";
import { shownAs } from "../variants";
import { virtualList } from "../virtual";
import { copyRow } from "./copies";
import { columnNames, inYourCall, reused } from "./reused";
import type { Context, View } from "./view";

const ROW = 26;
const ROWS_SHOWN = 16;

interface Row extends HTMLDivElement {
  parts: {
    name: HTMLElement;
    box: HTMLInputElement | null;
    title: HTMLElement;
    label: HTMLElement;
    size: HTMLElement;
    life: HTMLElement;
    call: HTMLElement | null;
    chip: HTMLElement;
    why: Text;
    verdict: HTMLElement;
  };
  node: Node | null;
}

/** Not donated, and a result could take its buffer. */
const COULD = "could be donated";

const CHIP: Record<Verdict, string> = {
  aliased: "di-ok",
  "aliased, saves nothing": "di-vain",
  donor: "di-donor",
  unusable: "di-bad",
  unused: "di-bad",
  "not donated": "di-none",
};

let ids = 0;

export function argumentsView(context: Context): View {
  const { synced, view } = context;
  const { arguments: args, results, wholes, operations } = synced.program;
  const prefix = `di-arguments-${ids++}`;
  const roots = tree(args, wholes);
  openWhatFits(roots, view.open);
  view.row = roots[0]?.key ?? "";
  let rows = visible(roots, view.open);
  let state = synced.state();
  let set = new Set(state.donated);
  let candidates = new Set(state.candidates);

  const list = virtualList<Row>({
    rowHeight: ROW,
    fallbackHeight: ROW * ROWS_SHOWN,
    overscan: 1,
    count: () => rows.length,
    create: createRow,
    fill: (row, index) => fillRow(row, index),
    attributes: {
      class: "di-tree",
      role: "treegrid",
      "aria-label": "Arguments",
      "aria-readonly": "true",
      "data-testid": "tree",
    },
  });
  const names = columnNames();
  const aside = h("span", { class: "di-muted di-aside" });
  const detail = h("div", { class: "di-detail", "data-testid": "argument-detail", "aria-live": "polite" });
  const el = h(
    "section",
    { class: "di-arguments", "aria-label": "arguments" },
    h("h3", {}, "Arguments", aside),
    names,
    list.el,
    detail,
  );

  function createRow(): Row {
    const title = h("code", { class: "di-title" });
    const name = h("span", { class: "di-path", role: "gridcell" }, title);
    const label = h("code", { class: "di-label", role: "gridcell" });
    const size = h("span", { class: "di-num", role: "gridcell" });
    const life = h("span", { class: "di-life", role: "img" });
    const chip = h("span", { class: "di-chip" });
    const why = document.createTextNode("");
    const verdict = h("span", { class: "di-verdict", role: "gridcell" }, chip, why);
    const row: Row = Object.assign(h("div", { class: "di-row", role: "row" }, name, label, size, life, verdict), {
      parts: { name, box: null, title, label, size, life, call: null, chip, why, verdict },
      node: null,
    });
    row.addEventListener("click", (event) => {
      const { node } = row;
      if (!node || event.target instanceof HTMLInputElement) return;
      // The triangle lies in the padding before the name.
      if (node.children.length > 0 && event.target === name) unfold(node, !view.open.has(node.key));
      else select(node);
    });
    row.addEventListener("dblclick", (event) => {
      const { node } = row;
      if (node && node.children.length > 0 && event.target !== name) unfold(node, !view.open.has(node.key));
    });
    return row;
  }

  function boxOf(row: Row): HTMLInputElement {
    const box = h("input", { type: "checkbox", tabindex: -1 });
    box.addEventListener("change", () => {
      if (row.node) toggle(row.node, box.checked);
    });
    row.parts.name.prepend(box);
    row.parts.box = box;
    return box;
  }

  function fillRow(row: Row, index: number): void {
    const node = rows[index]!;
    const { name, title, label, size, life, chip, why, verdict } = row.parts;
    row.node = node;
    const opened = view.open.has(node.key);
    row.id = `${prefix}-${index}`;
    row.setAttribute("aria-level", String(node.depth + 1));
    row.setAttribute("aria-rowindex", String(index + 1));
    row.setAttribute("aria-selected", String(node.key === view.row));
    row.classList.toggle("di-root-row", node.depth === 0);
    if (node.children.length > 0) row.setAttribute("aria-expanded", String(opened));
    else row.removeAttribute("aria-expanded");
    name.style.setProperty("--depth", String(node.depth));
    name.dataset.fold = node.children.length === 0 ? "" : opened ? "▾" : "▸";
    setText(title, node.name);
    title.title =
      node.depth === 0
        ? fullName(node)
        : `${node.leaf === null ? fullName(node) : args.path[node.leaf]!} · alone it needs di.jit`;
    setText(label, node.leaf === null ? plural(node.leaves.length, "leaf", "leaves") : args.label[node.leaf]!);
    label.title = label.textContent ?? "";
    setText(size, bytes(total(node.leaves, args.nbytes)));
    fillBox(row, node);
    fillLife(life, node);
    fillCall(row, node);
    const [text, kind, reason] = verdictOf(node);
    setText(chip, text);
    chip.className = `di-chip ${kind}`;
    row.dataset.path = node.leaf === null ? fullName(node) : args.path[node.leaf]!;
    row.dataset.verdict = node.leaf === null ? "" : (state.verdicts[node.leaf] ?? "");
    if (why.data !== reason) why.data = reason;
    verdict.title = reason;
  }

  /** Only a whole argument has a box: one leaf alone cannot be donated by jax.jit. */
  function fillBox(row: Row, node: Node): void {
    const whole = wholes[node.whole];
    if (node.depth > 0 || !whole) {
      if (row.parts.box) row.parts.box.hidden = true;
      return;
    }
    const box = row.parts.box ?? boxOf(row);
    box.hidden = false;
    const asked = synced.asked(node.whole);
    const held = donated(node.leaves, set);
    box.checked = asked ?? held === "all";
    box.indeterminate = asked === undefined && held === "some";
    box.disabled = !whole.togglable;
    box.classList.toggle("di-asked", asked !== undefined);
    box.title = whole.togglable ? "" : whole.hint;
    box.setAttribute("aria-label", `donate ${whole.name}`);
    box.dataset.testid = `donate-${whole.name}`;
  }

  /** Whether the user's own call reused it; no cell as long as no call was verified. */
  function fillCall(row: Row, node: Node): void {
    const { verified } = state;
    if (verified === null) {
      row.parts.call?.remove();
      row.parts.call = null;
      return;
    }
    const call = row.parts.call ?? h("span", { role: "gridcell" });
    if (row.parts.call === null) row.parts.verdict.before(call);
    row.parts.call = call;
    const [words, colour] = reused(verified, node.leaves);
    setText(call, words);
    call.className = `di-chip di-call ${colour}`;
    call.title = node.leaf === null ? "" : inYourCall(verified, node.leaf);
  }

  /** First to last operation of the node's ranges, on the program's length. */
  function fillLife(life: HTMLElement, node: Node): void {
    const { ranges } = synced;
    const ends = synced.ends();
    let from = operations;
    let to = -1;
    for (const leaf of node.leaves) {
      const i = ranges.ofLeaf.get(leaf);
      if (i === undefined) continue;
      from = Math.min(from, Math.max(0, ranges.start[i]!));
      to = Math.max(to, ends[i]!);
    }
    const known = to >= from;
    life.style.setProperty("--from", known ? `${(100 * from) / operations}%` : "0%");
    life.style.setProperty("--to", known ? `${Math.min(100, (100 * (to + 1)) / operations)}%` : "0%");
    const text = known ? `live from op ${from} to ${to}` : "no live range";
    life.title = text;
    life.setAttribute("aria-label", text);
  }

  function verdictOf(node: Node): [text: string, chip: string, reason: string] {
    const only = node.leaves.length === 1 ? node.leaves[0]! : null;
    if (only !== null) {
      const verdict = state.verdicts[only] ?? "not donated";
      const could = verdict === "not donated" && candidates.has(only);
      return [could ? COULD : verdict, could ? "di-could" : CHIP[verdict], state.reasons[only] ?? ""];
    }
    const counts = verdicts(node.leaves, (leaf) => {
      const verdict = state.verdicts[leaf] ?? "not donated";
      return verdict === "not donated" && candidates.has(leaf) ? COULD : verdict;
    });
    const first = counts[0];
    if (!first) return ["", "di-none", ""];
    const [verdict, n] = first;
    const others = counts.slice(1).map(([other, m]) => `${m} ${other}`);
    const kind = verdict === COULD ? "di-could" : CHIP[verdict];
    return [`${n} of ${node.leaves.length} ${verdict}`, kind, others.join(", ")];
  }

  function fullName(node: Node): string {
    const whole = wholes[node.whole]?.name ?? "";
    return node.depth === 0 ? whole : node.key.slice(node.key.indexOf(":") + 1);
  }

  function toggle(node: Node, donate: boolean): void {
    if (node.depth === 0 && wholes[node.whole]?.togglable) {
      synced.send({ type: "donate", whole: node.whole, donate });
    }
  }

  function unfold(node: Node, open: boolean): void {
    if (open) view.open.add(node.key);
    else view.open.delete(node.key);
    context.changed();
  }

  function select(node: Node): void {
    view.row = node.key;
    if (node.leaf !== null) {
      view.range = synced.ranges.ofLeaf.get(node.leaf) ?? -1;
      view.line = view.range < 0 ? -1 : synced.ranges.line[view.range]!;
    }
    context.changed();
  }

  function move(to: number): void {
    const index = Math.max(0, Math.min(rows.length - 1, to));
    const node = rows[index];
    if (!node) return;
    select(node);
    list.scrollTo(index);
  }

  const keys: Record<string, (node: Node, index: number) => void> = {
    ArrowDown: (_, i) => move(i + 1),
    ArrowUp: (_, i) => move(i - 1),
    PageDown: (_, i) => move(i + ROWS_SHOWN - 2),
    PageUp: (_, i) => move(i - ROWS_SHOWN + 2),
    Home: () => move(0),
    End: () => move(rows.length - 1),
    ArrowRight: (node, i) => {
      if (node.children.length > 0 && !view.open.has(node.key)) unfold(node, true);
      else if (node.children.length > 0) move(i + 1);
    },
    ArrowLeft: (node, i) => {
      if (view.open.has(node.key)) unfold(node, false);
      else move(rows.findLastIndex((other, k) => k < i && other.depth < node.depth));
    },
    Enter: (node) => {
      if (node.children.length > 0) unfold(node, !view.open.has(node.key));
    },
    " ": (node) => toggle(node, !(synced.asked(node.whole) ?? donated(node.leaves, set) === "all")),
  };
  list.el.addEventListener("keydown", (event) => {
    if (event.target !== list.el || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const act = keys[event.key];
    const index = rows.findIndex((node) => node.key === view.row);
    const node = rows[index];
    if (!act || !node) return;
    event.preventDefault();
    act(node, index);
  });

  function fillDetail(): void {
    const node = rows.find((row) => row.key === view.row);
    if (!node) return;
    const [verdict, , reason] = verdictOf(node);
    const { leaf } = node;
    const size = bytes(total(node.leaves, args.nbytes));
    const facts = [leaf === null ? plural(node.leaves.length, "leaf", "leaves") : args.label[leaf]!, size];
    const perDevice = synced.program.multiDevice ? total(node.leaves, args.perDevice) : null;
    if (perDevice !== null) facts.push(`${bytes(perDevice)} a device`);
    facts.push(verdict);
    const hints: string[] = [];
    const result = leaf === null ? null : (state.results[leaf] ?? null);
    const taker = result === null ? "" : (results.path[result] ?? `result ${result}`);
    if (result !== null && !reason.includes(taker)) hints.push(`Its buffer becomes ${taker}.`);
    const whole = wholes[node.whole];
    if (whole && !whole.togglable && whole.hint !== "") hints.push(whole.hint);
    else if (node.depth > 0)
      hints.push(`Donating it without the rest of ${whole?.name ?? "its argument"} needs di.jit.`);
    const copied = leaf === null ? [] : copiesOf(args.path[leaf]!);
    const lines = [
      h("p", {}, h("code", {}, leaf === null ? fullName(node) : args.path[leaf]!), ` · ${facts.join(" · ")}`),
      reason === "" ? null : h("p", {}, reason),
      leaf === null || state.verified === null ? null : h("p", {}, inYourCall(state.verified, leaf)),
      hints.length === 0 ? null : h("p", { class: "di-muted" }, hints.join(" ")),
      copied.length === 0
        ? null
        : h("ul", { class: "di-copies", "data-testid": "argument-copies" }, ...copied.map(copyRow)),
    ].filter((line) => line !== null);
    if (detail.textContent !== lines.map((line) => line.textContent).join("")) detail.replaceChildren(...lines);
  }

  /** The copies that aliasing this argument makes, in the variant that is looked at. */
  function copiesOf(path: string): Copied[] {
    const entry = shownAs(synced.comparison(), view.variant);
    return entry === null ? [] : entry.buffers.copies.filter((one) => one.argument === path);
  }

  let revealed = -1;
  const update = (): void => {
    state = synced.state();
    set = new Set(state.donated);
    candidates = new Set(state.candidates);
    const leaf = view.range >= 0 ? synced.ranges.leaf[view.range]! : -1;
    if (view.range !== revealed && leaf >= 0) {
      const keys = chain(roots, leaf);
      for (const key of keys.slice(0, -1)) view.open.add(key);
      view.row = keys.at(-1) ?? view.row;
    }
    rows = visible(roots, view.open);
    if (!rows.some((row) => row.key === view.row)) view.row = nearest(view.row);
    list.el.setAttribute("aria-rowcount", String(rows.length));
    list.el.style.height = `${Math.min(rows.length, ROWS_SHOWN) * ROW + 2}px`;
    const verified = state.verified !== null;
    el.classList.toggle("di-verified", verified);
    names.hidden = !verified;
    setText(aside, `checked = donated${state.verified === null ? "" : ` · ${state.verified.sentence}`}`);
    list.refresh();
    // The names stand over the columns of a list that may have a scrollbar.
    names.style.paddingRight = `${list.el.offsetWidth - list.el.clientWidth + 6}px`;
    const active = rows.findIndex((row) => row.key === view.row);
    list.el.setAttribute("aria-activedescendant", `${prefix}-${active}`);
    if (view.range !== revealed && leaf >= 0) list.scrollTo(active);
    revealed = view.range;
    fillDetail();
  };
  /** A folded row hands the selection to the group that hides it. */
  const nearest = (key: string): string =>
    rows.reduce((best, row) => (key.startsWith(row.key) && row.key.length > best.length ? row.key : best), "") ||
    (rows[0]?.key ?? "");

  return { el, update, destroy: list.destroy };
}

/** Opens level by level while all rows still fit the list. */
function openWhatFits(roots: readonly Node[], open: Set<string>): void {
  let level: readonly Node[] = roots;
  let rows = roots.length;
  while (level.length > 0) {
    const next: Node[] = [];
    for (const node of level) {
      if (node.children.length === 0 || rows + node.children.length > ROWS_SHOWN) continue;
      rows += node.children.length;
      open.add(node.key);
      next.push(...node.children);
    }
    level = next;
  }
}
