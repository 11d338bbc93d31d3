import { describe, expect, test } from "vitest";
import { gpt } from "../dev/fixture";
import type { Verified } from "../src/model";
import { inYourCall, reused } from "../src/views/reused";
import { type Shown, settled, show } from "./show";

const made = gpt();
const { state } = made.traits;
const verified = made.verified(new Set([0]));
const cells = (s: Shown): string[] => [...s.el.querySelectorAll(".di-call")].map((cell) => cell.textContent ?? "");
const names = (s: Shown): HTMLElement => s.el.querySelector<HTMLElement>(".di-names")!;

describe("the column", () => {
  test("is not there before a call was verified", () => {
    const s = show(made);
    expect(cells(s)).toEqual([]);
    expect(names(s).hidden).toBe(true);
  });

  test("tells leaves in words, groups by count, and nothing of what is not donated", () => {
    const s = show(made, { state: { ...state, verified } });
    // params, its emb, its blocks; blocks[0] has the other one that was not reused
    expect(cells(s).slice(0, 4)).toEqual(["31 of 33", "still alive", "31 of 32", "7 of 8"]);
    expect(cells(s).at(-1)).toBe("");
    expect(names(s).textContent).toContain("reused in your call");
    expect(s.get("tree").querySelector(".di-row")!.children).toHaveLength(6);
  });

  test("goes with a toggle and comes back", async () => {
    const s = show(made, { state: { ...state, verified } });
    s.set(made.toggled(new Set([0, 1]), 2));
    await settled();
    expect(cells(s)).toEqual([]);
    s.set({ state: { ...state, revision: 3, verified } });
    await settled();
    expect(cells(s)[0]).toBe("31 of 33");
  });

  test("the reason is said below, as text", () => {
    const evil = "<img src=x onerror=alert(1)>";
    const s = show(made, { state: { ...state, verified: { ...verified, reasons: verified.reasons.map(() => evil) } } });
    s.el.querySelectorAll<HTMLElement>(".di-tree .di-row")[1]!.click();
    return settled().then(() => {
      expect(s.get("argument-detail").textContent).toContain(`Reused in your call: still alive, ${evil}.`);
      expect(s.el.querySelector("img")).toBeNull();
    });
  });
});

describe("words", () => {
  const some: Verified = { outcomes: ["reused", "freed", "alive", "unknown", null], reasons: [], sentence: "" };
  test.each([
    [[0], "yes", "di-ok"],
    [[1], "only freed", "di-vain"],
    [[2], "still alive", "di-bad"],
    [[3], "unknown", "di-none"],
    [[4], "", "di-none"],
    [[0, 4], "1 of 1", "di-ok"],
    [[0, 2, 4], "1 of 2", "di-vain"],
    [[1, 2], "0 of 2", "di-bad"],
  ])("%j is %s", (leaves, text, chip) => {
    expect(reused(some, leaves)).toEqual([text, chip]);
  });

  test("a leaf that nobody donated has no sentence", () => {
    expect(inYourCall(some, 4)).toBe("");
    expect(inYourCall(some, 0)).toBe("Reused in your call: yes.");
  });
});
