/** The compiled variants as people tell them apart: equal ones go by one name. */

import type { Buffers, Comparison, VariantName } from "./model";

export const NAMES: Record<VariantName, string> = {
  none: "nothing donated",
  jax: "JAX’s own pairing",
  pass: "after the pass",
};

export interface Distinct {
  /** The first of its variants, which stands for them. */
  name: VariantName;
  /** "jax = pass" */
  label: string;
  /** Index into the comparison's buffers. */
  index: number;
  buffers: Buffers;
}

/** The variants with buffers, in order; those that share them are one. */
export function distinct(comparison: Comparison | null): Distinct[] {
  const found = new Map<number, Distinct>();
  for (const { name, buffers: index } of comparison?.variants ?? []) {
    if (index === null) continue;
    const same = found.get(index);
    if (same) same.label += ` = ${name}`;
    else found.set(index, { name, label: name, index, buffers: comparison!.buffers[index]! });
  }
  return [...found.values()];
}

/** The entry that a variant is shown by; null where XLA gave no buffers for it. */
export function shownAs(comparison: Comparison | null, name: VariantName): Distinct | null {
  const index = comparison?.variants.find((variant) => variant.name === name)?.buffers ?? null;
  return distinct(comparison).find((one) => one.index === index) ?? null;
}

/** "tpu:v5e, compiled, not run" */
export function compiledFor(target: string, here: boolean): string {
  return `${target}, compiled${here ? "" : ", not run"}`;
}
