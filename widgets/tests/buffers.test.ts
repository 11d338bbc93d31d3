import { describe, expect, test } from "vitest";
import { gpt, small } from "../dev/fixture";
import { settled, show } from "./show";

const program = small();
const compiled = () => program.compiled(1);
const texts = (el: HTMLElement, selector: string): string[] =>
  [...el.querySelectorAll(selector)].map((one) => one.textContent ?? "");
const press = (el: HTMLElement, key: string, init: KeyboardEventInit = {}): void => {
  el.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...init }));
};

describe("what fills the device at the peak", () => {
  test("before Compare it says who is asked, and tells the program order's peak", () => {
    const s = show(program);
    expect(s.get("peak-sentence").textContent).toContain("Compare asks XLA");
    expect(s.get("peak-sentence").textContent).toContain("In program order (StableHLO) the peak is");
    expect(s.el.querySelector("[data-testid=contributors]")!.children).toHaveLength(0);
    expect(s.get("variant-jax").closest<HTMLElement>("[role=group]")!.hidden).toBe(true);
  });

  test("sentence, classes and buffers are those of jax, and of another variant when it is chosen", async () => {
    const { comparison, xla_curves } = compiled();
    const s = show(program, { comparison, xla_curves });
    const [none, jax] = comparison.buffers;
    expect(s.get("peak-sentence").textContent).toBe(jax!.sentence.map(({ text }) => text).join(""));
    expect(s.get("peak-sentence").querySelector("b")!.textContent).toBe(jax!.sentence[1]!.text);
    expect(texts(s.get("class-legend"), "li span:first-of-type")).toEqual(
      jax!.classes.filter(({ bytes }) => bytes > 0).map(({ name }) => name),
    );
    expect(s.get("variant-jax").getAttribute("aria-pressed")).toBe("true");
    expect(s.get("variant-pass").getAttribute("aria-pressed")).toBe("true");
    s.get("variant-none").click();
    await settled();
    expect(s.get("peak-sentence").textContent).toBe(none!.sentence.map(({ text }) => text).join(""));
    expect(s.get("variant-jax").getAttribute("aria-pressed")).toBe("false");
    expect(s.get("copies").hidden).toBe(true);
  });

  test("the bar adds up to the peak, and every part has a name beside its colour", () => {
    const { comparison, xla_curves } = compiled();
    const s = show(program, { comparison, xla_curves });
    const widths = [...s.get("classes").querySelectorAll<HTMLElement>(".di-class")].map((one) =>
      Number.parseFloat(one.style.width),
    );
    const scale = Math.max(...comparison.buffers.map(({ reserved }) => reserved));
    expect(widths.reduce((sum, one) => sum + one, 0)).toBeCloseTo((100 * comparison.buffers[1]!.peak) / scale, 6);
    expect(s.get("classes").getAttribute("aria-label")).toContain("optimizer state");
    expect(s.get("classes").querySelectorAll(".di-class")).toHaveLength(s.get("class-legend").children.length);
  });

  test("the device is a mark on the bar when it is near, and words say whether it fits", () => {
    const jax = compiled().comparison.buffers[1]!.reserved;
    const near = show(program, program.compiled(1, "tpu:v5e", jax - 1000));
    expect(near.get("peak-fits").textContent).toContain("does not fit");
    expect(near.get("peak-fits").textContent).toContain("over by 1.0 KB");
    expect(near.get("capacity").textContent).not.toBe("");
    expect(near.get("peak-target").textContent).toBe("tpu:v5e, compiled, not run");
    const far = show(program, program.compiled(1, "tpu:v5e", jax * 100));
    expect(far.get("peak-fits").textContent).toContain(": fits the");
    expect(far.el.querySelector("[data-testid=capacity]")).toBeNull();
    const unknown = show(program, compiled());
    expect(unknown.get("peak-fits").textContent).toContain("the memory of cpu is unknown here");
  });

  test("buffers are ranked, open to their stack, and the rest is counted", async () => {
    const made = gpt();
    const s = show(made, made.compiled(1));
    const list = s.get("contributors");
    expect(list.children).toHaveLength(10);
    const first = list.querySelector("button")!;
    first.focus();
    first.click();
    expect(first.getAttribute("aria-expanded")).toBe("true");
    expect(document.activeElement).toBe(first);
    const details = s.get("contributor-details").textContent;
    for (const text of ["model.py:41 in attention", "jit(train_step)/jvp(attention)/exp", "fusion.0"])
      expect(details).toContain(text);
    first.click();
    expect(s.get("contributor-details").hidden).toBe(true);
    s.get("more-contributors").click();
    expect(list.children).toHaveLength(50);
    expect(list.parentElement!.textContent).toContain("214 smaller ones hold");
  });

  test("a variant without buffers cannot be chosen and says why", () => {
    const { comparison, xla_curves } = compiled();
    Object.assign(comparison.variants[2]!, { buffers: null, error: "the pass made no pairs" });
    const s = show(program, { comparison, xla_curves });
    expect(s.get<HTMLButtonElement>("variant-pass").disabled).toBe(true);
    expect(s.get("variant-pass").title).toBe("the pass made no pairs");
    for (const variant of comparison.variants) variant.buffers = null;
    comparison.variants[1]!.buffersError = "no buffer assignment";
    const none = show(program, {
      comparison: { ...comparison, buffers: [] },
      xla_curves: new DataView(new ArrayBuffer(0)),
    });
    expect(none.get("peak-sentence").textContent).toContain("no buffer assignment");
    none.get("tab-xla").click();
    expect(none.get("schedule").textContent).toContain("no buffer assignment");
  });

  test("an earlier donation's buffers are marked", async () => {
    const s = show(program, compiled());
    expect(s.get("peak-stale").hidden).toBe(true);
    s.set(program.toggled(new Set(), 2));
    await settled();
    expect(s.get("peak-stale").hidden).toBe(false);
  });

  test("what a program says is text", () => {
    const evil = '<img src=x onerror="alert(1)">';
    const { comparison, xla_curves } = compiled();
    const jax = comparison.buffers[1]!;
    const contributors = jax.contributors.map((one) => ({
      ...one,
      label: evil,
      source: evil,
      stack: [evil],
      opName: evil,
    }));
    const copies = jax.copies.map((one) => ({ ...one, argument: evil, sentence: evil, advice: evil }));
    const instructions = jax.instructions.split("\n").fill(evil).join("\n");
    Object.assign(jax, { contributors, copies, instructions, sentence: [{ text: evil, strong: true }] });
    const s = show(program, { comparison, xla_curves });
    s.get("contributors").querySelector("button")!.click();
    expect(s.el.querySelector("img")).toBeNull();
    expect(s.get("peak").textContent).toContain(evil);
    expect(s.get("xla-readout").textContent).toContain(evil);
  });
});

describe("why a copy", () => {
  test("the argument, the result, what reads it and the way out, in both places", () => {
    const { comparison, xla_curves } = compiled();
    const [copy] = comparison.buffers[1]!.copies;
    const { state } = program.traits;
    const verdicts = state.verdicts.map((verdict, i) => (i === 0 ? ("aliased, saves nothing" as const) : verdict));
    const s = show(program, { comparison, xla_curves, state: { ...state, verdicts } });
    expect(s.get("tree").querySelector(".di-vain")!.textContent).toContain("aliased, saves nothing");
    s.get("tree").querySelector<HTMLElement>(`[data-path="${copy!.argument}"]`)!.click();
    for (const place of ["copies", "argument-copies"])
      for (const text of [copy!.argument, copy!.result, copy!.sentence, copy!.advice])
        expect(s.get(place).textContent).toContain(text);
  });
});

describe("XLA's schedule", () => {
  test("takes the place of the program order once it is known, and a tab goes back", async () => {
    const s = show(program);
    expect(s.get("tab-program").getAttribute("aria-selected")).toBe("true");
    expect(s.get("schedule").hidden).toBe(true);
    s.set(compiled());
    await settled();
    expect(s.get("schedule").hidden).toBe(false);
    expect(s.get("schedule").textContent).toContain("XLA’s schedule, cpu, compiled");
    s.get("tab-program").click();
    expect(s.get("schedule").hidden).toBe(true);
    expect(s.get("curve").closest<HTMLElement>(".di-picture")!.textContent).toContain("not XLA’s schedule");
    press(s.get("tab-program").parentElement!, "ArrowLeft");
    expect(s.get("schedule").hidden).toBe(false);
    expect(document.activeElement).toBe(s.get("tab-xla"));
  });

  test("starts at the peak of the variant, moves by keys, tells the bytes of each variant there", () => {
    const { comparison, xla_curves } = compiled();
    const s = show(program, { comparison, xla_curves });
    const canvas = s.get("xla-curve");
    const { peakAt, steps } = comparison.buffers[1]!;
    expect(canvas.getAttribute("aria-valuenow")).toBe(String(peakAt));
    expect(s.get("xla-cursor").textContent).toContain("(the peak of jax = pass)");
    press(canvas, "Home");
    expect(canvas.getAttribute("aria-valuenow")).toBe("0");
    press(canvas, "ArrowRight");
    expect(canvas.getAttribute("aria-valuenow")).toBe("2");
    press(canvas, "End");
    expect(canvas.getAttribute("aria-valuenow")).toBe(String(steps - 1));
    expect(texts(s.get("xla-readout"), "tbody th")).toEqual(["none", "jax = pass"]);
    expect(texts(s.get("xla-readout"), "tbody code")).toEqual(["fusion.1199", "fusion.1199"]);
    s.get("xla-to-peak").click();
    expect(canvas.getAttribute("aria-valuenow")).toBe(String(peakAt));
  });

  test("the legend switches variants and curves, one always stays", () => {
    const s = show(program, compiled());
    expect(s.get("show-pass").hidden).toBe(true);
    s.get("show-none").click();
    expect(texts(s.get("xla-readout"), "tbody th")).toEqual(["jax = pass"]);
    s.get("show-jax").click();
    expect(texts(s.get("xla-readout"), "tbody th")).toEqual(["jax = pass"]);
    for (const name of ["needed", "held", "reserved"]) s.get(`show-${name}`).click();
    expect(["needed", "held", "reserved"].map((name) => s.get(`show-${name}`).getAttribute("aria-pressed"))).toEqual([
      "false",
      "true",
      "false",
    ]);
  });

  test("curves of another length than the buffers say are an error in place", () => {
    const { comparison } = compiled();
    const s = show(program, { comparison, xla_curves: new DataView(new ArrayBuffer(8)) });
    expect(s.get("error").textContent).toContain("xla_curves: 1 numbers, expected 7200");
  });
});

describe("targets", () => {
  test("Compare asks for the chosen one, Measure says why it cannot", async () => {
    const s = show(program);
    const select = s.get<HTMLSelectElement>("target");
    expect([...select.options].map((one) => [one.textContent, one.disabled])).toEqual([
      ["cpu", false],
      ["tpu:v5e", false],
      ["cuda:h100", true],
    ]);
    expect(select.options[2]!.title).toContain("pip install");
    expect(s.get("missing-targets").textContent).toContain("cuda:h100 NVIDIA H100: needs JAX's CUDA plugin");
    s.get("compare").click();
    expect(s.sent.at(-1)).toEqual({ type: "compare", target: null });
    s.set({ job: { ...program.traits.job } });
    select.value = "tpu:v5e";
    select.dispatchEvent(new Event("change"));
    await settled();
    expect(s.get<HTMLButtonElement>("measure").disabled).toBe(true);
    expect(s.get("not-here").textContent).toContain("tpu:v5e is not here: compiled, not run");
    s.get("compare").click();
    expect(s.sent.at(-1)).toEqual({ type: "compare", target: "tpu:v5e" });
  });

  test("a target that was asked for from Python is chosen and named", () => {
    const s = show(program, program.compiled(1, "tpu:v5e:16x16", 1e9));
    expect(s.get<HTMLSelectElement>("target").value).toBe("tpu:v5e:16x16");
    expect(s.get("compiled").textContent).toContain("Compiled with XLA for tpu:v5e:16x16, not run");
    expect(texts(s.get("compiled"), "tbody td:nth-of-type(7)")).toEqual(["fits", "fits", "fits"]);
  });

  test("several targets are one table: total, saved, fits", () => {
    const { comparison, xla_curves } = compiled();
    const over = program.compiled(1, "tpu:v5e", 1000).comparison;
    expect(show(program, { comparison, xla_curves }).el.querySelector("[data-testid=targets]")).toBeNull();
    const targets = [...comparison.targets, ...over.targets];
    const s = show(program, { comparison: { ...comparison, targets }, xla_curves });
    const rows = [...s.get("targets").querySelectorAll("tbody tr")].map((row) => row.textContent);
    expect(rows).toHaveLength(6);
    expect(rows[0]).toContain("cpunone");
    expect(rows[3]).toContain("tpu:v5e");
    expect(rows[3]).toContain("over by");
    expect(rows[3]).toContain("compiled, not run");
  });
});

test("every focusable element of the new views keeps its keys from the notebook", () => {
  const s = show(program, program.compiled(1, "tpu:v5e", 1e9));
  s.get("contributors").querySelector("button")!.click();
  for (const tab of ["xla", "program"]) s.get(`tab-${tab}`).click();
  const focusable = [...s.el.querySelectorAll("[tabindex],input,button,select,textarea,a[href],summary")];
  expect(focusable.some((one) => one.tagName === "SELECT")).toBe(true);
  expect(focusable.some((one) => one.tagName === "SUMMARY")).toBe(true);
  for (const element of focusable) expect(element.getAttribute("data-lm-suppress-shortcuts")).toBe("true");
});
