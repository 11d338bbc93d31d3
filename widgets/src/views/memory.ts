/** Memory over time, one of two pictures in the same place: XLA's schedule, or the StableHLO's program order. */

import { h } from "../dom";
import { tabs } from "../tabs";
import { distinct } from "../variants";
import type { Picture } from "../viewstate";
import { programOrderView } from "./programorder";
import { scheduleView } from "./schedule";
import type { Context, View } from "./view";

export function memoryView(context: Context): View {
  const { synced, view } = context;
  const pictures: Record<Picture, View> = { xla: scheduleView(context), program: programOrderView(context) };
  const bar = tabs<Picture>(
    "Memory over time",
    [
      ["xla", "XLA’s schedule"],
      ["program", "program order"],
    ],
    (picture) => {
      view.picture = picture;
      context.changed();
    },
  );
  const panel = h("div", { role: "tabpanel", id: bar.panel }, pictures.xla.el, pictures.program.el);
  const el = h(
    "section",
    { class: "di-memory", "aria-label": "memory" },
    h("div", { class: "di-tabbar" }, bar.el),
    panel,
  );
  const update = (): void => {
    const shown = view.picture ?? (distinct(synced.comparison()).length > 0 ? "xla" : "program");
    bar.update(shown);
    panel.setAttribute("aria-labelledby", bar.id(shown));
    for (const picture of ["xla", "program"] as const) pictures[picture].el.hidden = picture !== shown;
    pictures[shown].update();
  };
  return {
    el,
    update,
    destroy: () => {
      for (const picture of Object.values(pictures)) picture.destroy?.();
    },
  };
}
