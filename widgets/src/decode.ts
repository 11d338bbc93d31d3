/** Columnar bytes from the kernel to typed arrays. */

export type Wire = DataView | ArrayBuffer | Uint8Array;

/** The live ranges' columns that donation does not change; `names` and `sources` run beside them. */
export interface Ranges {
  n: number;
  start: Int32Array;
  kind: Int32Array;
  /** 0-based line in the IR, -1 where the range has none. */
  line: Int32Array;
  /** Argument leaf, -1 where the value is no argument. */
  leaf: Int32Array;
  /** With nothing donated, inclusive. */
  end: Int32Array;
  /** NaN is unknown. */
  bytes: Float64Array;
  names: string[];
  sources: string[];
  /** Range of each argument leaf, by leaf. */
  ofLeaf: Map<number, number>;
}

/** The widget manager hands out views at any byte offset; a typed array needs an aligned one. */
function aligned(data: Wire, size: number, what: string): { buffer: ArrayBuffer; offset: number; count: number } {
  const bytes =
    data instanceof ArrayBuffer
      ? new Uint8Array(data)
      : new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  if (bytes.byteLength % size !== 0) {
    throw new RangeError(`${what}: ${bytes.byteLength} bytes are no multiple of ${size}`);
  }
  const count = bytes.byteLength / size;
  if (bytes.byteOffset % size === 0) return { buffer: bytes.buffer as ArrayBuffer, offset: bytes.byteOffset, count };
  return { buffer: bytes.slice().buffer as ArrayBuffer, offset: 0, count };
}

export function int32(data: Wire, what: string): Int32Array {
  const { buffer, offset, count } = aligned(data, 4, what);
  return new Int32Array(buffer, offset, count);
}

export function float64(data: Wire, what: string): Float64Array {
  const { buffer, offset, count } = aligned(data, 8, what);
  return new Float64Array(buffer, offset, count);
}

function lines(text: string, n: number): string[] {
  if (n === 0) return [];
  const found = text.split("\n");
  while (found.length < n) found.push("");
  return found;
}

export function ranges(columns: Wire, sizes: Wire, names: string, sources: string): Ranges {
  const all = int32(columns, "ranges");
  const bytes = float64(sizes, "range_bytes");
  const n = bytes.length;
  if (all.length !== 5 * n) throw new RangeError(`ranges: ${all.length} integers for ${n} ranges, expected ${5 * n}`);
  const column = (i: number) => all.subarray(i * n, (i + 1) * n);
  const leaf = column(3);
  const ofLeaf = new Map<number, number>();
  for (let i = 0; i < n; i++) if (leaf[i]! >= 0) ofLeaf.set(leaf[i]!, i);
  return {
    n,
    start: column(0),
    kind: column(1),
    line: column(2),
    leaf,
    end: column(4),
    bytes,
    names: lines(names, n),
    sources: lines(sources, n),
    ofLeaf,
  };
}

/** Where each range ends, from where the first ones end, the arguments'. */
export function allEnds({ end }: Ranges, ofArguments: Wire): Int32Array {
  const found = end.slice();
  found.set(int32(ofArguments, "ends"));
  return found;
}

/** The curve below the baseline, from the steps between them. */
export function lowered(baseline: Float64Array, freed: Wire): Float64Array {
  const steps = float64(freed, "freed");
  const n = steps.length / 2;
  const curve = baseline.slice();
  for (let i = 0; i < n; i++) {
    const until = i + 1 < n ? steps[i + 1]! : curve.length;
    for (let op = steps[i]!; op < until; op++) curve[op]! -= steps[n + i]!;
  }
  return curve;
}

/** Bytes over XLA's schedule at chosen times, the peak among them. */
export interface ScheduleCurves {
  times: Float64Array;
  needed: Float64Array;
  held: Float64Array;
  instructions: string[];
}

export function scheduleCurves(
  columns: Wire,
  buffers: readonly { points: number; instructions: string }[],
): ScheduleCurves[] {
  const all = float64(columns, "xla_curves");
  const expected = 3 * buffers.reduce((sum, { points }) => sum + points, 0);
  if (all.length !== expected) throw new RangeError(`xla_curves: ${all.length} numbers, expected ${expected}`);
  let from = 0;
  return buffers.map(({ points, instructions }) => {
    const column = (i: number) => all.subarray(from + i * points, from + (i + 1) * points);
    const found = { times: column(0), needed: column(1), held: column(2), instructions: lines(instructions, points) };
    from += 3 * points;
    return found;
  });
}
