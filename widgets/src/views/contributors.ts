/** The buffers at the peak, most bytes first; each opens to the stack of the line that made it. */

import { button, h } from "../dom";
import { bytes, count, place, plural } from "../format";
import type { Buffers, Contributor } from "../model";
import { classOf } from "./bar";

const FIRST = 10;

export interface Contributors {
  el: HTMLElement;
  fill(buffers: Buffers): void;
}

export function contributorRows(classes: readonly string[]): Contributors {
  const list = h("ol", { class: "di-contributors", "data-testid": "contributors" });
  const more = button("", { class: "di-link", "data-testid": "more-contributors" }, () => {
    all = !all;
    if (buffers) fill(buffers);
  });
  const rest = h("span", { class: "di-muted" });
  const el = h("div", {}, h("h4", {}, "Largest buffers at the peak"), list, h("p", { class: "di-more" }, more, rest));
  let all = false;
  let buffers: Buffers | null = null;

  function fill(found: Buffers): void {
    buffers = found;
    const { contributors } = found;
    list.replaceChildren(...(all ? contributors : contributors.slice(0, FIRST)).map((one) => row(one, classes)));
    more.hidden = contributors.length <= FIRST;
    more.textContent = all ? "Show fewer" : `Show ${plural(contributors.length - FIRST, "more", "more")}`;
    const { count: n, bytes: size } = found.more;
    rest.textContent = n === 0 ? "" : `${plural(n, "smaller one")} hold${n === 1 ? "s" : ""} ${bytes(size)}`;
  }
  return { el, fill };
}

function row(one: Contributor, classes: readonly string[]): HTMLElement {
  const name = h(
    "span",
    { class: "di-class-name", title: one.class },
    h("i", { class: `di-swatch ${classOf(classes, one.class)}` }),
  );
  name.append(h("span", {}, one.class));
  const size = h("b", { class: "di-num" }, bytes(one.bytes));
  const label = h("code", { class: "di-what", title: one.label }, one.label);
  const type = h("code", { class: "di-muted di-type", title: one.type }, one.type);
  const source = h("span", { class: "di-muted di-source", title: one.source }, place(one.source));
  let details: HTMLElement | null = null;
  const open = button("", { class: "di-contributor", "aria-expanded": "false" }, () => {
    const opened = details === null || details.hidden;
    if (details === null) {
      details = detailsOf(one);
      item.append(details);
    }
    details.hidden = !opened;
    open.setAttribute("aria-expanded", String(opened));
  });
  open.append(name, size, label, type, source);
  const item = h("li", {}, open);
  return item;
}

function detailsOf(one: Contributor): HTMLElement {
  const live = one.start === null || one.end === null ? "" : `live from time ${count(one.start)} to ${count(one.end)}`;
  const facts = [one.instruction, one.type, live].filter((fact) => fact !== "");
  const lines = one.stack.length === 0 ? [h("li", {}, "no line of Python is known for it")] : one.stack.map(frame);
  return h(
    "div",
    { class: "di-contributor-details", "data-testid": "contributor-details" },
    h("p", {}, facts.length === 0 ? "These bytes hold no value now." : facts.join(" · ")),
    one.opName === "" ? null : h("p", {}, h("code", {}, one.opName)),
    h("ol", { class: "di-stack-frames" }, ...lines),
  );
}

const frame = (text: string): HTMLElement => h("li", {}, h("code", {}, text));
