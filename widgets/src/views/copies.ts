/** Why aliasing makes copies: what still reads the old value, where, and what would avoid it. */

import { button, h } from "../dom";
import { bytes, plural } from "../format";
import type { Buffers, Copied } from "../model";

const FIRST = 2;

export function copyRow(one: Copied): HTMLElement {
  return h(
    "li",
    {},
    h(
      "p",
      { class: "di-copy-head" },
      h("span", {}, h("code", {}, one.argument), " → ", one.result),
      h("b", { class: "di-num" }, bytes(one.bytes)),
    ),
    h("p", {}, one.sentence),
    one.advice === "" ? null : h("p", { class: "di-muted" }, one.advice),
  );
}

export interface Copies {
  el: HTMLElement;
  fill(buffers: Buffers): void;
}

/** A heading and one row an argument; nothing at all where there is no copy. */
export function copyRows(): Copies {
  const howMany = h("span", { class: "di-muted di-aside" });
  const list = h("ul", { class: "di-copies" });
  const more = button("", { class: "di-link", "data-testid": "more-copies" }, () => {
    all = !all;
    show();
  });
  const rest = h("span", { class: "di-muted" });
  const el = h(
    "div",
    { class: "di-why", "data-testid": "copies" },
    h("h4", {}, "Why a copy", howMany),
    list,
    h("p", { class: "di-more" }, more, rest),
  );
  let all = false;
  let copies: readonly Copied[] = [];

  function show(): void {
    list.replaceChildren(...(all ? copies : copies.slice(0, FIRST)).map(copyRow));
    more.hidden = copies.length <= FIRST;
    more.textContent = all ? "Show fewer" : `Show ${plural(copies.length - FIRST, "more", "more")}`;
  }
  return {
    el,
    fill(buffers) {
      copies = buffers.copies;
      const { count: others, bytes: size } = buffers.moreCopies;
      el.hidden = copies.length === 0;
      const total = copies.length + others;
      howMany.textContent = `${plural(total, "aliased argument")} ${total === 1 ? "costs" : "cost"} copies`;
      rest.textContent = others === 0 ? "" : `and ${plural(others, "smaller one")} with ${bytes(size)}`;
      show();
    },
  };
}
