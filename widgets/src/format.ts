/** Figures as people read them. `bytes` gives the same text as the Python side; tests/bytes.json holds both to it. */

const UNITS = ["KB", "MB", "GB", "TB", "PB"];

/** Decimal units, one decimal below 100, halves away from zero; null and NaN are "unknown". */
export function bytes(n: number | null): string {
  if (n === null || Number.isNaN(n)) return "unknown";
  if (n < 0) return `−${bytes(-n)}`;
  if (n < 1000) return `${n} B`;
  let unit = 1000;
  for (const name of UNITS) {
    const tenths = Math.floor((n * 10 + unit / 2) / unit);
    if (tenths < 1000) return `${Math.floor(tenths / 10)}.${tenths % 10} ${name}`;
    const whole = Math.floor((n + unit / 2) / unit);
    if (whole < 1000 || name === "PB") return `${whole} ${name}`;
    unit *= 1000;
  }
  return "unknown";
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
