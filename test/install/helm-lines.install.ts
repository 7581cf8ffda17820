/**
 * Looks up the flags of the migration's lines in Helm's own source, because OpenKruise's chart is not available here.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { planFromKruise, planToKruise } from "../../shared/core/inspect/migrate/from-kruise.ts";
import type { Migration } from "../../shared/core/inspect/migrate/inventory.ts";
import { FACTS, URL } from "../core/migrate/fixture.ts";
import { ROOT, run } from "./run.ts";

/** Line → the places where Helm's source accepts its flags. */
const LINES: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  "helm upgrade --install kruise openkruise/kruise --take-ownership": {
    "cmd/helm/upgrade.go": /BoolVarP?\([^,]+, "install",[\s\S]*BoolVarP?\([^,]+, "take-ownership",/,
  },
  "kubectl delete secrets -A -l owner=helm,name=kruise": {
    "pkg/storage/driver/secrets.go":
      /const owner = "helm"[\s\S]*lbs\.set\("name", rls\.Name\)[\s\S]*lbs\.set\("owner", owner\)/,
  },
};

const linesOf = ({ steps }: Migration) => steps.flatMap(({ commands, back }) => [...commands, ...back]);

it("Helm accepts every line of a migration plan that calls Helm", async () => {
  const plans = [
    planFromKruise(FACTS, { url: URL }, []),
    planToKruise({ ...FACTS, managers: [], conversion: { url: URL } }),
  ];
  const about = plans.flatMap(linesOf).filter((line) => /\bhelm\b/.test(line));
  expect(about.toSorted()).toEqual(Object.keys(LINES).toSorted());
  const module = { cwd: join(ROOT, "test/install/helm") };
  const downloaded = JSON.parse(await run("go", ["mod", "download", "-json", "helm.sh/helm/v3"], module));
  const source: string = downloaded.Dir;
  for (const [line, places] of Object.entries(LINES))
    for (const [file, wanted] of Object.entries(places))
      expect(await readFile(join(source, file), "utf8"), line).toMatch(wanted);
  const document = await readFile(join(ROOT, "docs/migration.md"), "utf8");
  expect(document).toContain("No test runs the lines about Helm");
});
