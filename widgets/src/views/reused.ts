/** The column "reused in your call": what the user's own call made of each donated argument, once it was verified. */

import { h } from "../dom";
import type { Reuse, Verified } from "../model";

const WORDS: Record<Reuse, [text: string, chip: string]> = {
  reused: ["yes", "di-ok"],
  freed: ["only freed", "di-vain"],
  alive: ["still alive", "di-bad"],
  unknown: ["unknown", "di-none"],
};

/** The words of a row and their colour: one leaf's outcome, or how many of a group's donated leaves were reused. */
export function reused(verified: Verified, leaves: readonly number[]): [text: string, chip: string] {
  const outcomes = leaves.map((leaf) => verified.outcomes[leaf] ?? null).filter((one) => one !== null);
  if (outcomes.length === 0) return ["", "di-none"];
  if (leaves.length === 1) return WORDS[outcomes[0]!];
  const count = outcomes.filter((one) => one === "reused").length;
  const chip = count === outcomes.length ? "di-ok" : count > 0 ? "di-vain" : "di-bad";
  return [`${count} of ${outcomes.length}`, chip];
}

/** The names of the columns, which the rows alone do not tell apart from the verdicts. */
export function columnNames(): HTMLElement {
  const names = ["argument", "type", "bytes", "live", "reused in your call", "verdict"];
  return h("div", { class: "di-row di-names", "aria-hidden": "true" }, ...names.map((name) => h("span", {}, name)));
}

/** The sentence below the table. */
export function inYourCall(verified: Verified, leaf: number): string {
  const [text] = reused(verified, [leaf]);
  const reason = verified.reasons[leaf] ?? "";
  return text === "" ? "" : `Reused in your call: ${text}${reason === "" ? "" : `, ${reason}`}.`;
}
