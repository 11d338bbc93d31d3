import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fake } from "../dev/fake";
import { small } from "../dev/fixture";
import { connect, PATIENCE_MS } from "../src/synced";

const fixture = small();

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function connected() {
  const kernel = fake(fixture.traits);
  const changed = vi.fn();
  return { ...kernel, changed, synced: connect(kernel.model, changed) };
}

test("a request shows at once and until the kernel's state arrives", () => {
  const { synced, sent, set } = connected();
  expect(synced.asked(1)).toBeUndefined();
  synced.send({ type: "donate", whole: 1, donate: true });
  expect(synced.asked(1)).toBe(true);
  expect(sent).toEqual([{ type: "donate", whole: 1, donate: true }]);
  set(fixture.toggled(new Set([0, 1]), 2));
  expect(synced.asked(1)).toBeUndefined();
});

test("of several requests on their way, each waits for its own state", () => {
  const { synced, set } = connected();
  synced.send({ type: "donate", whole: 1, donate: true });
  synced.send({ type: "donate", whole: 0, donate: false });
  synced.send({ type: "donate", whole: 1, donate: false });
  set(fixture.toggled(new Set([0, 1]), 2));
  expect(synced.asked(1)).toBe(false);
  expect(synced.asked(0)).toBe(false);
  set(fixture.toggled(new Set([1]), 3));
  expect(synced.asked(0)).toBeUndefined();
  expect(synced.asked(1)).toBe(false);
  set(fixture.toggled(new Set(), 4));
  expect(synced.asked(1)).toBeUndefined();
});

test("an error of the kernel takes back what was asked", () => {
  const { synced, set } = connected();
  synced.send({ type: "donate", whole: 1, donate: true });
  set({ state: { ...fixture.traits.state, revision: 2, error: { text: "no" } } });
  expect(synced.asked(1)).toBeUndefined();
});

test("a kernel that says nothing is told of, and any answer ends that", () => {
  const { synced, set } = connected();
  synced.send({ type: "donate", whole: 1, donate: true });
  vi.advanceTimersByTime(PATIENCE_MS - 1);
  expect(synced.silent()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(synced.silent()).toBe(true);
  expect(synced.asked(1)).toBeUndefined();
  set(fixture.toggled(new Set([0, 1]), 2));
  expect(synced.silent()).toBe(false);
});

test("a kernel that stays silent is told of after every request", () => {
  const { synced } = connected();
  for (const donate of [true, false]) {
    synced.send({ type: "donate", whole: 1, donate });
    expect([synced.silent(), synced.asked(1)]).toEqual([false, donate]);
    vi.advanceTimersByTime(PATIENCE_MS);
    expect([synced.silent(), synced.asked(1)]).toEqual([true, undefined]);
  }
});

test("silence after one answer is silence again", () => {
  const { synced, set } = connected();
  synced.send({ type: "donate", whole: 1, donate: true });
  vi.advanceTimersByTime(PATIENCE_MS / 2);
  set(fixture.toggled(new Set([0, 1]), 2));
  vi.advanceTimersByTime(2 * PATIENCE_MS);
  expect(synced.silent()).toBe(false);
  synced.send({ type: "compare", target: null });
  expect(synced.starting()).toBe(true);
  vi.advanceTimersByTime(PATIENCE_MS);
  expect([synced.silent(), synced.starting()]).toEqual([true, false]);
});

test("one message of the kernel is one update of the views", async () => {
  const { changed, set } = connected();
  set(fixture.toggled(new Set(), 2));
  await Promise.resolve();
  expect(changed).toHaveBeenCalledTimes(1);
});

test("the curve and the ends are those of the last message", () => {
  const { synced, set } = connected();
  const before = synced.curve();
  set(fixture.toggled(new Set(), 2));
  expect(synced.curve()).not.toEqual(before);
  expect(synced.curve()).toEqual(synced.baseline);
});

test("after destroy nothing listens, nothing is pending", async () => {
  const { synced, changed, set, listeners } = connected();
  synced.send({ type: "compare", target: null });
  synced.destroy();
  expect(listeners()).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
  set(fixture.toggled(new Set(), 2));
  await Promise.resolve();
  expect(changed).not.toHaveBeenCalled();
});
