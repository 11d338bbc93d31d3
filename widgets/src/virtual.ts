/** A list that holds only the rows on show, and uses a row again once it has scrolled away. */

import { h } from "./dom";

export interface VirtualList {
  el: HTMLElement;
  /** Draws again; `count` is read anew, and every row on show is filled anew. */
  refresh(): void;
  scrollTo(index: number, where?: "nearest" | "middle"): void;
  /** The row on show for an index. */
  row(index: number): HTMLElement | undefined;
  destroy(): void;
}

export interface Options<Row extends HTMLElement> {
  rowHeight: number;
  /** Height of the list where there is no layout (hidden, or tests). */
  fallbackHeight: number;
  overscan: number;
  count(): number;
  create(): Row;
  fill(row: Row, index: number): void;
  /** The row left the screen. */
  release?(row: Row): void;
  attributes: Record<string, string | number | boolean>;
}

export function virtualList<Row extends HTMLElement>(options: Options<Row>): VirtualList {
  const { rowHeight, overscan } = options;
  const el = h("div", { tabindex: 0, ...options.attributes });
  const spacer = h("div", { class: "di-spacer", role: "presentation" });
  el.append(spacer);
  const shown = new Map<number, Row>();
  const pool: Row[] = [];
  let frame = 0;

  const draw = (refill: boolean): void => {
    const count = options.count();
    const height = el.clientHeight || options.fallbackHeight;
    const first = Math.max(0, Math.floor(el.scrollTop / rowHeight) - overscan);
    const end = Math.min(count, Math.ceil((el.scrollTop + height) / rowHeight) + overscan);
    spacer.style.height = `${count * rowHeight}px`;
    for (const [index, row] of shown) {
      if (index >= first && index < end) continue;
      shown.delete(index);
      options.release?.(row);
      // A hidden row would drop the focus to the page, and with it the keys to the notebook.
      if (row.contains(document.activeElement)) el.focus({ preventScroll: true });
      row.hidden = true;
      pool.push(row);
    }
    for (let index = first; index < end; index++) {
      let row = shown.get(index);
      if (row && !refill) continue;
      if (!row) {
        row = pool.pop();
        if (!row) {
          row = options.create();
          spacer.append(row);
        }
        shown.set(index, row);
        row.hidden = false;
        row.style.transform = `translateY(${index * rowHeight}px)`;
      }
      options.fill(row, index);
    }
  };
  const onScroll = (): void => {
    if (frame === 0) {
      frame = requestAnimationFrame(() => {
        frame = 0;
        draw(false);
      });
    }
  };
  el.addEventListener("scroll", onScroll, { passive: true });
  const resized = new ResizeObserver(() => draw(false));
  resized.observe(el);

  return {
    el,
    refresh: () => draw(true),
    scrollTo(index, where = "nearest") {
      const height = el.clientHeight || options.fallbackHeight;
      const top = index * rowHeight;
      if (where === "middle") el.scrollTop = top - height / 2;
      else if (top < el.scrollTop) el.scrollTop = top;
      else if (top + rowHeight > el.scrollTop + height) el.scrollTop = top + rowHeight - height;
      draw(false);
    },
    row: (index) => shown.get(index),
    destroy() {
      resized.disconnect();
      if (frame !== 0) cancelAnimationFrame(frame);
      for (const row of shown.values()) options.release?.(row);
      shown.clear();
    },
  };
}
