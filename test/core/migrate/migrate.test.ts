import { describe, expect, it } from "vitest";
import { planFromKruise, planToKruise } from "../../../shared/core/inspect/migrate/from-kruise.ts";
import type { Migration, MigrationFacts } from "../../../shared/core/inspect/migrate/inventory.ts";
import { formatLedger } from "../../../shared/core/ledger.ts";
import { SET } from "../check/fixture.ts";
import { FACTS, kind, URL } from "./fixture.ts";

const from = (change: Partial<MigrationFacts> = {}, problems: readonly string[] = []) =>
  planFromKruise({ ...FACTS, ...change }, { url: URL }, problems);
const linesOf = ({ steps }: Migration) => steps.flatMap(({ commands }) => commands);
const placeOf = (migration: Migration, text: string) => {
  const place = linesOf(migration).findIndex((line) => line.includes(text));
  expect([text, place]).not.toEqual([text, -1]);
  return place;
};

describe("planFromKruise:", () => {
  it("the plan lists what was found in the cluster", () => {
    expect(from().found).toEqual([
      "OpenKruise's manager kruise-system/kruise-controller-manager v1.8.0, 2 ready, feature gates SidecarTerminator=true",
      "its DaemonSet kruise-system/kruise-daemon",
      "its webhooks: kruise-mutating-webhook-configuration, kruise-validating-webhook-configuration",
      "none of ours is registered",
      "1 SidecarSet, 2 revisions of it, 20 pods",
      "objects of its kinds: 1 SidecarSet, 3 NodeImage",
    ]);
  });

  it("the steps have an order in which pods always have a webhook and never two controllers roll out", () => {
    const plan = from();
    const order = [
      "delete clusterrolebinding sidecarset-reconciler",
      "sidecarset webhooks --url",
      "sidecarset check",
      "kubectl delete mutatingwebhookconfiguration/kruise",
      "scale deployment/kruise-controller-manager --replicas=0",
      "wait --for=delete pod -l control-plane=controller-manager",
      "kubectl patch crd",
      "sidecarset install --url",
      "sidecarset tick --dry-run",
      "delete deployment/kruise-controller-manager",
    ].map((text) => placeOf(plan, text));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(plan.risks.join("\n")).toContain("never `helm uninstall kruise`");
  });

  it("every step that changes something has commands to go back, except the last", () => {
    const changing = from().steps.filter(({ commands }) =>
      commands.some((line) => /^kubectl (apply|delete|patch|-n .* scale)|\| kubectl/.test(line)),
    );
    expect(changing.length).toBeGreaterThan(4);
    expect(changing.slice(0, -1).filter(({ back }) => back.length === 0)).toEqual([]);
  });

  it.each([
    ["kinds that only OpenKruise serves", { kinds: [kind("clonesets", "CloneSet", 4)] }, [], /4 CloneSet/],
    [
      "kinds that cannot be counted",
      { kinds: [kind("clonesets", "CloneSet", undefined)] },
      [],
      /CloneSet \(not counted\)/,
    ],
    ["a SidecarSet that would be refused", {}, ["SidecarSet x: Invalid value"], /SidecarSet x/],
    ["a cluster with nothing to move", { managers: [], sidecarSets: [] }, [], /nothing to move/],
  ] as const)("a migration is blocked by %s and has no steps", (_, change, problems, text) => {
    const { blocks, steps } = from(change, problems);
    expect(blocks).toEqual([expect.stringMatching(text)]);
    expect(steps).toEqual([]);
  });

  it.each([
    [
      "a namespace label that has no replacement",
      { namespaces: [{ metadata: { name: "shop", labels: { "policy.kruise.io/delete-protection": "Always" } } }] },
      /protects from deletion.*shop/,
    ],
    [
      "a kind that needs an optional role",
      { kinds: [kind("containerrecreaterequests", "ContainerRecreateRequest", 1)] },
      /optional\/container-recreate\.yaml/,
    ],
  ] as const)("the changes of a migration mention %s", (_, change, text) => {
    expect(from().changes.join("\n")).not.toMatch(text);
    expect(from(change).changes.join("\n")).toMatch(text);
  });

  it("the plan lists the rollouts that are running", () => {
    const going = { ...SET, status: { matchedPods: 5, updatedPods: 2, observedGeneration: 1 } };
    expect(from({ sidecarSets: [going] }).found).toContain("rollouts under way: ss");
    expect(from().found.join("\n")).not.toContain("under way");
  });

  it("the plan leaves out steps for objects that do not exist", () => {
    const lines = linesOf(from({ managers: [], daemons: [], theirConfigurations: [], conversion: undefined })).join(
      "\n",
    );
    expect(lines).not.toMatch(/kruise-mutating|scale|patch crd|kruise-daemon/);
  });

  it("the plan quotes file names and prints no secret", () => {
    const options = { url: `${URL}/`, caBundle: "my ca.crt", pathSecrets: "it's" };
    const lines = linesOf(planFromKruise(FACTS, options, []));
    expect(lines.find((line) => line.startsWith("sidecarset webhooks"))).toBe(
      `sidecarset webhooks --url ${URL}/ --ca-bundle 'my ca.crt' --path-secrets 'it'\\''s' | kubectl apply -f -`,
    );
    expect(lines.find((line) => line.includes("kubectl patch crd"))).toContain(
      `"url":"${URL}/s/'"$(sidecarset path-secrets --path-secrets 'it'\\''s' /convert)"'/convert"`,
    );
    // printf is a builtin of the shell, so its arguments are in no list of processes.
    expect(lines.filter((line) => line.includes("/s/")).every((line) => line.startsWith("printf %s "))).toBe(true);
  });
});

describe("planToKruise:", () => {
  const ledger = {
    metadata: { name: "sidecarset-ledger-ss" },
    data: formatLedger({
      uid: "u",
      generation: 1,
      reservations: [{ namespace: "n", name: "p", uid: "x", resourceVersion: "1", generation: 1, revision: "r" }],
    }),
  };

  it("the plan stops the product's passes first and removes its webhooks last", () => {
    const plan = planToKruise({ ...FACTS, managers: [], conversion: { url: URL } });
    const order = [
      "delete clusterrolebinding",
      "kubectl patch crd",
      "helm upgrade --install",
      "get mutatingwebhookconfiguration kruise",
      "sidecarset uninstall",
    ].map((text) => placeOf(plan, text));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  it("the plan neither installs nor patches anything while OpenKruise's manager runs", () => {
    expect(linesOf(planToKruise(FACTS)).join("\n")).not.toMatch(/helm|patch/);
  });

  it("the plan reports the reserved pods and deletes ledgers in the last step", () => {
    const { found, steps } = planToKruise({ ...FACTS, ledgers: [ledger] });
    expect(found).toContain("1 ledger, with 1 pod reserved");
    expect(steps.at(-1)?.what).toContain("an hour from now: 1 pod is reserved");
    expect(steps.at(-1)?.commands[0]).toBe("kubectl -n kruise-system delete configmap/sidecarset-ledger-ss");
  });
});
