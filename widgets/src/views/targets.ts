/** Which device Compare asks XLA for; what is not available says why. */

import { h } from "../dom";
import { bytes, plural } from "../format";
import type { Target } from "../model";
import type { Context } from "./view";

export interface Chooser {
  el: HTMLSelectElement;
  details: HTMLElement;
  /** Why nothing can be measured on the chosen target, "" where it can. */
  whyNotMeasured(): string;
  update(busy: boolean): void;
}

const HERE = "";

export function targetChooser(context: Context): Chooser {
  const { synced, view } = context;
  const { available, platform } = synced.program;
  const listed = new Map(available.map((target) => [target.name, target]));
  const select = h("select", { class: "di-select", "aria-label": "Target of Compare", "data-testid": "target" });
  for (const target of available) select.append(optionOf(target));
  if (!available.some(({ here }) => here)) {
    select.prepend(h("option", { value: HERE }, platform));
  }
  select.addEventListener("change", () => {
    view.target = select.value === HERE ? null : select.value;
    context.changed();
  });
  const missing = available.filter((target) => !target.available);
  const details = h(
    "details",
    { class: "di-missing", "data-testid": "missing-targets" },
    h("summary", {}, `${plural(missing.length, "target is", "targets are")} not available here`),
    h("ul", {}, ...missing.map((target) => h("li", {}, h("b", {}, target.name), ` ${target.device}: `, target.whyNot))),
  );
  details.hidden = missing.length === 0;

  function optionOf(target: Target): HTMLOptionElement {
    const facts = [target.device, target.capacity === null ? "" : bytes(target.capacity)].filter((one) => one !== "");
    return h(
      "option",
      {
        value: target.here ? HERE : target.name,
        disabled: !target.available,
        title: target.available ? facts.join(", ") : target.whyNot,
      },
      target.name,
    );
  }

  /** A target that was asked for from Python, as one of 16×16 chips, becomes a choice here too. */
  function known(name: string): void {
    if (!listed.has(name) && ![...select.options].some((option) => option.value === name))
      select.append(h("option", { value: name }, name));
  }

  let followed = "";
  return {
    el: select,
    details,
    whyNotMeasured: () => (view.target === null ? "" : `${view.target} is not here: compiled, not run`),
    update(busy) {
      select.disabled = busy;
      const found = synced.comparison();
      // What was asked for elsewhere is what the figures on the screen are for.
      if (found !== null && found.target !== followed) {
        followed = found.target;
        // "tpu:v5e" was answered for "tpu:v5e:1x1"
        if (view.target !== null && found.target.startsWith(`${view.target}:`)) return;
        view.target = found.here ? null : found.target;
      }
      if (view.target !== null) known(view.target);
      select.value = view.target ?? HERE;
    },
  };
}
