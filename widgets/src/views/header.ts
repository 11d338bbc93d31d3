/** Name and counts, the two buttons that start work, its progress and its errors. */

import { button, h, setText } from "../dom";
import { count, plural } from "../format";
import { targetChooser } from "./targets";
import type { Context, View } from "./view";

function counts(context: Context): string {
  const { wholes, arguments: args, operations, platform } = context.synced.program;
  return [
    plural(wholes.length, "argument"),
    plural(args.path.length, "leaf", "leaves"),
    `${count(operations)} ${operations === 1 ? "op" : "ops"}`,
    platform,
  ].join(" · ");
}

let ids = 0;

export function header(context: Context): View {
  const { synced } = context;
  const chooser = targetChooser(context);
  const notHere = h("span", { class: "di-muted di-not-here", id: `di-not-here-${ids++}`, "data-testid": "not-here" });
  const versions = Object.entries(synced.program.versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
  const compare = button(
    "Compare",
    { class: "di-button", "data-testid": "compare", title: "Compile the variants with XLA" },
    () => synced.send({ type: "compare", target: context.view.target }),
  );
  const measure = button(
    "Measure",
    { class: "di-button di-primary", "data-testid": "measure", "aria-describedby": notHere.id },
    () => synced.send({ type: "measure" }),
  );
  const cancel = button("Cancel", { class: "di-button", "data-testid": "cancel" }, () => {
    synced.send({ type: "cancel" });
  });
  const progress = h("progress", { "aria-label": "progress", max: 1, value: 0 });
  const label = h("span", { role: "status", "data-testid": "job" });
  const elapsed = h("span", { class: "di-muted di-num", "aria-hidden": "true" });
  const job = h("div", { class: "di-job" }, progress, label, elapsed, cancel);
  const error = h("p", { class: "di-error", role: "alert", "data-testid": "error" });
  const el = h(
    "header",
    { class: "di-header" },
    h("h2", { class: "di-name" }, synced.program.name),
    h("span", { class: "di-muted di-counts", title: versions }, counts(context)),
    h("span", { class: "di-actions" }, chooser.el, compare, measure),
    notHere,
    job,
    error,
    chooser.details,
  );
  let since = 0;
  let started: HTMLButtonElement = compare;
  let clock: ReturnType<typeof setInterval> | undefined;
  const tick = (): void => setText(elapsed, `${Math.round((Date.now() - since) / 1000)} s`);

  const update = (): void => {
    const now = synced.job();
    const busy = now.running || synced.starting();
    if (busy && clock === undefined) {
      since = Date.now();
      clock = setInterval(tick, 1000);
      tick();
    } else if (!busy) {
      clearInterval(clock);
      clock = undefined;
    }
    if (now.running) started = now.kind === "measure" ? measure : compare;
    const focused = document.activeElement;
    compare.disabled = busy;
    chooser.update(busy);
    const why = chooser.whyNotMeasured();
    measure.disabled = busy || why !== "";
    measure.title = why === "" ? "Run each variant in its own process" : why;
    setText(notHere, why === "" ? "" : `Measure: ${why}`);
    notHere.hidden = why === "";
    job.classList.toggle("di-idle", !busy);
    cancel.disabled = !busy;
    // A disabled button keeps no focus, and keys without one go to the notebook.
    if (busy && (focused === compare || focused === measure)) cancel.focus();
    if (!busy && focused === cancel) (started.disabled ? compare : started).focus();
    progress.max = Math.max(1, now.steps);
    if (now.running) progress.value = now.step;
    else progress.removeAttribute("value");
    const steps = now.running && now.steps > 0 ? ` · ${now.step} of ${now.steps}` : "";
    setText(label, now.running ? now.label + steps : synced.starting() ? "starting" : now.label);
    const problems = [
      synced.silent() ? "The kernel has not answered for 10 s: it is busy, or it has stopped. Try again." : "",
      synced.state().error?.text ?? "",
      now.error ?? "",
    ].filter((text) => text !== "");
    setText(error, problems.join("\n"));
    error.hidden = problems.length === 0;
  };
  return { el, update, destroy: () => clearInterval(clock) };
}
