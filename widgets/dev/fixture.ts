/** A made-up program of any size, the same at every run: what the harness shows and the tests hold the views to. */

import type { Change, Job, Measurement, Program, Reuse, State, Traits, Verdict, Verified } from "../src/model";
import { AVAILABLE, CLASSES, type Compiled, compiled } from "./compiled";

export interface Fixture {
  traits: Traits;
  /** The traits that a toggle changes, for a set of donated whole arguments. */
  toggled(donated: ReadonlySet<number>, revision: number): Pick<Traits, "state" | "freed" | "ends">;
  /** What Compare gives; `capacity` in bytes, null where the device's is unknown. */
  compiled(revision: number, target?: string, capacity?: number | null): Compiled;
  measurement(revision: number): Measurement;
  /** What a call with this set makes of it: all that is paired is reused, but a few. */
  verified(donated: ReadonlySet<number>): Verified;
}

const IDLE: Job = { kind: "", running: false, step: 0, steps: 0, label: "", error: null };

interface Leaf {
  path: string;
  shape: number[];
  dtype: string;
  whole: number;
}

const BYTES: Record<string, number> = { f32: 4, int32: 4 };
const nbytes = (leaf: Leaf): number => leaf.shape.reduce((n, d) => n * d, BYTES[leaf.dtype]!);
const label = (leaf: Leaf): string => `${leaf.dtype}[${leaf.shape.join(",")}]`;
const tensor = (leaf: Leaf): string =>
  `tensor<${[...leaf.shape, leaf.dtype === "int32" ? "i32" : leaf.dtype].join("x")}>`;

function parameters(layers: number, width: number): { path: string; shape: number[] }[] {
  const found = [{ path: "['emb']", shape: [1000, width] }];
  for (let i = 0; i < layers; i++) {
    const at = `['blocks'][${i}]`;
    found.push(
      { path: `${at}['attn']['out']['w']`, shape: [width, width] },
      { path: `${at}['attn']['qkv']['b']`, shape: [3 * width] },
      { path: `${at}['attn']['qkv']['w']`, shape: [width, 3 * width] },
      { path: `${at}['ln1']['g']`, shape: [width] },
      { path: `${at}['ln2']['g']`, shape: [width] },
      { path: `${at}['mlp']['down']['w']`, shape: [4 * width, width] },
      { path: `${at}['mlp']['up']['b']`, shape: [4 * width] },
      { path: `${at}['mlp']['up']['w']`, shape: [width, 4 * width] },
    );
  }
  return found;
}

/** Deterministic numbers in [0, 1). */
function random(seed: number): () => number {
  let s = seed;
  return () => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return s / 2 ** 32;
  };
}

interface Range {
  name: string;
  source: string;
  start: number;
  end: number;
  kind: number;
  line: number;
  leaf: number;
  bytes: number;
}

export function fixture(layers: number, width: number, operations: number): Fixture {
  const next = random(7);
  const params = parameters(layers, width);
  const leaves: Leaf[] = [
    ...params.map((p) => ({ path: `params${p.path}`, shape: p.shape, dtype: "f32", whole: 0 })),
    { path: "opt_state[0].count", shape: [], dtype: "int32", whole: 1 },
    ...["mu", "nu"].flatMap((slot) =>
      params.map((p) => ({ path: `opt_state[0].${slot}${p.path}`, shape: p.shape, dtype: "f32", whole: 1 })),
    ),
    { path: "ids", shape: [4, 32], dtype: "int32", whole: 2 },
  ];
  const paired = leaves.length - 1;
  const results = [...leaves.slice(0, paired), { path: "loss", shape: [], dtype: "f32", whole: -1 }];

  const lines = ["module @jit_train_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {"];
  const signature = leaves.map((leaf, i) => `%arg${i}: ${tensor(leaf)}`).join(", ");
  const outs = results.map((leaf) => `${tensor(leaf)} {jax.result_info = "result${leaf.path}"}`).join(", ");
  lines.push(`  func.func public @main(${signature}) -> (${outs}) {`);

  const ranges: Range[] = leaves.map((leaf, i) => {
    const last = operations - 1 - Math.floor((paired - (i % params.length)) * 2) - 1;
    const end = leaf.whole === 2 ? Math.floor(operations * 0.6) : Math.max(3, last);
    return { name: leaf.path, source: "", start: 0, end, kind: 0, line: 1, leaf: i, bytes: nbytes(leaf) };
  });
  const sizes = [4 * 32 * width, 4 * 32 * 3 * width, 4 * 32 * 4 * width, 4 * 12 * 32 * 32].map((n) => 4 * n);
  const names = ["dot_general", "add", "multiply", "broadcast_in_dim", "exponential", "transpose", "reduce", "divide"];
  const firstResult = operations - 1 - results.length;
  for (let op = 0; op < operations - 1; op++) {
    const result = op >= firstResult ? op - firstResult : -1;
    const constant = result < 0 && next() < 0.08;
    const forward = op < operations * 0.4;
    const gradient = !forward && result < 0 && op % 24 === 0;
    const bytes =
      result >= 0
        ? nbytes(results[result]!)
        : constant
          ? 4
          : gradient
            ? nbytes(leaves[Math.floor(next() * params.length)]!)
            : sizes[Math.floor(next() * next() * sizes.length)]!;
    const kept = forward && next() < 0.12;
    const end =
      result >= 0
        ? operations - 1
        : kept
          ? operations - op - 2
          : gradient
            ? Math.min(operations - 2, op + Math.floor(operations * 0.3))
            : Math.min(operations - 2, op + 1 + Math.floor(next() * 12));
    const type = result >= 0 ? tensor(results[result]!) : constant ? "tensor<f32>" : `tensor<4x32x${width}xf32>`;
    const name = names[Math.floor(next() * names.length)]!;
    ranges.push({
      name: `%${op}`,
      source: next() < 0.9 ? `${forward ? "model.py" : "train.py"}:${20 + Math.floor(next() * 80)}` : "",
      start: op,
      end: Math.max(op, end),
      kind: result >= 0 ? 3 : constant ? 1 : 2,
      line: lines.length,
      leaf: -1,
      bytes,
    });
    lines.push(
      constant
        ? `    %${op} = stablehlo.constant dense<${next().toExponential(6)}> : ${type}`
        : `    %${op} = stablehlo.${name} %${Math.max(0, op - 1)}, %arg${op % leaves.length}, dims = [0, 1] : (${type}, ${type}) -> ${type}`,
    );
  }
  const returned = results.map((_, i) => `%${firstResult + i}`);
  const returnTypes = results.map(tensor).join(", ");
  const returnLine = lines.length;
  lines.push(`    return ${returned.join(", ")} : ${returnTypes}`, "  }", "}");

  const n = ranges.length;
  const columns = new Int32Array(5 * n);
  const rangeBytes = new Float64Array(n);
  ranges.forEach((range, i) => {
    columns[i] = range.start;
    columns[n + i] = range.kind;
    columns[2 * n + i] = range.line;
    columns[3 * n + i] = range.leaf;
    columns[4 * n + i] = range.leaf >= 0 ? operations - 1 : range.end;
    rangeBytes[i] = range.bytes;
  });

  function curveOf(ends: Int32Array): Float64Array {
    const steps = new Float64Array(operations + 1);
    ranges.forEach((range, i) => {
      steps[range.start]! += range.bytes;
      steps[ends[i]! + 1]! -= range.bytes;
    });
    for (let op = 1; op <= operations; op++) steps[op]! += steps[op - 1]!;
    return steps.slice(0, operations);
  }
  const endsOf = (donated: ReadonlySet<number>): Int32Array =>
    Int32Array.from(ranges, (range) =>
      range.leaf >= 0 && !donated.has(leaves[range.leaf]!.whole) ? operations - 1 : range.end,
    );
  const view = (data: Int32Array | Float64Array): DataView => new DataView(data.buffer as ArrayBuffer);

  function changesFor(donated: ReadonlySet<number>): Change[] {
    const pairs = results.map((_, i) => i).filter((i) => i < paired && donated.has(leaves[i]!.whole));
    if (pairs.length === 0) return [];
    const now = [...returned];
    const changes: Change[] = pairs.map((i, k) => {
      now[i] = `%${operations - 1 + k}`;
      const type = tensor(leaves[i]!);
      const text = `    ${now[i]} = bufferization.materialize_in_destination ${returned[i]} in %arg${i} : (${type}, ${type}) -> ${type}`;
      return { kind: "added", before: null, after: returnLine + k, beforeText: null, afterText: text };
    });
    changes.push({
      kind: "changed",
      before: returnLine,
      after: returnLine + pairs.length,
      beforeText: lines[returnLine]!,
      afterText: `    return ${now.join(", ")} : ${returnTypes}`,
    });
    return changes;
  }

  const figure = (n: number): string => `${Math.round(n / 1e6)} MB`;
  const baseline = curveOf(endsOf(new Set()));
  const freedOf = (curve: Float64Array): Float64Array => {
    const less = baseline.map((bytes, op) => bytes - curve[op]!);
    const at = [...less.keys()].filter((op) => less[op] !== (less[op - 1] ?? 0));
    return Float64Array.from([...at, ...at.map((op) => less[op]!)]);
  };
  const peakOf = (curve: Float64Array): { bytes: number; at: number } => {
    let at = 0;
    curve.forEach((bytes, op) => {
      if (bytes > curve[at]!) at = op;
    });
    return { bytes: curve[at]!, at };
  };

  function toggled(donated: ReadonlySet<number>, revision: number): Pick<Traits, "state" | "freed" | "ends"> {
    const ends = endsOf(donated);
    const curve = curveOf(ends);
    const peak = peakOf(curve);
    const given = leaves.map((leaf) => donated.has(leaf.whole));
    const before = peakOf(baseline).bytes;
    const wholes = ["params", "opt_state", "ids"].filter((_, i) => donated.has(i));
    const verdicts = given.map((on, i): Verdict => (on ? (i < paired ? "aliased" : "unusable") : "not donated"));
    const state: State = {
      revision,
      headline: [
        {
          text: wholes.length === 0 ? "Nothing is donated: the peak is " : "Donation takes the peak from ",
          strong: false,
        },
        { text: wholes.length === 0 ? figure(before) : `${figure(before)} to ${figure(peak.bytes)}`, strong: true },
        { text: " in program order.", strong: false },
      ],
      sub: `${given.filter(Boolean).length} of ${leaves.length} leaves donated; compiled and measured figures come with Compare and Measure.`,
      fix:
        wholes.length === 0
          ? 'step = jax.jit(train_step, donate_argnames=("params", "opt_state"))'
          : `step = jax.jit(train_step, donate_argnames=(${wholes.map((w) => `"${w}"`).join(", ")}))`,
      donated: given.flatMap((on, i) => (on ? [i] : [])),
      verdicts,
      results: given.map((on, i) => (on && i < paired ? i : null)),
      reasons: given.map((on, i) => {
        if (i >= paired)
          return "no result has this shape and dtype; the nearest is opt_state[0].count, int32[], which differs in shape";
        return on ? `→ result ${results[i]!.path}` : `result ${results[i]!.path} has this shape and dtype`;
      }),
      candidates: given.flatMap((on, i) => (!on && i < paired ? [i] : [])),
      pairs: given.flatMap((on, i) => (on && i < paired ? [[i, i] as [number, number]] : [])),
      diagnostics: donated.has(2)
        ? [
            {
              severity: "warning",
              text: "ids: donated, but no result can take its buffer; JAX warns that it was not usable.",
            },
          ]
        : [],
      peak,
      unknown: 0,
      changes: changesFor(donated),
      pipeline: "jax-use-donated-arguments",
      verified: null,
      error: null,
    };
    return { state, freed: view(freedOf(curve)), ends: view(ends.slice(0, leaves.length)) };
  }

  const program: Program = {
    name: "train_step",
    versions: { jax: "0.10.2", xdsl: "0.75.0", donation_inspector: "0.1.0" },
    platform: "cpu",
    operations,
    lines: lines.length,
    arguments: {
      path: leaves.map((leaf) => leaf.path),
      label: leaves.map(label),
      nbytes: leaves.map(nbytes),
      perDevice: leaves.map(nbytes),
      whole: leaves.map((leaf) => leaf.whole),
      dropped: leaves.map(() => false),
    },
    wholes: ["params", "opt_state", "ids"].map((name) => ({ name, togglable: true, hint: "" })),
    results: { path: results.map((r) => r.path), label: results.map(label), nbytes: results.map(nbytes) },
    rangeNames: ranges.map((range) => range.name).join("\n"),
    rangeSources: ranges.map((range) => range.source).join("\n"),
    kinds: ["argument", "constant", "temporary", "result"],
    multiDevice: false,
    available: AVAILABLE,
    classes: CLASSES,
    notes: [{ severity: "note", text: "Traced with jax.ShapeDtypeStruct arguments: Measure makes its own inputs." }],
  };

  const argument = leaves.reduce((n, leaf) => n + nbytes(leaf), 0);
  const output = results.reduce((n, leaf) => n + nbytes(leaf), 0);
  const temp = Math.round(argument * 0.35);
  /** The first is read through a numpy view, the second shares numpy's memory. */
  function verified(donated: ReadonlySet<number>): Verified {
    const odd: Reuse[] = ["alive", "freed"];
    const outcomes = leaves.map((leaf, i): Reuse | null =>
      donated.has(leaf.whole) ? (i < paired ? (odd[i] ?? "reused") : "alive") : null,
    );
    const why: Record<Reuse, string> = {
      alive: "a numpy array shares its memory, history[3]: it is copied instead",
      freed: "its memory is that of a numpy array, table",
      reused: "",
      unknown: "",
    };
    const asked = outcomes.filter((one) => one !== null);
    return {
      outcomes,
      reasons: outcomes.map((one) => (one === null ? "" : why[one])),
      sentence: `${asked.filter((one) => one === "reused").length} of ${asked.length} donated arguments were reused in your call`,
    };
  }

  return {
    toggled,
    verified,
    compiled: (revision, target, capacity) =>
      compiled(
        {
          ...{ argument, output, temp },
          arguments: leaves.map((leaf) => ({ ...leaf, label: label(leaf), nbytes: nbytes(leaf) })),
        },
        ...([revision, target, capacity] as const),
      ),
    measurement: (revision) => ({
      revision,
      outputsEqual: true,
      sentence: `Measured: donation saves ${figure(output)} (${figure(argument + output + temp)} → ${figure(argument + temp * 1.1)}); all outputs are bit-equal.`,
      variants: [
        {
          name: "none",
          peak: argument + output + temp + 9e6,
          spread: 1.2e5,
          predicted: argument + output + temp,
          seconds: 0.412,
          status: "ok",
          error: null,
        },
        {
          name: "jax",
          peak: argument + temp * 1.1 + 9e6,
          spread: 9e4,
          predicted: argument + temp * 1.1,
          seconds: 0.388,
          status: "ok",
          error: null,
        },
        {
          name: "pass",
          peak: argument + temp * 1.1 + 9e6,
          spread: 8e4,
          predicted: argument + temp * 1.1,
          seconds: 0.391,
          status: "ok",
          error: null,
        },
      ],
    }),
    traits: {
      program,
      ir: lines.join("\n"),
      ranges: view(columns),
      range_bytes: view(rangeBytes),
      baseline_curve: view(baseline),
      comparison: null,
      xla_curves: new DataView(new ArrayBuffer(0)),
      measurement: null,
      job: IDLE,
      ...toggled(new Set([0]), 1),
    },
  };
}

/** Transformer train step: 4 layers, 100 leaves, 3,618 operations. */
export const gpt = (): Fixture => fixture(4, 768, 3618);

/** 20,000 operations, 900 leaves. */
export const large = (): Fixture => fixture(37, 64, 20_000);

/** Two arguments, a handful of operations. */
export const small = (): Fixture => fixture(0, 64, 12);
