/** Why aliasing makes copies: what still reads the old value, where, and what would avoid it. */

import { h } from "../dom";
import { bytes, place } from "../format";
import type { Copied } from "../model";

export function copyRow(one: Copied): HTMLElement {
  const read = one.reader === "" ? null : h("code", {}, one.reader);
  return h(
    "li",
    {},
    h("p", {}, h("code", {}, one.argument), " → ", h("code", {}, one.result), h("b", {}, bytes(one.bytes))),
    read === null
      ? null
      : h(
          "p",
          {},
          "still read by ",
          read,
          one.source === "" ? null : h("span", { title: one.source }, ` at ${place(one.source)}`),
        ),
    one.advice === "" ? null : h("p", { class: "di-muted" }, one.advice),
  );
}

/** A heading and one row a copy; nothing at all where there is none. */
export function copies(found: readonly Copied[], howMany: string): HTMLElement[] {
  if (found.length === 0) return [];
  return [
    h("h4", {}, "Why a copy", h("span", { class: "di-muted di-aside" }, `${howMany} made by aliasing`)),
    h("ul", { class: "di-copies" }, ...found.map(copyRow)),
  ];
}
