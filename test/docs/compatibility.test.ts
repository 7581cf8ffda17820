import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { admitPod } from "../../shared/core/injection/admit-pod.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { planUpgrade } from "../../shared/core/rollout/upgrade/plan-upgrade.ts";
import { evaluateResourceExpression } from "../../shared/go/quantity/resource-expression.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { listedPod } from "../support/objects.ts";
import { podOf, sidecarSetOf } from "../support/rollout-fixture.ts";
import { pinsIn, pinsOf } from "./support/pins.ts";

const PAGES = ["compatibility", "compatibility-rollouts", "compatibility-features", "feature-gates"].map(
  (name) => `docs/${name}.md`,
);
const text = PAGES.map((page) => readFileSync(page, "utf8")).join("\n");

/** The first cells of each row of each table. */
const promises = text.split("\n").flatMap((line, index, lines) => {
  const isRow = line.startsWith("| ") && !(lines[index + 1] ?? "").startsWith("|-");
  return isRow ? [(line.split("|")[1] ?? "").replaceAll(/[ `]/g, "")] : [];
});

describe("docs/compatibility.md and its further pages:", () => {
  const pins = pinsOf("Compatibility");

  test("every row of the compatibility pages has a row of tests in test/docs/pins.md, and no other row has one", () => {
    expect(promises.toSorted()).toEqual([...pins.keys()].toSorted());
    expect(promises.length).toBeGreaterThan(115);
  });

  test("every test that test/docs/pins.md names for a difference exists", () => {
    const tests = [...pins.values()].flat();
    expect([...pins].filter(([, those]) => those.length === 0)).toEqual([]);
    expect(tests.filter(({ title, path }) => !readFileSync(path, "utf8").includes(JSON.stringify(title)))).toEqual([]);
    process.stdout.write(`${PAGES.join(", ")}: ${pins.size} rows, pinned by ${tests.length} tests\n`);
  });

  test("pinsIn reads the title and the path of a test, and no test from a row without a link", () => {
    const table = "## A\n\n| row | tests |\n|---|---|\n";
    const pin = { title: "no [such] test", path: "test/docs/compatibility.test.ts" };
    expect(pinsIn(`${table}| b | [no \\[such\\] test](compatibility.test.ts) |\n`, "A")).toEqual(
      new Map([["b", [pin]]]),
    );
    expect(pinsIn(`${table}| b | none |\n`, "A")).toEqual(new Map([["b", []]]));
  });

  test("docs/feature-gates.md lists every feature gate with its default", () => {
    const { featureGates } = readConfig({});
    const listed = [...text.matchAll(/^\| `(\w+)` \|.*\| (on|off) \|$/gm)].map(([, gate, value]) => [
      gate ?? "",
      value === "on",
    ]);
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
