/** Figures as people read them. */

const UNITS = ["KB", "MB", "GB", "TB", "PB", "EB"];

/** Rounds halves to even, as Python's format does and `toFixed` does not. */
function fixed(value: number, digits: 0 | 1): string {
  const halves = value * (digits === 0 ? 2 : 4);
  const tie = digits === 0 ? halves % 2 === 1 : halves % 4 === 1;
  if (!tie) return value.toFixed(digits);
  const below = Math.floor(value);
  return digits === 0 ? String(below + (below % 2)) : `${below}.2`;
}

/** The same text as units.py: decimal units, one decimal below 100; null and NaN are "unknown". */
export function bytes(n: number | null): string {
  if (n === null || Number.isNaN(n)) return "unknown";
  if (Math.abs(n) < 1000) return `${n} B`;
  let value = Math.abs(n) / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${n < 0 ? "-" : ""}${fixed(value, value < 99.95 ? 1 : 0)} ${UNITS[unit]}`;
}

/** 3618 → "3,618", the same in every locale. */
export function count(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function seconds(s: number | null): string {
  if (s === null) return "unknown";
  if (s < 1) return `${(s * 1000).toFixed(s < 0.1 ? 1 : 0)} ms`;
  return `${s.toFixed(s < 10 ? 2 : 1)} s`;
}

/** "dir/model.py:41" → "model.py:41"; a notebook's cell has a file of no meaning. */
export function place(source: string): string {
  return source.replace(/^.*[\\/]ipykernel_\d+[\\/]\d+\.py(?=:)/, "cell").replace(/^.*[\\/]/, "");
}
