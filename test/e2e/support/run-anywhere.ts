/** Finds the files that can run on a given cluster, and the number of tests that cannot. */
import { basename } from "node:path";
import { createVitest } from "vitest/node";

/** Filters in the form of vitest. */
export const RUN_ANYWHERE = ["contract", "injection", "rbac", "acceptance"].map((file) => `test/e2e/${file}.e2e.ts`);

/** Returns a text about the tests of all other files. */
export async function countTests(config: string): Promise<string> {
  const vitest = await createVitest("test", { config, watch: false, reporters: [] });
  const { testModules } = await vitest.collect(undefined, { staticParse: false });
  const others = testModules.filter(({ moduleId }) => !RUN_ANYWHERE.some((file) => moduleId.endsWith(file)));
  const counts = others.map((module) => ({
    file: basename(module.moduleId, ".e2e.ts"),
    tests: [...module.children.allTests()].length,
  }));
  await vitest.close();
  const all = counts.reduce((sum, { tests }) => sum + tests, 0);
  const each = counts.map(({ file, tests }) => `${file} ${tests}`).join(", ");
  return `\nNot run on a cluster that was given: ${all} tests, which kill its processes, read its etcd and its audit log, or need nodes of\ntheir own (${each}).\n`;
}
