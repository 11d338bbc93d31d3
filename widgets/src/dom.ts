/** Elements are made here and nowhere else, so that every focusable one keeps its keys from the notebook. */

type Value = string | number | boolean | null | undefined;
type Child = Node | string | null | undefined;

const FOCUSABLE = new Set(["a", "button", "input", "select", "summary", "textarea"]);

/**
 * Text goes in as text, never as HTML. JupyterLab runs its command-mode shortcuts ("d d" deletes the cell) on keys typed
 * in an element unless that very element says not to.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    el.setAttribute(name, value === true ? "" : String(value));
  }
  if (FOCUSABLE.has(tag) || attributes.tabindex !== undefined) el.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const child of children) if (child !== null && child !== undefined) el.append(child);
  return el;
}

export function button(label: string, attributes: Record<string, Value>, onClick: () => void): HTMLButtonElement {
  const el = h("button", { type: "button", ...attributes }, label);
  el.addEventListener("click", onClick);
  return el;
}

/** Writes only a difference: a live region speaks again whenever its text is set. */
export function setText(el: HTMLElement, text: string): void {
  if (el.textContent !== text) el.textContent = text;
}

/** Plain keys stay in the widget; the notebook still gets Escape, Shift+Enter and every modified key. */
export function guardKeys(event: KeyboardEvent): void {
  const notebooks = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape";
  if (!notebooks && !(event.shiftKey && event.key === "Enter")) event.stopPropagation();
}
