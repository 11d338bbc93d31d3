/** What fills the device at XLA's peak: one sentence, one bar of the classes, the buffers by size. */

import { button, h, setText } from "../dom";
import { bytes, count } from "../format";
import type { Buffers, Comparison, VariantName } from "../model";
import { compiledFor, distinct, NAMES, shownAs } from "../variants";
import { fillBar } from "./bar";
import { contributorRows } from "./contributors";
import { copyRows } from "./copies";
import type { Context, View } from "./view";

const VARIANTS: VariantName[] = ["none", "jax", "pass"];

export function peakView(context: Context): View {
  const { synced, view } = context;
  const switches = VARIANTS.map((name) =>
    button(name, { class: "di-segment", title: NAMES[name], "data-testid": `variant-${name}` }, () => {
      view.variant = name;
      view.time = null;
      context.changed();
    }),
  );
  const choice = h("span", { class: "di-segments", role: "group", "aria-label": "Variant" }, ...switches);
  const aside = h("span", { class: "di-muted di-aside", "data-testid": "peak-target" });
  const stale = h("span", { class: "di-stale", "data-testid": "peak-stale" }, "for an earlier donation");
  const told = h("p", { class: "di-told", "aria-live": "polite", "data-testid": "peak-sentence" });
  const fits = h("p", { class: "di-fits", "data-testid": "peak-fits" });
  const bar = h("div", {});
  const contributors = contributorRows(synced.program.classes);
  const facts = h("tbody", {});
  const copies = copyRows();
  const details = h(
    "div",
    { class: "di-columns di-wide-left" },
    contributors.el,
    h("div", {}, copies.el, h("table", { class: "di-facts", "data-testid": "facts" }, facts)),
  );
  const shownParts = h("div", {}, fits, bar, details);
  const el = h(
    "section",
    { class: "di-peak", "aria-label": "what fills the device at the peak", "data-testid": "peak" },
    h("h3", {}, "What fills the device at the peak", choice, aside, stale),
    told,
    shownParts,
  );
  let shown: unknown[] = [];

  function fillSwitches(found: Comparison | null): void {
    const entries = distinct(found);
    const chosen = shownAs(found, view.variant);
    choice.hidden = entries.length === 0;
    for (const [i, name] of VARIANTS.entries()) {
      const variant = found?.variants.find((one) => one.name === name);
      const missing = variant === undefined || variant.buffers === null;
      const made = switches[i]!;
      made.disabled = missing;
      made.title = missing ? (variant?.buffersError ?? variant?.error ?? "") : NAMES[name];
      made.setAttribute("aria-pressed", String(!missing && variant.buffers === chosen?.index));
    }
  }

  /** Before anything is compiled the program's order is all that is known. */
  function fillUnknown(found: Comparison | null): void {
    const { peak } = synced.state();
    const asked = found?.variants.find((one) => one.name === view.variant);
    const why = asked?.buffersError ?? asked?.error;
    const compared = `XLA’s buffers are not known here${why ? `: ${why}` : "."}`;
    const lead = found === null ? "Compare asks XLA what is in memory at its peak, line by line." : compared;
    const order = `In program order (StableHLO) the peak is ${bytes(peak.bytes)}, at op ${count(peak.at)}.`;
    setText(told, `${lead} ${order}`);
  }

  function fillFits(found: Comparison, buffers: Buffers): void {
    const variant = found.variants.find((one) => one.name === view.variant)!;
    const { capacity, target } = found;
    const reserved = `${bytes(buffers.reserved)} reserved for the whole call`;
    fits.classList.toggle("di-over", variant.fits === false);
    if (capacity === null) {
      setText(fits, `${reserved}; the memory of ${target} is unknown here.`);
      return;
    }
    const verdict =
      variant.fits === false
        ? `does not fit the ${bytes(capacity)} of ${target}${variant.over ? `: over by ${bytes(variant.over)}` : ""}`
        : variant.fits
          ? `fits the ${bytes(capacity)} of ${target}`
          : `whether it fits the ${bytes(capacity)} of ${target} is unknown`;
    setText(fits, `${reserved}: ${verdict}.`);
  }

  function fillFacts(buffers: Buffers): void {
    const rows: [string, string][] = [["reserved for the whole call", bytes(buffers.reserved)]];
    if (buffers.padding !== null) rows.push(["padding of the arrays", bytes(buffers.padding)]);
    if (buffers.fragmentation !== null)
      rows.push(["reserved beyond the peak (fragmentation)", bytes(buffers.fragmentation)]);
    rows.push(["constants, in the executable", bytes(buffers.constant)]);
    if (buffers.spaces.length > 1)
      for (const { name, peak, reserved } of buffers.spaces)
        rows.push([name, `peak ${bytes(peak)}, reserved ${bytes(reserved)}`]);
    facts.replaceChildren(
      ...rows.map(([name, text]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "di-num" }, text))),
    );
  }

  const update = (): void => {
    const found = synced.comparison();
    const now = [found, view.variant, synced.state()];
    if (now.every((value, i) => value === shown[i])) return;
    const same = found === shown[0] && view.variant === shown[1];
    shown = now;
    const old = found !== null && found.revision !== synced.state().revision;
    stale.hidden = !old;
    el.classList.toggle("di-old-part", old);
    const entry = shownAs(found, view.variant);
    if (same && entry !== null) return;
    fillSwitches(found);
    setText(aside, found === null ? "" : compiledFor(found.target, found.here));
    shownParts.hidden = entry === null;
    if (found === null || entry === null) {
      fillUnknown(found);
      return;
    }
    const { buffers } = entry;
    told.replaceChildren(...buffers.sentence.map(({ text, strong }) => (strong ? h("b", {}, text) : text)));
    fillFits(found, buffers);
    bar.replaceChildren(...fillBar(buffers, synced.program.classes, found));
    contributors.fill(buffers);
    fillFacts(buffers);
    copies.fill(buffers);
  };
  return { el, update };
}
