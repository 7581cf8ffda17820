/**
 * Writes the manifests that are checked in: `node infra/generate.ts`. With `--like-openkruise` it writes none, but
 * prints the webhook registrations as OpenKruise has them.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { manifestFiles, optionalFiles, registrationsLikeOpenKruise } from "../shared/install/manifests.ts";
import { withAnnotations, withHolds } from "./doc-tables.ts";
import { chartFiles, readChartSource } from "./helm/chart.ts";

const PAGES = [
  ["docs/reasons.md", withHolds],
  ["docs/annotations.md", withAnnotations],
] as const;

const { values } = parseArgs({ options: { "like-openkruise": { type: "boolean", default: false } } });

if (values["like-openkruise"]) process.stdout.write(registrationsLikeOpenKruise());
else await writeManifests();

async function writeManifests(): Promise<void> {
  const pages = PAGES.map(
    async ([path, renew]): Promise<readonly [string, string]> => [
      path,
      renew(await readFile(new URL(`../${path}`, import.meta.url), "utf8")),
    ],
  );
  const charts = chartFiles(await readChartSource());
  for (const [path, content] of [...manifestFiles(), ...optionalFiles(), ...charts, ...(await Promise.all(pages))]) {
    const file = new URL(`../${path}`, import.meta.url);
    await mkdir(new URL(".", file), { recursive: true });
    await writeFile(file, content);
    process.stdout.write(`${path}\n`);
  }
}
