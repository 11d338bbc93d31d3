/** Memory over XLA's own schedule: needed, held and reserved bytes of the variants, and their figures at one time. */

import { type CurvesScene, drawCurves, FAR, HEIGHT, highest, pointAt, type Trace, timeAt } from "../curves";
import { button, h, setText } from "../dom";
import { bytes, count } from "../format";
import type { VariantName } from "../model";
import { onThemeChange, type Palette, palette } from "../theme";
import { compiledFor, distinct, NAMES, shownAs } from "../variants";
import type { CurveName } from "../viewstate";
import type { Context, View } from "./view";

const CURVES: [CurveName, string][] = [
  ["needed", "bytes that hold a value which is still needed"],
  ["held", "parameters and outputs throughout, temporaries while they are needed"],
  ["reserved", "what the runtime takes for the whole call"],
];
const VARIANTS: VariantName[] = ["none", "jax", "pass"];
const HIDDEN_FRAMES = 60;

export function scheduleView(context: Context): View {
  const { synced, view } = context;
  const title = h("h3", {});
  const hint = h(
    "p",
    { class: "di-muted di-hint" },
    "Compare asks XLA for its schedule and its buffers; until then the program order is all that is known.",
  );
  const canvas = h("canvas", {
    class: "di-canvas",
    tabindex: 0,
    role: "slider",
    "aria-label": "Time of XLA’s schedule under the cursor",
    "aria-orientation": "horizontal",
    "aria-valuemin": 0,
    "data-testid": "xla-curve",
  });
  canvas.style.height = `${HEIGHT}px`;
  const variants = VARIANTS.map((name) => toggle(name, `di-variant-${name}`, NAMES[name]));
  const curves = CURVES.map(([name, told]) => toggle(name, `di-curve-${name}`, told));
  const legend = h(
    "div",
    { class: "di-legend di-toggles", role: "group", "aria-label": "Curves on show" },
    ...variants.map(({ el }) => el),
    h("span", { class: "di-gap" }),
    ...curves.map(({ el }) => el),
  );
  const where = h("span", { class: "di-where", role: "status", "data-testid": "xla-cursor" });
  const toPeak = button("Go to peak", { class: "di-link", "data-testid": "xla-to-peak" }, () => moveTo(null));
  const body = h("tbody", {});
  const heads = ["", "needed", "held", "reserved", "instruction"].map((text) => h("th", { scope: "col" }, text));
  const readout = h(
    "table",
    { class: "di-figures di-readout", "data-testid": "xla-readout" },
    h("thead", {}, h("tr", {}, ...heads)),
    body,
  );
  const note = h("p", { class: "di-muted di-small" });
  const picture = h("div", {}, legend, canvas, h("p", { class: "di-cursor" }, where, toPeak), readout, note);
  const el = h(
    "div",
    { class: "di-picture", "aria-label": "memory over XLA’s schedule", "data-testid": "schedule" },
    title,
    hint,
    picture,
  );
  let colours: Palette | null = null;
  let width = 0;
  let frame = 0;
  let hiddenFrames = 0;

  function toggle(name: VariantName | CurveName, swatch: string, told: string) {
    const label = h("span", {}, name);
    const made = button(
      "",
      { class: "di-toggle", title: told, "aria-pressed": "true", "data-testid": `show-${name}` },
      () => {
        if (!view.hidden.delete(name)) view.hidden.add(name);
        context.changed();
      },
    );
    made.append(h("i", { class: `di-stroke ${swatch}` }), label);
    return { el: made, label, name };
  }

  /** What is drawn: the variants that are switched on, or the chosen one where all are off. */
  function traces(): Trace[] {
    const all = distinct(synced.comparison());
    const schedules = synced.schedules();
    const on = all.filter(({ name }) => !view.hidden.has(name));
    const chosen = shownAs(synced.comparison(), view.variant) ?? all[0];
    return (on.length > 0 ? on : chosen ? [chosen] : []).map(({ name, label, index, buffers }) => ({
      name,
      label,
      curves: schedules[index]!,
      steps: buffers.steps,
      reserved: buffers.reserved,
      peak: buffers.peak,
      peakAt: buffers.peakAt,
    }));
  }

  /** The curves that are switched on; the held bytes where all are off. */
  function kinds(): Set<CurveName> {
    const on = CURVES.map(([name]) => name).filter((name) => !view.hidden.has(name));
    return new Set(on.length > 0 ? on : ["held"]);
  }

  function scene(): CurvesScene | null {
    const found = synced.comparison();
    const shown = traces();
    if (found === null || shown.length === 0) return null;
    const chosen = shownAs(found, view.variant)?.name;
    const first = shown.find(({ name }) => name === chosen) ?? shown[0]!;
    const steps = Math.max(...shown.map((one) => one.steps));
    const { capacity } = found;
    const near = capacity !== null && capacity <= FAR * highest(shown, kinds());
    const time = Math.max(0, Math.min(steps - 1, view.time ?? first.peakAt));
    return { traces: shown, kinds: kinds(), chosen: first.name, capacity: near ? capacity : null, steps, time };
  }

  function paint(): void {
    frame = 0;
    width = canvas.clientWidth;
    if (width === 0) {
      // JupyterLab hides everything while it changes the theme, too briefly for the ResizeObserver to tell.
      if (hiddenFrames++ < HIDDEN_FRAMES) repaint();
      return;
    }
    hiddenFrames = 0;
    const now = scene();
    const c = canvas.getContext("2d");
    const ratio = window.devicePixelRatio || 1;
    const pixels = [Math.round(width * ratio), Math.round(HEIGHT * ratio)] as const;
    if (canvas.width !== pixels[0] || canvas.height !== pixels[1]) [canvas.width, canvas.height] = pixels;
    if (!c || !now) return;
    colours ??= palette(el, []);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawCurves(c, width, now, colours);
  }
  const repaint = (): void => {
    if (frame === 0) frame = requestAnimationFrame(paint);
  };

  /** Nothing but this picture follows the cursor: a mouse that moves must not fill every view again. */
  function moveTo(time: number | null): void {
    view.time = time;
    update();
  }
  /** The next time that there is a point of, so that a step of the keys always shows something. */
  function stepped(now: CurvesScene, points: number): number {
    const { times } = now.traces.find(({ name }) => name === now.chosen)!.curves;
    const at = pointAt(times, now.time) + points;
    return times[Math.max(0, Math.min(times.length - 1, at))] ?? 0;
  }
  const pointTo = (event: PointerEvent): void => {
    const now = scene();
    if (now) moveTo(timeAt(width, now.steps, event.clientX - canvas.getBoundingClientRect().left));
  };
  canvas.addEventListener("pointerdown", pointTo);
  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") pointTo(event);
  });
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && document.activeElement !== canvas) moveTo(null);
  });
  canvas.addEventListener("keydown", (event) => {
    const now = scene();
    if (!now || event.ctrlKey || event.metaKey || event.altKey) return;
    const far = Math.max(1, Math.round(now.steps / 20));
    const near = event.shiftKey ? 10 : 1;
    const to: Record<string, () => number> = {
      ArrowRight: () => stepped(now, near),
      ArrowUp: () => stepped(now, near),
      ArrowLeft: () => stepped(now, -near),
      ArrowDown: () => stepped(now, -near),
      PageUp: () => Math.min(now.steps - 1, now.time + far),
      PageDown: () => Math.max(0, now.time - far),
      Home: () => 0,
      End: () => now.steps - 1,
    };
    const time = to[event.key];
    if (time === undefined) return;
    event.preventDefault();
    moveTo(time());
  });
  const resized = new ResizeObserver(repaint);
  resized.observe(el);
  const stopTheme = onThemeChange(() => {
    colours = null;
    repaint();
  });

  function row(one: Trace, time: number): HTMLElement {
    const at = pointAt(one.curves.times, time);
    const gone = time >= one.steps;
    const figure = (value: number | undefined): HTMLElement =>
      h("td", { class: "di-num" }, gone ? "ended" : bytes(value ?? null));
    const instruction = gone ? "" : one.curves.instructions[at]!;
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("i", { class: `di-stroke di-variant-${one.name}` }), one.label),
      figure(one.curves.needed[at]),
      figure(one.curves.held[at]),
      figure(one.reserved),
      h("td", { class: "di-instruction", title: instruction }, h("code", {}, instruction)),
    );
  }

  function fill(now: CurvesScene): void {
    const chosen = now.traces.find(({ name }) => name === now.chosen)!;
    const peak = now.time === chosen.peakAt;
    const text = `time ${count(now.time)} of ${count(now.steps)}${peak ? ` (the peak of ${chosen.label})` : ""}`;
    setText(where, text);
    toPeak.hidden = view.time === null || peak;
    canvas.setAttribute("aria-valuemax", String(now.steps - 1));
    canvas.setAttribute("aria-valuenow", String(now.time));
    const at = pointAt(chosen.curves.times, now.time);
    const held = `${chosen.label} holds ${bytes(chosen.curves.held[at] ?? null)} at ${chosen.curves.instructions[at]}`;
    canvas.setAttribute("aria-valuetext", `${text}; ${held}`);
    body.replaceChildren(...now.traces.map((one) => row(one, now.time)));
    const thinned = now.traces.filter((one) => one.curves.times.length < one.steps);
    setText(
      note,
      thinned.length === 0
        ? ""
        : `Drawn from ${count(thinned[0]!.curves.times.length)} of ${count(thinned[0]!.steps)} times: the highest of each stretch, the peak among them.`,
    );
    note.hidden = thinned.length === 0;
  }

  let last: unknown = null;
  function update(): void {
    const found = synced.comparison();
    // A time of another program's schedule means nothing.
    if (found !== last && last !== null) view.time = null;
    last = found;
    const now = scene();
    const all = distinct(found);
    setText(
      title,
      found === null ? "Memory over XLA’s schedule" : `XLA’s schedule, ${compiledFor(found.target, found.here)}`,
    );
    hint.hidden = now !== null;
    picture.hidden = now === null;
    if (now === null) {
      if (found !== null) {
        const why = found.variants.map((one) => one.buffersError ?? one.error).find((one) => one !== null);
        setText(hint, `XLA gave no buffers for ${found.target}${why ? `: ${why}` : "."}`);
      }
      return;
    }
    for (const { el: made, label, name } of variants) {
      const entry = all.find((one) => one.name === name);
      made.hidden = entry === undefined;
      setText(label, entry?.label ?? name);
      made.setAttribute("aria-pressed", String(now.traces.some((one) => one.name === name)));
    }
    for (const { el: made, name } of curves) {
      made.setAttribute("aria-pressed", String(now.kinds.has(name as CurveName)));
    }
    fill(now);
    repaint();
  }

  return {
    el,
    update,
    destroy() {
      resized.disconnect();
      stopTheme();
      if (frame !== 0) cancelAnimationFrame(frame);
    },
  };
}
