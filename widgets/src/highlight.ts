/** Colours stretches of text through the CSS Custom Highlight API: a coloured line stays one text node. */

import type { TokenClass } from "./mlir";

const CLASSES: TokenClass[] = ["comment", "string", "value", "symbol", "attribute", "type", "keyword", "op", "number"];

export type Painted = [Highlight, StaticRange][];

/** Highlights are the document's: all widgets share these, and each takes out only what it put in. */
function shared(name: TokenClass): Highlight | null {
  if (typeof CSS === "undefined" || !("highlights" in CSS) || typeof Highlight === "undefined") return null;
  const key = `di-${name}`;
  let found = CSS.highlights.get(key);
  if (!found) {
    found = new Highlight();
    CSS.highlights.set(key, found);
  }
  return found;
}

export interface Painter {
  paint(text: Text, tokens: readonly { class: TokenClass; start: number; end: number }[]): Painted;
  erase(painted: Painted): void;
}

export function painter(): Painter {
  const byClass = new Map(CLASSES.map((name) => [name, shared(name)]));
  return {
    paint(text, tokens) {
      const painted: Painted = [];
      for (const token of tokens) {
        const highlight = byClass.get(token.class);
        if (!highlight) continue;
        const range = new StaticRange({
          startContainer: text,
          startOffset: token.start,
          endContainer: text,
          endOffset: token.end,
        });
        highlight.add(range);
        painted.push([highlight, range]);
      }
      return painted;
    },
    erase(painted) {
      for (const [highlight, range] of painted) highlight.delete(range);
      painted.length = 0;
    },
  };
}
