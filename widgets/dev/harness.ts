/** Shows the widget without Jupyter: `?size=gpt|large|small`, `&figures` for finished compile and measure, `&target=tpu:v5e`,
 *  `&verified` for a call that was verified. */

import widget from "../src/index";
import { kernel } from "./fake";
import { gpt, large, small } from "./fixture";

const query = new URLSearchParams(location.search);
const made = { gpt, large, small }[query.get("size") ?? "gpt"]!();
if (query.has("figures")) {
  const target = query.get("target");
  Object.assign(made.traits, made.compiled(1, target ?? undefined, target === null ? null : 4e8));
  made.traits.measurement = made.measurement(1);
}
if (query.has("verified")) made.traits.state = { ...made.traits.state, verified: made.verified(new Set([0])) };
const faked = kernel(made);
const el = document.getElementById("widget")!;
Object.assign(window, { faked, made, cleanup: widget.render({ model: faked.model, el }) });
