/** What XLA compiled and what was measured, as bars with their figures; the two are never put in one row. */

import { h } from "../dom";
import { bytes, seconds } from "../format";
import type { Compiled, Measured, TargetRow } from "../model";
import { NAMES } from "../variants";
import type { Context, View } from "./view";

type Part = [kind: string, size: number, title: string];

function bar(parts: Part[], most: number, label: string): HTMLElement {
  const pieces = parts.map(([kind, size, title]) => {
    const piece = h("i", { class: `di-part di-part-${kind}`, title: `${title} ${bytes(size)}` });
    piece.style.width = `${(100 * size) / most}%`;
    return piece;
  });
  return h("div", { class: "di-bar", role: "img", "aria-label": label }, ...pieces);
}

/** Columns that a narrow page goes without, the least first: the bars tell them too. */
const MINOR: Record<string, string> = {
  argument: "di-minor",
  output: "di-minor",
  alias: "di-minor",
  temp: "di-minor",
  spread: "di-minor",
  predicted: "di-minor",
  device: "di-minor",
  "compile time": "di-least",
};

function table(caption: HTMLElement, heads: string[], rows: HTMLElement[], testid: string): HTMLElement {
  const head = h("tr", {}, ...heads.map((text) => h("th", { scope: "col", class: MINOR[text] }, text)));
  for (const row of rows) {
    // A row with one cell for its error has no columns to go without.
    if (row.children.length === heads.length)
      for (const [i, text] of heads.entries()) if (MINOR[text]) row.children[i]!.classList.add(MINOR[text]);
  }
  return h(
    "table",
    { class: "di-figures", "data-testid": testid },
    caption,
    h("thead", {}, head),
    h("tbody", {}, ...rows),
  );
}

const figure = (text: string): HTMLElement =>
  h("td", { class: text === "unknown" ? "di-num di-muted" : "di-num" }, text);

/** argument + output − alias + temp = total: the aliased bytes are drawn once, hatched. */
function compiledRow(variant: Compiled, most: number, fitting: boolean): HTMLElement {
  const name = h("th", { scope: "row", title: NAMES[variant.name] }, variant.name);
  if (variant.total === null) {
    const why = variant.error ?? variant.status;
    return h("tr", {}, name, h("td", { colspan: fitting ? 8 : 7, class: "di-error-cell" }, why));
  }
  const { argument, output, alias, temp, total } = variant;
  const parts: Part[] = [];
  if (argument !== null && output !== null && alias !== null && temp !== null) {
    parts.push(["argument", argument - alias, "argument"], ["alias", alias, "argument and output in one"]);
    parts.push(["output", output - alias, "output"], ["temp", temp, "temp"]);
  }
  const label = `${variant.name}: ${bytes(total)} in total`;
  return h(
    "tr",
    {},
    name,
    h(
      "td",
      { class: "di-bar-cell" },
      bar(
        parts.filter(([, size]) => size > 0),
        most,
        label,
      ),
    ),
    ...[total, argument, output, alias, temp].map((size, i) => {
      const cell = figure(bytes(size));
      if (i === 0) cell.classList.add("di-total");
      return cell;
    }),
    fitting ? fitsCell(variant) : null,
    figure(seconds(variant.seconds)),
  );
}

function fitsCell({ fits, over, status, error }: Compiled | (TargetRow & { error?: null })): HTMLElement {
  const text = fits ? "fits" : over ? `over by ${bytes(over)}` : fits === false ? status : "unknown";
  const kind = fits ? "di-ok" : fits === false ? "di-bad" : "di-muted";
  return h("td", { class: `di-num ${kind}`, title: error ?? "" }, text);
}

function targetRow(row: TargetRow, first: boolean): HTMLElement {
  return h(
    "tr",
    { class: first ? "di-first-of-target" : "" },
    h("th", { scope: "row" }, first ? row.target : h("span", { class: "di-offscreen" }, row.target)),
    h("td", {}, row.variant),
    figure(row.total === null ? row.status : bytes(row.total)),
    figure(row.variant === "none" ? "" : bytes(row.saved)),
    figure(bytes(row.capacity)),
    fitsCell(row),
    h("td", {}, first ? (row.here ? "compiled" : "compiled, not run") : ""),
  );
}

function measuredRow(variant: Measured, most: number): HTMLElement {
  const name = h("th", { scope: "row", title: NAMES[variant.name] }, variant.name);
  if (variant.error !== null) {
    return h("tr", {}, name, h("td", { colspan: 6, class: "di-error-cell" }, `${variant.status}: ${variant.error}`));
  }
  const { peak, spread, predicted } = variant;
  const parts: Part[] = peak === null ? [] : [["measured", peak, "measured peak"]];
  return h(
    "tr",
    {},
    name,
    h("td", { class: "di-bar-cell" }, bar(parts, most, `${variant.name}: measured peak ${bytes(peak)}`)),
    h("td", { class: "di-num di-total" }, bytes(peak)),
    figure(bytes(spread)),
    figure(bytes(predicted)),
    figure(seconds(variant.seconds)),
    h("td", {}, variant.status),
  );
}

const most = (sizes: (number | null)[]): number => Math.max(1, ...sizes.map((size) => size ?? 0));

const LEGEND = [
  ["argument", "argument"],
  ["alias", "alias: argument and output in one"],
  ["output", "output"],
  ["temp", "temp"],
];

export function figures(context: Context): View {
  const { synced } = context;
  const compiled = h("div", { class: "di-compiled" });
  const targets = h("div", { class: "di-targets" });
  const measured = h("div", { class: "di-measured" });
  const el = h(
    "section",
    { class: "di-figures-section", "aria-label": "variants", "data-testid": "bars" },
    compiled,
    targets,
    measured,
  );
  let shown: unknown[] = [];

  function stale(revision: number): boolean {
    return revision !== synced.state().revision;
  }
  /** Figures of an earlier donation stay readable, dimmed and named as such. */
  function caption(text: string, old: boolean): HTMLElement {
    const mark = old ? h("span", { class: "di-stale", "data-testid": "stale" }, "for an earlier donation") : null;
    return h("caption", {}, text, mark);
  }

  function fillCompiled(): void {
    const found = synced.comparison();
    if (found === null) {
      const text = `Compiled with XLA for ${synced.program.platform}: press Compare to see argument, output, alias and temp of each variant.`;
      compiled.replaceChildren(h("p", { class: "di-muted di-hint" }, text));
      return;
    }
    const old = stale(found.revision);
    const scale = most(found.variants.map((v) => v.total));
    const fitting = found.variants.some((variant) => variant.fits !== null);
    const heads = [
      "",
      "",
      "total",
      "argument",
      "output",
      "alias",
      "temp",
      ...(fitting ? ["fits"] : []),
      "compile time",
    ];
    compiled.classList.toggle("di-old", old);
    compiled.replaceChildren(
      table(
        caption(`Compiled with XLA for ${found.target}${found.here ? "" : ", not run"}`, old),
        heads,
        found.variants.map((variant) => compiledRow(variant, scale, fitting)),
        "compiled",
      ),
      h(
        "p",
        { class: "di-legend" },
        ...LEGEND.map(([kind, text]) => h("span", {}, h("i", { class: `di-swatch di-part-${kind}` }), text!)),
      ),
      h("p", {}, found.sentence),
      h("p", { class: "di-muted" }, found.note),
    );
  }

  /** Only where there is more than the one that is shown already. */
  function fillTargets(): void {
    const rows = synced.comparison()?.targets ?? [];
    const names = [...new Set(rows.map(({ target }) => target))];
    targets.hidden = names.length < 2;
    if (targets.hidden) {
      targets.replaceChildren();
      return;
    }
    targets.replaceChildren(
      table(
        caption("Compared for several targets, bytes per device", stale(synced.comparison()!.revision)),
        ["target", "variant", "total", "saved", "device", "fits", ""],
        rows.map((row, i) => targetRow(row, rows[i - 1]?.target !== row.target)),
        "targets",
      ),
    );
  }

  function fillMeasured(): void {
    const found = synced.measurement();
    if (found === null) {
      measured.replaceChildren(
        h("p", { class: "di-muted di-hint" }, "Measured: press Measure to run each variant in its own process."),
      );
      return;
    }
    const old = stale(found.revision);
    const scale = most(found.variants.map((v) => v.peak));
    // The kernel's sentence tells of outputs that were compared; only silence needs a word here.
    const compared = found.outputsEqual === null ? " Whether the outputs are equal is unknown." : "";
    measured.classList.toggle("di-old", old);
    measured.replaceChildren(
      table(
        caption("Measured on this machine", old),
        ["", "", "measured peak", "spread", "predicted", "a call", "status"],
        found.variants.map((variant) => measuredRow(variant, scale)),
        "measured",
      ),
      h("p", { "data-testid": "measured-sentence" }, found.sentence + compared),
    );
  }

  const update = (): void => {
    const now = [synced.comparison(), synced.measurement(), synced.state().revision];
    if (now.every((value, i) => value === shown[i])) return;
    shown = now;
    fillCompiled();
    fillTargets();
    fillMeasured();
  };
  return { el, update };
}
