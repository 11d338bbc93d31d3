import type { Synced } from "../synced";
import type { ViewState } from "../viewstate";

/** What every view gets. Views change `state` and call `changed`; they never touch one another. */
export interface Context {
  synced: Synced;
  view: ViewState;
  changed(): void;
}

export interface View {
  el: HTMLElement;
  update(): void;
  destroy?(): void;
}
