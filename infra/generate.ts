/**
 * Writes the manifests that are checked in: `node infra/generate.ts`. With `--like-openkruise` it writes none, but
 * prints the webhook registrations as OpenKruise has them.
 */
import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { manifestFiles, registrationsLikeOpenKruise } from "./manifests.ts";

const { values } = parseArgs({ options: { "like-openkruise": { type: "boolean", default: false } } });

if (values["like-openkruise"]) process.stdout.write(registrationsLikeOpenKruise());
else await writeManifests();

async function writeManifests(): Promise<void> {
  for (const [path, content] of manifestFiles()) {
    await writeFile(new URL(`../${path}`, import.meta.url), content);
    process.stdout.write(`${path}\n`);
  }
}
