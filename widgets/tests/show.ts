/** Shows the widget on a fake kernel; what a test has shown is taken away after it. */

import { afterEach } from "vitest";
import { type Fake, fake } from "../dev/fake";
import type { Fixture } from "../dev/fixture";
import widget from "../src/index";
import type { Traits } from "../src/model";

const shown: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of shown.splice(0)) cleanup();
  document.body.replaceChildren();
});

export interface Shown extends Fake {
  el: HTMLElement;
  cleanup: () => void;
  get<T extends HTMLElement = HTMLElement>(testid: string): T;
}

export function show(fixture: Fixture, traits: Partial<Traits> = {}, on?: Fake): Shown {
  const kernel = on ?? fake({ ...fixture.traits, ...traits });
  const el = document.createElement("div");
  document.body.append(el);
  const cleanup = widget.render({ model: kernel.model, el });
  shown.push(cleanup);
  const get = <T extends HTMLElement = HTMLElement>(testid: string): T => {
    const found = el.querySelector<T>(`[data-testid="${testid}"]`);
    if (!found) throw new Error(`no ${testid}`);
    return found;
  };
  return { ...kernel, el, cleanup, get };
}

export const settled = (): Promise<void> => Promise.resolve();
