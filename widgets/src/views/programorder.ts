/** Memory in program order: the curve, the live ranges under it, and who is live at the operation under the cursor. */

import { button, h, setText } from "../dom";
import { bytes, count, place, plural } from "../format";
import { bySize, type Lanes, lanes, liveAt, type Rest, restCurve } from "../lanes";
import { operation } from "../mlir";
import { draw, type Geometry, geometry, LANES_AT_MOST, opAt, rangeAt, type Scene } from "../plot";
import { onThemeChange, type Palette, palette } from "../theme";
import type { Context, View } from "./view";

const LIVE_SHOWN = 6;
/** A range below this share of the peak gets no lane of its own. */
const FLOOR = 1 / 1000;
const HIDDEN_FRAMES = 60;

export function programOrderView(context: Context): View {
  const { synced, view } = context;
  const { ranges } = synced;
  const { operations, kinds } = synced.program;
  const order = bySize(ranges.bytes);
  const canvas = h("canvas", {
    class: "di-canvas",
    tabindex: 0,
    role: "slider",
    "aria-label": "Operation under the cursor",
    "aria-orientation": "horizontal",
    "aria-valuemin": 0,
    "aria-valuemax": Math.max(0, operations - 1),
    "data-testid": "curve",
  });
  const legend = h(
    "p",
    { class: "di-legend" },
    ...kinds.map((kind) => h("span", {}, h("i", { class: `di-swatch di-kind-${kind}` }), kind)),
    h("span", {}, h("i", { class: "di-stroke" }), "this donation"),
    h("span", {}, h("i", { class: "di-stroke di-dashed" }), "nothing donated"),
  );
  const where = h("span", { class: "di-where", role: "status", "data-testid": "cursor" });
  const toPeak = button("Go to peak", { class: "di-link", "data-testid": "to-peak" }, () => moveTo(null));
  const list = h("ol", { class: "di-live", "data-testid": "live" });
  const rest = h("p", { class: "di-muted" });
  const el = h(
    "div",
    { class: "di-picture", "aria-label": "memory in program order" },
    h("h3", {}, "Memory in program order (StableHLO), not XLA’s schedule"),
    legend,
    canvas,
    h("p", { class: "di-cursor" }, where, toPeak),
    list,
    rest,
  );
  const items = Array.from({ length: LIVE_SHOWN }, () => liveItem());
  let colours: Palette | null = null;
  let packed: { ends: Int32Array; lanes: Lanes; rest: Rest } | null = null;
  let shape: Geometry | null = null;
  let mostLanes = 0;
  let frame = 0;
  let hiddenFrames = 0;

  function liveItem() {
    const name = h("code", {});
    const source = h("span", { class: "di-muted di-source" });
    const size = h("span", { class: "di-num" });
    const open = button("", { class: "di-live-row" }, () => {
      if (item.index >= 0) look(item.index);
    });
    open.append(name, source, size);
    const item = { el: h("li", {}, open), open, name, source, size, index: -1 };
    return item;
  }

  /** An argument goes by the user's name for it, another value by its own and its operation's. */
  function nameOf(index: number): string {
    const leaf = ranges.leaf[index]!;
    if (leaf >= 0) return synced.program.arguments.path[leaf]!;
    const op = operation(synced.ir[ranges.line[index]!] ?? "");
    return op === "" ? ranges.names[index]! : `${ranges.names[index]} ${op}`;
  }

  /** Points every view at a range. */
  function look(index: number): void {
    view.range = index;
    view.line = ranges.line[index]!;
    if (view.line >= 0) view.tab = "before";
    context.changed();
  }

  function moveTo(op: number | null): void {
    view.op = op === null ? null : Math.max(0, Math.min(operations - 1, op));
    context.changed();
  }

  const at = (): number => Math.max(0, Math.min(operations - 1, view.op ?? synced.state().peak.at));

  function scene(): Scene {
    const ends = synced.ends();
    const { peak } = synced.state();
    if (packed === null || packed.ends !== ends) {
      const found = lanes(ranges, ends, order, operations, LANES_AT_MOST, peak.bytes * FLOOR);
      packed = { ends, lanes: found, rest: restCurve(ranges, ends, found.rest, kinds.length, operations) };
    }
    return {
      ranges,
      ends,
      lanes: packed.lanes,
      rest: packed.rest,
      curve: synced.curve(),
      baseline: synced.baseline,
      operations,
      peak,
      op: at(),
      range: view.range,
    };
  }

  function paint(): void {
    frame = 0;
    const width = el.clientWidth;
    if (width === 0) {
      // JupyterLab hides everything while it changes the theme, too briefly for the ResizeObserver to tell.
      if (hiddenFrames++ < HIDDEN_FRAMES) repaint();
      return;
    }
    hiddenFrames = 0;
    const c = canvas.getContext("2d");
    const now = scene();
    const ratio = window.devicePixelRatio || 1;
    // A toggle that frees lanes leaves the picture as tall as it was.
    mostLanes = Math.max(mostLanes, now.lanes.used);
    const g = geometry(width, mostLanes, now);
    shape = g;
    canvas.style.height = `${g.height}px`;
    const pixels = [Math.round(width * ratio), Math.round(g.height * ratio)] as const;
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    if (!c) return;
    colours ??= palette(el, kinds);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const before = performance.now();
    draw(c, g, now, colours);
    canvas.dataset.drawMs = (performance.now() - before).toFixed(1);
  }
  const repaint = (): void => {
    if (frame === 0) frame = requestAnimationFrame(paint);
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !shape) return;
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const hit = rangeAt(shape, scene(), x, y);
    view.op = opAt(shape, operations, x);
    if (hit >= 0) look(hit);
    else context.changed();
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = Math.max(1, Math.round(operations / 20));
    const near = event.shiftKey ? 10 : 1;
    const to: Record<string, number> = {
      ArrowRight: at() + near,
      ArrowUp: at() + near,
      ArrowLeft: at() - near,
      ArrowDown: at() - near,
      PageUp: at() + far,
      PageDown: at() - far,
      Home: 0,
      End: operations - 1,
    };
    const op = to[event.key];
    if (op === undefined) return;
    event.preventDefault();
    moveTo(op);
  });
  const resized = new ResizeObserver(repaint);
  resized.observe(el);
  const stopTheme = onThemeChange(() => {
    colours = null;
    repaint();
  });

  function fillLive(): void {
    const op = at();
    const live = liveAt(ranges, synced.ends(), order, op);
    const value = synced.curve()[op] ?? 0;
    const peak = synced.state().peak.at;
    const unknown = live.unknown === 0 ? "" : `, ${live.unknown} of unknown size left out`;
    const text = `${bytes(value)} live at op ${count(op)}${op === peak ? " (the peak)" : ""} · ${plural(live.indices.length, "value")}${unknown}`;
    setText(where, text);
    canvas.setAttribute("aria-valuenow", String(op));
    canvas.setAttribute("aria-valuetext", text);
    toPeak.hidden = op === peak;
    const shown = live.indices.slice(0, LIVE_SHOWN);
    list.replaceChildren(...shown.map((_, k) => items[k]!.el));
    shown.forEach((index, k) => {
      const item = items[k]!;
      const kind = kinds[ranges.kind[index]!] ?? "";
      item.index = index;
      item.name.className = `di-kind-${kind}`;
      setText(item.name, nameOf(index));
      setText(item.source, place(ranges.sources[index]!));
      item.source.title = ranges.sources[index]!;
      setText(item.size, bytes(ranges.bytes[index]!));
      item.open.title = `${nameOf(index)}: ${kind}, live from op ${ranges.start[index]} to ${synced.ends()[index]}`;
      item.open.setAttribute("aria-current", String(index === view.range));
    });
    const others = live.indices.slice(LIVE_SHOWN);
    let sum = 0;
    for (const index of others) sum += Number.isNaN(ranges.bytes[index]!) ? 0 : ranges.bytes[index]!;
    setText(rest, others.length === 0 ? "" : `and ${plural(others.length, "more", "more")}, ${bytes(sum)}`);
  }

  return {
    el,
    update() {
      fillLive();
      repaint();
    },
    destroy() {
      resized.disconnect();
      stopTheme();
      if (frame !== 0) cancelAnimationFrame(frame);
    },
  };
}
