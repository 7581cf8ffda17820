import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { admitPod } from "../../shared/core/injection/admit-pod.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { planUpgrade } from "../../shared/core/rollout/upgrade/plan-upgrade.ts";
import { evaluateResourceExpression } from "../../shared/go/quantity/resource-expression.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { listedPod } from "../support/objects.ts";
import { podOf, sidecarSetOf } from "../support/rollout-fixture.ts";

const PAGE = "docs/compatibility.md";
const page = readFileSync(PAGE, "utf8");

interface Row {
  readonly line: string;
  readonly tests: readonly { readonly title: string; readonly path: string }[];
}

/** The rows of every table with the last column "Pinned by". */
function rowsOf(text: string): readonly Row[] {
  const lines = text.split("\n");
  const isHead = (line: string) => line.startsWith("|") && line.endsWith("| Pinned by |");
  return lines.flatMap((head, index) => {
    if (!isHead(head)) return [];
    const below = lines.slice(index + 2);
    const end = below.findIndex((line) => !line.startsWith("|"));
    return below.slice(0, end < 0 ? below.length : end).map((line) => ({ line, tests: linksIn(line) }));
  });
}

function linksIn(line: string): Row["tests"] {
  const last = line.split("|").at(-2) ?? "";
  return [...last.matchAll(/\[(.+?)\]\(([^)]+)\)/g)].map(([, title = "", link = ""]) => ({
    title,
    path: join(dirname(PAGE), link),
  }));
}

describe(`${PAGE}:`, () => {
  const rows = rowsOf(page);

  test("every row of docs/compatibility.md names a test that exists", () => {
    const missing = rows.flatMap(({ tests }) =>
      tests.filter(({ title, path }) => !readFileSync(path, "utf8").includes(JSON.stringify(title))),
    );
    expect(missing).toEqual([]);
    expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
    const tests = rows.flatMap((row) => row.tests).length;
    process.stdout.write(`${PAGE}: ${rows.length} rows, pinned by ${tests} tests\n`);
    expect(rows.length).toBeGreaterThan(30);
  });

  test("every table of docs/compatibility.md has the column Pinned by", () => {
    const tables = page.split("\n").filter((line) => /^\|(-+\|)+$/.test(line)).length;
    const inTables = page.split("\n").filter((line) => line.startsWith("|")).length;
    expect(rows.length).toBe(inTables - 2 * tables);
  });

  test("rowsOf reads the title and the path of a test, and no test from a row without a link", () => {
    const [row] = rowsOf("| a | Pinned by |\n|---|---|\n| b | [no such test](../test/docs/compatibility.test.ts) |\n");
    expect(row?.tests).toEqual([{ title: "no such test", path: "test/docs/compatibility.test.ts" }]);
    expect(rowsOf("| a | Pinned by |\n|---|---|\n| b | none |\n")).toEqual([{ line: "| b | none |", tests: [] }]);
  });

  test("docs/compatibility.md lists every feature gate with its default", () => {
    const { featureGates } = readConfig({});
    const listed = rows.flatMap(({ line }) => {
      const [, gate, value] = /^\| `(\w+)` \|.*\| (on|off) \|/.exec(line) ?? [];
      return gate ? [[gate, value === "on"]] : [];
    });
    expect(Object.fromEntries(listed)).toEqual(featureGates);
  });
});

describe("differences without a test of their own elsewhere:", () => {
  test("the pod webhook refuses the update of a pod when two SidecarSets are each other's canary", () => {
    const canaryOf = (base: string) => ({
      "apps.kruise.io/sidecarset-canary": "true",
      "apps.kruise.io/sidecarset-base": base,
    });
    const sets = ["a", "b"].map((name) => ({
      metadata: { name, annotations: canaryOf(name === "a" ? "b" : "a") },
      spec: { selector: { matchLabels: { app: "web" } }, containers: [{ name }] },
    }));
    const object: Pod = listedPod({ name: "p", labels: { app: "web" } });
    const resource = { group: "", version: "v1", resource: "pods" };
    const admit = (operation: string) =>
      admitPod(
        { uid: "u", resource, namespace: "shop", operation, object, oldObject: object },
        { index: indexSidecarSets(sets), namespace: { metadata: { name: "shop" } }, revisions: [] },
        { now: "2026-01-02T03:04:05Z", random: () => 0, kruiseNamespace: "kruise-system", gates: {} },
      );
    expect(admit("UPDATE")).toMatchObject({
      kind: "denied",
      message: "every SidecarSet that matches the pod is the base of another's canary",
    });
    expect(admit("CREATE")).toEqual({ kind: "allowed" });
  });

  test("a resource expression with 100,000 nested parentheses fails", () => {
    const nested = (depth: number) =>
      evaluateResourceExpression(`${"(".repeat(depth)}1${")".repeat(depth)}`, new Map());
    expect(nested(400)).toMatchObject({ number: 1 });
    expect(nested(100_000)).toMatchObject({ kind: "failed" });
  });

  test("planUpgrade ignores an update state with 100,000 nested lists", () => {
    const key = "kruise.io/sidecarset-inplace-update-state";
    const written = (depth: number) => {
      const later = `${"[".repeat(depth)}${"]".repeat(depth)}`;
      const pod = podOf({ annotations: { [key]: `{"other":{"later":${later}}}` } });
      const plan = planUpgrade(pod, sidecarSetOf(), { now: "2026-01-02T03:04:05Z", latestRevision: "r" });
      if (plan.kind === "refused") throw new Error(plan.message);
      return Object.keys(JSON.parse(plan.annotations[key] ?? "null") as object);
    };
    expect(written(100)).toEqual(["other", "ss"]);
    expect(written(100_000)).toEqual(["ss"]);
  });
});
