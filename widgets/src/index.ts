/** The widget: one column of views over one connection to the kernel. */

import { guardKeys, h } from "./dom";
import type { Model } from "./model";
import { connect, type Synced } from "./synced";
import { argumentsView } from "./views/arguments";
import { figures } from "./views/figures";
import { header } from "./views/header";
import { irView } from "./views/ir";
import { memoryView } from "./views/memory";
import { notes } from "./views/notes";
import { peakView } from "./views/peak";
import { sentence } from "./views/sentence";
import type { Context, View } from "./views/view";
import { viewState } from "./viewstate";

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  el.classList.add("di-root");
  el.addEventListener("keydown", guardKeys);
  let views: View[] = [];
  let synced: Synced | null = null;
  const failed = (error: unknown): void => {
    const text = `The widget cannot show this program: ${error instanceof Error ? error.message : String(error)}`;
    el.querySelector(".di-crash")?.remove();
    el.prepend(h("p", { class: "di-error di-crash", role: "alert", "data-testid": "error" }, text));
  };
  const changed = (): void => {
    try {
      for (const view of views) view.update();
    } catch (error) {
      failed(error);
    }
  };
  try {
    synced = connect(model, changed);
    const context: Context = {
      synced,
      view: viewState(synced.state().changes.length > 0 ? "diff" : "before"),
      changed,
    };
    views = [header, sentence, peakView, argumentsView, memoryView, irView, figures, notes].map((make) =>
      make(context),
    );
    const [head, told, peak, tree, memory, ...below] = views.map((view) => view.el);
    el.replaceChildren(head!, told!, peak!, h("div", { class: "di-columns" }, tree!, memory!), ...below);
    changed();
  } catch (error) {
    failed(error);
  }
  let frame = requestAnimationFrame(() => {
    changed();
    frame = requestAnimationFrame(() => {
      el.dataset.ready = "1";
    });
  });
  return () => {
    cancelAnimationFrame(frame);
    synced?.destroy();
    for (const view of views) view.destroy?.();
    el.removeEventListener("keydown", guardKeys);
    el.replaceChildren();
    el.classList.remove("di-root");
    delete el.dataset.ready;
  };
}

export default { render };
