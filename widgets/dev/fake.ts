/** A model and a kernel in the page: answers the widget's messages from a fixture. */

import type { Model, Request, Traits } from "../src/model";
import type { Fixture } from "./fixture";

export interface Fake {
  model: Model;
  sent: Request[];
  /** Sets traits as one message of the kernel does. */
  set(traits: Partial<Traits>): void;
  listeners(): number;
}

export function fake(traits: Traits, onSend: (request: Request, fake: Fake) => void = () => {}): Fake {
  const held: Traits = { ...traits };
  const handlers = new Map<string, Set<() => void>>();
  const sent: Request[] = [];
  const model = {
    get: (key: keyof Traits) => held[key],
    on(event: string, handler: () => void) {
      const set = handlers.get(event) ?? new Set();
      handlers.set(event, set.add(handler));
    },
    off(event: string, handler: () => void) {
      handlers.get(event)?.delete(handler);
    },
    send(request: Request) {
      sent.push(request);
      onSend(request, made);
    },
  } as unknown as Model;
  const made: Fake = {
    model,
    sent,
    set(changed) {
      Object.assign(held, changed);
      for (const key of Object.keys(changed)) for (const handler of handlers.get(`change:${key}`) ?? []) handler();
    },
    listeners: () => [...handlers.values()].reduce((n, set) => n + set.size, 0),
  };
  return made;
}

/** A kernel that takes its time, as the real one does. */
export function kernel(fixture: Fixture): Fake {
  let revision = 1;
  let cancelled = false;
  const donated = new Set([0]);
  const job = { kind: "" as const, running: false, step: 0, steps: 0, label: "", error: null };
  return fake(fixture.traits, (request, { set }) => {
    if (request.type === "donate") {
      if (request.donate) donated.add(request.whole);
      else donated.delete(request.whole);
      revision++;
      const answer = fixture.toggled(donated, revision);
      setTimeout(() => set(answer), 60);
    } else if (request.type === "cancel") {
      cancelled = true;
      set({ job: { ...job, label: "cancelled" } });
    } else {
      cancelled = false;
      const steps = ["none", "jax", "pass"];
      const verb = request.type === "compare" ? "compiling" : "measuring";
      steps.forEach((name, step) => {
        setTimeout(() => {
          if (!cancelled)
            set({ job: { ...job, kind: request.type, running: true, step, steps: 3, label: `${verb} ${name}` } });
        }, step * 700);
      });
      setTimeout(() => {
        if (cancelled) return;
        const found =
          request.type === "compare"
            ? fixture.compiled(revision, request.target ?? "cpu", request.target === null ? null : 4e8)
            : { measurement: fixture.measurement(revision) };
        set({ ...found, job });
      }, 2100);
    }
  });
}
