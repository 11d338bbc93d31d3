/** A row of tabs over one panel: one stop of the tab key, arrows go from one to the next. */

import { button, h } from "./dom";

export interface Tabs<Name extends string> {
  el: HTMLElement;
  /** The id of the panel that the tabs control. */
  panel: string;
  /** The id of a tab. */
  id(name: Name): string;
  update(shown: Name): void;
}

let made = 0;

export function tabs<Name extends string>(
  label: string,
  items: readonly (readonly [Name, string])[],
  show: (name: Name) => void,
): Tabs<Name> {
  const prefix = `di-tabs-${made++}`;
  const id = (name: Name): string => `${prefix}-${name}`;
  const panel = `${prefix}-panel`;
  const buttons = items.map(([name, title]) =>
    button(
      title,
      { class: "di-tab", role: "tab", id: id(name), "aria-controls": panel, "data-testid": `tab-${name}` },
      () => show(name),
    ),
  );
  const el = h("div", { class: "di-tabs", role: "tablist", "aria-label": label }, ...buttons);
  el.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const now = buttons.findIndex((one) => one.getAttribute("aria-selected") === "true");
    const next = (now + step + items.length) % items.length;
    show(items[next]![0]);
    buttons[next]!.focus();
  });
  return {
    el,
    panel,
    id,
    update(shown) {
      items.forEach(([name], i) => {
        buttons[i]!.setAttribute("aria-selected", String(name === shown));
        buttons[i]!.tabIndex = name === shown ? 0 : -1;
      });
    },
  };
}
