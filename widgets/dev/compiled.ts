/** What XLA might make of the made-up program: three variants on one target, with buffers and curves. */

import type { Buffers, Comparison, Contributor, Target, VariantName } from "../src/model";

export const CLASSES = [
  "parameters",
  "optimizer state",
  "batch",
  "other arguments",
  "constants",
  "gradients",
  "activations kept for the backward pass",
  "copies made by aliasing",
  "results",
  "other temporaries",
  "other",
  "arguments no longer needed",
  "results not yet written",
  "padding",
];

export const AVAILABLE: Target[] = [
  { name: "cpu", device: "this machine", capacity: null, available: true, whyNot: "", here: true },
  { name: "tpu:v5e", device: "TPU v5 lite", capacity: 17_179_869_184, available: true, whyNot: "", here: false },
  {
    name: "cuda:h100",
    device: "NVIDIA H100",
    capacity: null,
    available: false,
    whyNot: "needs JAX's CUDA plugin: pip install 'donation-inspector[cuda]'",
    here: false,
  },
];

export interface Sizes {
  argument: number;
  output: number;
  temp: number;
  /** Path, type and bytes of the arguments. */
  arguments: { path: string; label: string; nbytes: number; whole: number }[];
}

/** The traits that Compare sets. */
export type Compiled = {
  comparison: Comparison;
  xla_curves: DataView;
};

const figure = (n: number): string => `${(n / 1e6).toFixed(1)} MB`;
const POINTS = 1200;

function curvesOf(base: number, temp: number): Float64Array[] {
  const times = Float64Array.from({ length: POINTS }, (_, i) => 2 * i);
  const held = times.map((_, i) => {
    const x = i / POINTS;
    const hill = x < 0.45 ? x / 0.45 : Math.max(0, 1 - (x - 0.45) / 0.5);
    return Math.round(base + temp * hill * (0.9 + 0.1 * Math.sin(i / 9)));
  });
  const needed = held.map((value, i) => Math.round(value - base * 0.4 * (i / POINTS)));
  return [times, needed, held];
}

function contributors(sizes: Sizes, temp: number): Contributor[] {
  const given = sizes.arguments.map(
    ({ path, label, nbytes, whole }): Contributor => ({
      class: CLASSES[whole]!,
      label: path,
      type: label,
      bytes: nbytes,
      source: "",
      stack: [],
      opName: path,
      instruction: `Arg_${path.length}.1`,
      start: 0,
      end: 2 * POINTS,
    }),
  );
  const kept = [0.5, 0.2, 0.1].map(
    (share, i): Contributor => ({
      class: CLASSES[i === 2 ? 9 : 6]!,
      label: ["softmax of attention", "gelu", "transpose of dot_general"][i]!,
      type: "f32[4,12,512,512]",
      bytes: Math.round(temp * share),
      source: `/somewhere/model.py:${41 + i}`,
      stack: [`model.py:${41 + i} in attention`, "model.py:80 in block", "train.py:12 in train_step"],
      opName: "jit(train_step)/jvp(attention)/exp",
      instruction: `fusion.${i}`,
      start: 300 + i,
      end: 1800,
    }),
  );
  return [...given, ...kept].sort((a, b) => b.bytes - a.bytes).slice(0, 50);
}

function buffersOf(sizes: Sizes, name: VariantName): [Buffers, Float64Array[]] {
  const temp = Math.round(sizes.temp * (name === "none" ? 1 : 1.1));
  const base = sizes.argument + (name === "none" ? sizes.output : 0);
  const curves = curvesOf(base, temp);
  const [times, , held] = curves as [Float64Array, Float64Array, Float64Array];
  const peak = Math.max(...held);
  const point = held.indexOf(peak);
  const bytesOf = (whole: number): number =>
    sizes.arguments.filter((one) => one.whole === whole).reduce((sum, { nbytes }) => sum + nbytes, 0);
  const copied = name === "none" ? 0 : Math.round(temp * 0.12);
  const output = name === "none" ? sizes.output : 0;
  const known = new Map([
    ["parameters", bytesOf(0)],
    ["optimizer state", bytesOf(1)],
    ["batch", bytesOf(2)],
    ["gradients", Math.round(temp * 0.2)],
    ["activations kept for the backward pass", Math.round(temp * 0.4)],
    ["copies made by aliasing", copied],
    ["other", 4096],
    ["results not yet written", output],
  ]);
  known.set("other temporaries", peak - [...known.values()].reduce((sum, size) => sum + size, 0));
  const listed = contributors(sizes, temp);
  const classes = CLASSES.flatMap((one) => (known.has(one) ? [{ name: one, bytes: known.get(one)! }] : []));
  const buffers: Buffers = {
    steps: 2 * POINTS,
    peak,
    peakAt: times[point]!,
    peakInstruction: `fusion.${point}`,
    sentence: [
      { text: "At the peak ", strong: false },
      { text: figure(peak), strong: true },
      {
        text: ` are held: ${figure(bytesOf(1))} of optimizer state, ${figure(bytesOf(0))} of parameters.`,
        strong: false,
      },
    ],
    reserved: base + Math.round(temp * 1.15),
    constant: 1240,
    padding: null,
    fragmentation: Math.round(temp * 0.05),
    classes,
    contributors: listed,
    more: { count: 214, bytes: Math.round(peak * 0.04) },
    copies:
      name === "none"
        ? []
        : [
            {
              argument: sizes.arguments[0]!.path,
              result: "result [0]['emb']",
              bytes: copied,
              sentence:
                "dot_general (train.py:41) reads params['emb'], and result [0]['emb'], which add (train.py:44) makes, has to live in its buffer: the old value is copied first.",
              advice: "Let dot_general (train.py:41) not need the old params['emb'] once add has made the new one.",
            },
          ],
    moreCopies: { count: 0, bytes: 0 },
    spaces: [{ name: "main memory", peak, reserved: base + temp }],
    points: POINTS,
    instructions: Array.from({ length: POINTS }, (_, i) => `fusion.${i}`).join("\n"),
  };
  return [buffers, curves];
}

/** `capacity`: bytes of the device; null where it is unknown. */
export function compiled(sizes: Sizes, revision: number, target = "cpu", capacity: number | null = null): Compiled {
  const { argument, output } = sizes;
  const [none, jax] = [buffersOf(sizes, "none"), buffersOf(sizes, "jax")];
  const here = target === "cpu";
  const variants = (["none", "jax", "pass"] as const).map((name, i) => {
    const { reserved } = i === 0 ? none[0] : jax[0];
    const alias = i === 0 ? 0 : output - 4;
    const fits = capacity === null ? null : reserved <= capacity;
    return {
      ...{ name, argument, output, alias, temp: reserved - argument - output + alias, total: reserved },
      seconds: 1.42 + i / 10,
      status: fits === false ? "does not fit" : "ok",
      error: fits === false ? "XLA: ran out of memory in memory space hbm" : null,
      fits,
      over: capacity === null ? null : Math.max(0, reserved - capacity),
      ...{ buffers: i === 0 ? 0 : 1, buffersError: null },
    };
  });
  const saved = none[0].reserved - jax[0].reserved;
  const comparison: Comparison = {
    ...{ revision, target, here, capacity },
    note: "",
    sentence: `By XLA’s totals: saves ${figure(saved)}.`,
    variants,
    buffers: [none[0], jax[0]],
    targets: variants.map(({ name, total, fits, over, status }) => ({
      ...{ target, here, capacity, variant: name, total, fits, over, status },
      saved: name === "none" ? 0 : saved,
    })),
  };
  const columns = [...none[1], ...jax[1]];
  const joined = new Float64Array(columns.reduce((sum, column) => sum + column.length, 0));
  let at = 0;
  for (const column of columns) {
    joined.set(column, at);
    at += column.length;
  }
  return { comparison, xla_curves: new DataView(joined.buffer) };
}
