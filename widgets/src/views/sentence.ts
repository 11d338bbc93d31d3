/** One sentence with the numbers that matter, what stands behind it, and the line of code to change. */

import { button, h, setText } from "../dom";
import type { Context, View } from "./view";

async function copy(text: string, from: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page without https, or without the permission: the older way needs a selection.
    const area = h("textarea", { class: "di-offscreen", "aria-hidden": "true" });
    area.value = text;
    from.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

export function sentence(context: Context): View {
  const { synced } = context;
  const headline = h("p", { class: "di-headline", "aria-live": "polite", "data-testid": "headline" });
  const sub = h("p", { class: "di-sub", "data-testid": "sub" });
  const code = h("code", { "data-testid": "fix" });
  const copied = h("span", { role: "status", class: "di-muted" });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const copyButton = button(
    "Copy",
    { class: "di-button", "aria-label": "Copy the line", "data-testid": "copy" },
    () => {
      void copy(code.textContent ?? "", fix).then((done) => {
        copyButton.focus();
        setText(copied, done ? "copied" : "select the line and copy it");
        clearTimeout(timer);
        timer = setTimeout(() => setText(copied, ""), 2000);
      });
    },
  );
  const fix = h("div", { class: "di-fix" }, code, copied, copyButton);
  const el = h("section", { class: "di-sentence", "aria-label": "result" }, headline, sub, fix);
  let shown = "";
  const update = (): void => {
    const state = synced.state();
    const key = JSON.stringify(state.headline);
    if (key !== shown) {
      shown = key;
      headline.replaceChildren(...state.headline.map(({ text, strong }) => (strong ? h("b", {}, text) : text)));
    }
    setText(sub, state.sub);
    sub.hidden = state.sub === "";
    setText(code, state.fix ?? "");
    fix.hidden = state.fix === null;
  };
  return { el, update, destroy: () => clearTimeout(timer) };
}
