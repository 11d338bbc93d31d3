/** Where an axis has its ticks. */

export const ROUND = [1, 2, 5, 10];
export const FINER = [1, 2, 2.5, 5, 10];

/** A round distance between ticks, at most `steps` of them up to `most`. */
export function tick(most: number, steps: number, round: readonly number[]): number {
  const rough = most / steps;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return power * (round.find((m) => m * power >= rough) ?? 10);
}
