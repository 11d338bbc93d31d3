import { describe, expect, test, vi } from "vitest";
import { gpt, large, small } from "../dev/fixture";
import { type Shown, settled, show } from "./show";

const box = (s: Shown, name: string) => s.get<HTMLInputElement>(`donate-${name}`);
const program = small();
/** Rows on show in the tree, as their texts. */
const rows = (s: Shown): string[] =>
  [...s.get("tree").querySelectorAll<HTMLElement>(".di-row")].filter((r) => !r.hidden).map((r) => r.textContent ?? "");

describe("first screen", () => {
  test("sentence, strong numbers, and the line to copy", () => {
    const s = show(program);
    expect(s.get("headline").textContent).toBe(program.traits.state.headline.map((part) => part.text).join(""));
    expect(s.get("headline").querySelectorAll("b")).toHaveLength(1);
    expect(s.get("fix").textContent).toBe(program.traits.state.fix);
  });

  test("no line to copy where the function already donates", () => {
    const s = show(program, { state: { ...program.traits.state, fix: null } });
    expect(s.get("fix").parentElement!.hidden).toBe(true);
  });

  test("only whole arguments have a checkbox", () => {
    const s = show(gpt());
    expect([...s.el.querySelectorAll("input")].map((input) => input.dataset.testid)).toEqual([
      "donate-params",
      "donate-opt_state",
      "donate-ids",
    ]);
    expect([box(s, "params").checked, box(s, "opt_state").checked]).toEqual([true, false]);
  });

  test("groups add up bytes and verdicts", () => {
    const s = show(gpt());
    expect(rows(s)[0]).toContain("33 leaves");
    expect(rows(s)[0]).toContain("33 of 33 aliased");
  });

  test.each([
    ["gpt", gpt],
    ["large", large],
  ])("%s stays under 600 nodes, with every figure on show", (_, make) => {
    const made = make();
    const s = show(made, { ...made.compiled(1), measurement: made.measurement(1) });
    for (const tab of ["before", "after", "diff"]) {
      s.get(`tab-${tab}`).click();
      expect(s.el.querySelectorAll("*").length).toBeLessThan(600);
    }
  });

  test("text of the program is text", () => {
    const evil = '<img src=x onerror="alert(1)">';
    const { program: p, state } = program.traits;
    const s = show(program, {
      program: { ...p, name: evil, arguments: { ...p.arguments, path: p.arguments.path.map(() => evil) } },
      state: { ...state, headline: [{ text: evil, strong: true }], reasons: state.reasons.map(() => evil) },
      ir: `module {\n${evil}\n}`,
    });
    s.get("tab-before").click();
    expect(s.el.querySelector("img")).toBeNull();
    expect(s.el.textContent).toContain(evil);
  });

  test("a program without arguments, values or operations is shown", () => {
    const none = new DataView(new ArrayBuffer(0));
    const { program: p, state } = program.traits;
    const s = show(program, {
      program: {
        ...p,
        operations: 0,
        wholes: [],
        arguments: { path: [], label: [], nbytes: [], perDevice: [], whole: [], dropped: [] },
        rangeNames: "",
        rangeSources: "",
      },
      ...{ ranges: none, range_bytes: none, freed: none, baseline_curve: none, ends: none, ir: "" },
      state: { ...state, donated: [], verdicts: [], reasons: [], results: [], candidates: [], pairs: [], changes: [] },
    });
    expect(s.el.querySelector(".di-crash")).toBeNull();
    expect(s.get("ir-summary").textContent).toContain("changes nothing");
  });

  test("traits that cannot be read are an error in place", () => {
    const s = show(program, { ends: new DataView(new ArrayBuffer(3)) });
    expect(s.get("error").textContent).toContain("ends: 3 bytes");
  });
});

describe("toggling", () => {
  test("sends one message, shows it at once, and everything follows the answer", async () => {
    const s = show(program);
    box(s, "opt_state").click();
    expect(s.sent).toEqual([{ type: "donate", whole: 1, donate: true }]);
    await settled();
    expect(box(s, "opt_state").checked).toBe(true);
    expect(s.get("headline").textContent).toContain(program.traits.state.headline[1]!.text);
    const before = s.get("ir").textContent!.split("materialize_in_destination").length;
    s.set(program.toggled(new Set([0, 1]), 2));
    await settled();
    expect(box(s, "opt_state").checked).toBe(true);
    expect(s.get("ir").textContent!.split("materialize_in_destination").length).toBeGreaterThan(before);
    expect(s.get("sub").textContent).toContain("4 of 5 leaves donated");
    expect(s.get("ir-summary").textContent).toContain("4 added, 1 changed");
  });

  test("a refused toggle falls back and says why", async () => {
    const s = show(program);
    box(s, "ids").click();
    s.set({ state: { ...program.traits.state, revision: 2, error: { text: "ids cannot be donated" } } });
    await settled();
    expect(box(s, "ids").checked).toBe(false);
    expect(s.get("error").textContent).toBe("ids cannot be donated");
    expect(s.get("error").hidden).toBe(false);
    expect(box(s, "ids").disabled).toBe(false);
  });

  test("some donated leaves leave the box in between", () => {
    const s = show(program, { state: { ...program.traits.state, donated: [1] } });
    expect([box(s, "opt_state").checked, box(s, "opt_state").indeterminate]).toEqual([false, true]);
  });

  test("an argument that cannot be toggled says so", () => {
    const { program: p } = program.traits;
    const whole = p.wholes.map((w, i) => (i === 2 ? { ...w, togglable: false, hint: "dropped by JAX" } : w));
    const s = show(program, { program: { ...p, wholes: whole } });
    expect(box(s, "ids").disabled).toBe(true);
    expect(box(s, "ids").title).toBe("dropped by JAX");
  });

  test("space on a row toggles, arrows fold and move", async () => {
    const s = show(gpt());
    const tree = s.get("tree");
    const press = (key: string): void => {
      tree.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    };
    press(" ");
    expect(s.sent).toEqual([{ type: "donate", whole: 0, donate: false }]);
    const open = rows(s).length;
    press("ArrowLeft");
    expect(rows(s).length).toBeLessThan(open);
    press("ArrowDown");
    expect(s.get("argument-detail").textContent).toContain("opt_state");
    press("ArrowDown");
    expect(s.get("argument-detail").textContent).toContain("needs di.jit");
  });
});

describe("work", () => {
  const job = { kind: "compare" as const, running: true, step: 1, steps: 3, label: "compiling jax", error: null };

  test("Compare, Measure and Cancel send their messages, the job shows in place", async () => {
    const s = show(program);
    s.get("compare").click();
    s.set({ job });
    await settled();
    expect(s.get("job").textContent).toBe("compiling jax · 1 of 3");
    expect(s.get<HTMLButtonElement>("measure").disabled).toBe(true);
    s.get("cancel").click();
    expect(s.sent.map((request) => request.type)).toEqual(["compare", "cancel"]);
    s.set({ job: { ...job, running: false, label: "", error: "cancelled" } });
    await settled();
    expect(s.get("error").textContent).toBe("cancelled");
    s.get("measure").click();
    expect(s.sent.at(-1)).toEqual({ type: "measure" });
  });

  test("figures of this donation are plain, of an earlier one marked", async () => {
    const s = show(program, { ...program.compiled(1), measurement: program.measurement(1) });
    expect(s.el.querySelector("[data-testid=stale]")).toBeNull();
    s.set(program.toggled(new Set(), 2));
    await settled();
    expect(s.el.querySelectorAll("[data-testid=stale]")).toHaveLength(2);
    s.set({ ...program.compiled(2) });
    await settled();
    expect(s.el.querySelectorAll("[data-testid=stale]")).toHaveLength(1);
  });

  test("compiled and measured are named, unknown is unknown, a failed variant says why", () => {
    const { comparison: compiled, xla_curves } = program.compiled(1);
    compiled.variants[0]!.temp = null;
    Object.assign(compiled.variants[2]!, { total: null, error: "the pass made no pairs" });
    const measured = program.measurement(1);
    measured.variants[0]!.peak = null;
    const s = show(program, { comparison: compiled, xla_curves, measurement: measured });
    const [none, , pass] = [...s.get("compiled").querySelectorAll("tbody tr")].map((row) => row.textContent);
    expect(s.get("compiled").textContent).toContain("Compiled with XLA for cpu");
    expect(none).toContain("unknown");
    expect(pass).toBe("passthe pass made no pairs");
    expect(s.get("measured").textContent).toContain("Measured on this machine");
    expect(s.get("measured").querySelector("tbody tr")!.textContent).toContain("unknown");
  });
});

describe("manners", () => {
  test("every focusable element keeps its keys from the notebook", async () => {
    const made = gpt();
    const s = show(made, { ...made.compiled(1), measurement: made.measurement(1) });
    for (const tab of ["before", "after", "diff"]) s.get(`tab-${tab}`).click();
    const focusable = [...s.el.querySelectorAll("[tabindex],input,button,select,textarea,a[href],summary")];
    expect(focusable.length).toBeGreaterThan(15);
    for (const element of focusable) expect(element.getAttribute("data-lm-suppress-shortcuts")).toBe("true");
  });

  test("plain keys stop at the widget, the notebook's own go on", () => {
    const s = show(program);
    const outside = vi.fn();
    document.body.addEventListener("keydown", outside);
    const press = (init: KeyboardEventInit): void => {
      s.get("curve").dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, ...init }));
    };
    for (const key of ["d", "d", "a", "ArrowLeft", "Enter"]) press({ key });
    expect(outside).not.toHaveBeenCalled();
    press({ key: "s", ctrlKey: true });
    press({ key: "Enter", shiftKey: true });
    press({ key: "Escape" });
    expect(outside).toHaveBeenCalledTimes(3);
    document.body.removeEventListener("keydown", outside);
  });

  test("the cursor moves by keys, says who is live, and goes back to the peak", () => {
    const s = show(program);
    const peak = program.traits.state.peak.at;
    expect(s.get("cursor").textContent).toContain(`op ${peak} (the peak)`);
    s.get("curve").dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
    expect(s.get("curve").getAttribute("aria-valuenow")).toBe("0");
    expect(s.get("cursor").textContent).toContain("live at op 0 · ");
    expect(s.get("live").children.length).toBeGreaterThan(0);
    s.get("to-peak").click();
    expect(s.get("curve").getAttribute("aria-valuenow")).toBe(String(peak));
  });

  test("a live range that is chosen is found in the tree and in the IR", () => {
    const made = gpt();
    const s = show(made);
    s.get("live").querySelector("button")!.click();
    expect(s.get("argument-detail").textContent).toContain("opt_state[0].mu['blocks'][0]['mlp']['down']['w']");
    expect(s.get("tab-before").getAttribute("aria-selected")).toBe("true");
    expect(s.get("ir").querySelector(".di-pointed")!.textContent).toContain("%arg40: tensor<3072x768xf32>");
  });

  test("two views of one model look at different things and follow the same state", async () => {
    const one = show(program);
    const two = show(program, {}, one);
    one.get("tab-before").click();
    expect(two.get("tab-diff").getAttribute("aria-selected")).toBe("true");
    box(one, "opt_state").click();
    await settled();
    expect(box(two, "opt_state").checked).toBe(false);
    one.set(program.toggled(new Set([0, 1]), 2));
    await settled();
    expect([box(one, "opt_state").checked, box(two, "opt_state").checked]).toEqual([true, true]);
    one.cleanup();
    two.set(program.toggled(new Set(), 3));
    await settled();
    expect(box(two, "opt_state").checked).toBe(false);
  });

  test("cleanup leaves nothing behind", () => {
    const s = show(program);
    expect(s.listeners()).toBeGreaterThan(0);
    s.cleanup();
    expect(s.listeners()).toBe(0);
    expect(s.el.children.length).toBe(0);
  });

  test("ready is told after the first paint", async () => {
    const s = show(program);
    expect(s.el.dataset.ready).toBeUndefined();
    await vi.waitFor(() => expect(s.el.dataset.ready).toBe("1"));
  });
});
