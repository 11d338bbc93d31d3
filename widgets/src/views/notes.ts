/** What the lowering and the pass have to say. */

import { button, h } from "../dom";
import { plural } from "../format";
import type { Message } from "../model";
import type { Context, View } from "./view";

const FIRST = 8;
const RANK = { error: 0, warning: 1, note: 2 };

export function notes(context: Context): View {
  const list = h("ul", { class: "di-notes", "data-testid": "notes" });
  const more = button("", { class: "di-link" }, () => {
    all = !all;
    update();
  });
  const el = h("section", { "aria-label": "notes" }, h("h3", {}, "Notes and diagnostics"), list, more);
  let all = false;
  let shown = "";
  const item = ({ severity, text }: Message): HTMLElement =>
    h("li", { class: `di-${severity}` }, h("span", { class: "di-severity" }, severity), h("span", {}, text));
  const update = (): void => {
    const found = [...context.synced.state().diagnostics, ...context.synced.program.notes];
    found.sort((a, b) => RANK[a.severity] - RANK[b.severity]);
    el.hidden = found.length === 0;
    const key = JSON.stringify([all, found]);
    if (key === shown) return;
    shown = key;
    list.replaceChildren(...(all ? found : found.slice(0, FIRST)).map(item));
    more.hidden = found.length <= FIRST;
    more.textContent = all ? "Show fewer" : `Show ${plural(found.length - FIRST, "more note", "more notes")}`;
  };
  return { el, update };
}
