/** Colours for the canvas, as the page's theme has them now. */

import { h } from "./dom";
import type { VariantName } from "./model";

export interface Palette {
  text: string;
  muted: string;
  grid: string;
  accent: string;
  peak: string;
  cursor: string;
  bad: string;
  kinds: string[];
  variants: Record<VariantName, string>;
}

/** A canvas takes no `light-dark()` and no custom property: the computed colour of a probe resolves both. */
export function palette(root: HTMLElement, kinds: readonly string[]): Palette {
  const probe = h("span", { hidden: true });
  root.append(probe);
  const read = (name: string): string => {
    probe.style.color = `var(--di-${name})`;
    return getComputedStyle(probe).color || "#888";
  };
  const found = {
    text: read("text"),
    muted: read("muted"),
    grid: read("line"),
    accent: read("accent"),
    peak: read("peak"),
    cursor: read("text"),
    bad: read("bad"),
    kinds: kinds.map((kind) => read(`kind-${kind}`)),
    variants: { none: read("variant-none"), jax: read("variant-jax"), pass: read("variant-pass") },
  };
  probe.remove();
  return found;
}

/** Calls back whenever the page's theme may have changed; returns the way to stop. */
export function onThemeChange(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  const attributeFilter = ["data-jp-theme-light", "data-jp-theme-name", "data-theme", "class"];
  observer.observe(document.body, { attributes: true, attributeFilter });
  observer.observe(document.documentElement, { attributes: true, attributeFilter });
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    dark.removeEventListener("change", changed);
  };
}
