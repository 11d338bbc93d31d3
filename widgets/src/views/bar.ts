/** The stacked bar of the classes at a peak, the memory of the device as a mark on it. */

import { h } from "../dom";
import { bytes } from "../format";
import type { Buffers, Comparison } from "../model";

/** A device of more than this many times the longest bar is told in words: its mark would squeeze everything. */
const FAR = 3;

export const classOf = (classes: readonly string[], name: string): string => {
  const index = classes.indexOf(name);
  return `di-class di-class-${index < 0 ? "other" : index}`;
};

function percent(part: number, whole: number): string {
  const value = (100 * part) / Math.max(1, whole);
  return value > 0 && value < 1 ? "< 1 %" : `${Math.round(value)} %`;
}

/** One scale for all variants, so that a switch shows what it changes. */
function scaleOf(found: Comparison): number {
  const longest = Math.max(1, ...found.buffers.map(({ peak, reserved }) => Math.max(peak, reserved)));
  const { capacity } = found;
  return capacity !== null && capacity <= FAR * longest ? Math.max(longest, capacity) : longest;
}

export function fillBar(buffers: Buffers, classes: readonly string[], found: Comparison): HTMLElement[] {
  const scale = scaleOf(found);
  const width = (size: number): string => `${(100 * size) / scale}%`;
  const parts = buffers.classes.filter(({ bytes: size }) => size > 0);
  const pieces = parts.map(({ name, bytes: size }) => {
    const piece = h("i", { class: `di-part ${classOf(classes, name)}`, title: `${name} ${bytes(size)}` });
    piece.style.width = width(size);
    return piece;
  });
  const rest = buffers.reserved - buffers.peak;
  if (rest > 0) {
    const piece = h("i", { class: "di-part di-part-reserved", title: `reserved beyond the peak ${bytes(rest)}` });
    piece.style.width = width(rest);
    pieces.push(piece);
  }
  const { capacity } = found;
  const marked = capacity !== null && capacity <= scale;
  const mark = h("span", { class: "di-mark", "data-testid": "capacity" }, h("span", {}, bytes(capacity)));
  if (marked) mark.style.left = width(capacity);
  mark.classList.toggle("di-mark-late", marked && capacity > scale * 0.85);
  const label = [...parts.map(({ name, bytes: size }) => `${name} ${bytes(size)}`), `peak ${bytes(buffers.peak)}`];
  if (capacity !== null) label.push(`device ${bytes(capacity)}`);
  const bar = h("div", { class: "di-bar" }, ...pieces);
  const legend = parts.map(({ name, bytes: size }) =>
    h(
      "li",
      {},
      h("i", { class: `di-swatch ${classOf(classes, name)}` }),
      h("span", {}, name),
      h("b", { class: "di-num" }, bytes(size)),
      h("span", { class: "di-muted di-num" }, percent(size, buffers.peak)),
    ),
  );
  return [
    h(
      "div",
      { class: "di-stack", role: "img", "aria-label": label.join(", "), "data-testid": "classes" },
      bar,
      marked ? mark : null,
    ),
    h("ul", { class: "di-classes", "data-testid": "class-legend" }, ...legend),
  ];
}
