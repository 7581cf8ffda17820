/** Tests that every printed command that promises something has a test. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Every printed command that contains a name → the test of its promise. */
const HELD_BY: Readonly<Record<string, string>> = {
  "sidecarset resume …": "test/cli/advice.slow.ts",
  "sidecarset resume …/… -n …": "test/cli/ordered-set.slow.ts",
  "sidecarset resume … -n …": "test/cli/ordered-set.slow.ts",
  "sidecarset undo … -n …": "test/cli/ordered-set.slow.ts",
  "sidecarset promote … when the updated ones are fine": "test/cli/advice.slow.ts",
  "sidecarset promote … ends a canary, sidecarset abort … takes it back": "test/cli/advice.slow.ts",
  "sidecarset undo …": "test/cli/advice.slow.ts",
  "sidecarset undo …, or set another image": "test/cli/advice.slow.ts",
  "sidecarset undo … --to-revision …": "test/cli/advice.slow.ts",
  "sidecarset undo … --to-revision NUMBER": "test/cli/advice.slow.ts, with the number that history shows",
  "kubectl -n … rollout restart …": "test/cli/advice.slow.ts",
  "kubectl -n … delete pod …": "test/cli/advice.slow.ts",
  "write it once more while the webhooks answer: kubectl annotate --overwrite sidecarset … sidecarset.kruise.io/written=again":
    "test/cli/advice.slow.ts",
  "kubectl -n … delete pod NAME": "the reader chooses the pod",
  "kubectl -n … scale statefulsets.apps.kruise.io/… --replicas=NUMBER": "the reader chooses the number",
  "set an image that can: sidecarset set image … …=IMAGE": "test/cli/advice.slow.ts, with an image of the reader",
  "# …: the next run of … gets it": "a comment, which a shell ignores",
  'resume it: kubectl patch sidecarset … --type=merge -p \'{"spec":{"updateStrategy":{"paused":false}}}\'':
    "the patch names the field that it is about",
  'resume it: kubectl patch sidecarset … --type=merge -p \'{"spec":{"injectionStrategy":{"paused":false}}}\'':
    "the patch names the field that it is about",
  'kubectl patch sidecarset … --subresource=status --type=merge -p \'{"status":{"ledgerNamespace":""}}\'':
    "test/controller/ledger-people.test.ts",
  "POD_NAMESPACE=…": "test/controller/ledger-people.test.ts",
  "sidecarset history …": "reads",
  "set another image; sidecarset history … shows the revisions": "reads",
  "SidecarSet … has no previous revision; sidecarset history … shows what there is": "reads",
  "sidecarset explain sidecarset/… tells more": "reads",
  "sidecarset status … says how far the rollout is": "reads",
  "see what its containers say: kubectl describe pod -n … …": "reads",
  "kubectl logs -n … … -c … --previous": "reads",
  "kubectl describe pod -n … …": "reads",
  "kubectl annotate pod -n … … …-": "test/controller/down-records.test.ts",
};

it("every printed command with a name in it has a row in the table of tested commands", () => {
  // test/e2e carries out the commands of migrations.
  const files = execFileSync("git", ["ls-files", "shared", "functions"], { encoding: "utf8" })
    .split("\n")
    .filter((file) => file.endsWith(".ts") && !file.includes("/migrate/"));
  const printed = files.flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/commandText`((?:[^`\\]|\\.)*)`/g)].map(([, text = ""]) =>
      text.replaceAll(/\$\{[^}]*\}/g, "…"),
    ),
  );
  expect(printed.length).toBeGreaterThan(20);
  const tests = Object.values(HELD_BY).flatMap((text) => /^test\S+?\.ts/.exec(text)?.[0] ?? []);
  expect(tests.filter((file) => !existsSync(file))).toEqual([]);
  expect([...new Set(printed)].toSorted()).toEqual(Object.keys(HELD_BY).toSorted());
});
