// Bundles the front end into the Python package; `--dev` bundles the harness of dev/ instead.
import { build } from "esbuild";

const shared = { bundle: true, format: "esm", target: "es2022", logLevel: "info", legalComments: "none" };
if (process.argv.includes("--dev")) {
  await build({ ...shared, entryPoints: ["dev/harness.ts"], outdir: "dev/dist", format: "iife" });
} else {
  const outdir = "../inspector/donation_inspector/static";
  await build({ ...shared, minify: true, entryPoints: { widget: "src/index.ts" }, outdir });
  await build({ ...shared, minify: true, entryPoints: { widget: "src/style.css" }, outdir });
}
