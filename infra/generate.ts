/** Writes the manifests that are checked in: `node infra/generate.ts`. */
import { writeFile } from "node:fs/promises";
import { manifestFiles } from "./manifests.ts";

for (const [path, content] of manifestFiles()) {
  await writeFile(new URL(`../${path}`, import.meta.url), content);
  process.stdout.write(`${path}\n`);
}
