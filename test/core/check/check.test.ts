import { describe, expect, it } from "vitest";
import { checkInstallation } from "../../../shared/core/inspect/check/check.ts";
import type { Facts } from "../../../shared/core/inspect/check/facts.ts";
import { SEVERITIES } from "../../../shared/core/inspect/check/finding.ts";
import { podToTry } from "../../../shared/core/inspect/check/webhooks.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { IN_ORDER, SET, seen, setOf, valueIn, withWebhook } from "./fixture.ts";
import { ADDRESSES } from "./rows-address.ts";
import { CLUSTER } from "./rows-cluster.ts";
import { REGISTRATION, withGate } from "./rows-registration.ts";
import { SETS } from "./rows-sets.ts";

const ALL = [...REGISTRATION, ...ADDRESSES, ...CLUSTER, ...SETS];

const idsIn = (facts: Facts) => checkInstallation(facts).findings.map(({ id }) => id);

describe("checkInstallation of a healthy installation:", () => {
  it("a healthy installation has only the finding FailsOpen", () => {
    expect(checkInstallation(IN_ORDER).findings.map(({ id, message }) => `${id}: ${message}`)).toEqual([
      expect.stringMatching(/^FailsOpen: /),
    ]);
  });

  it("the result counts what was checked in a healthy installation", () => {
    expect(checkInstallation(IN_ORDER)).toMatchObject({
      counts: { error: 0, warning: 0, note: 1 },
      looked: { sidecarSets: 1, pods: 1, webhooks: 3, addresses: 1, rights: 3 },
    });
  });
});

describe("podToTry:", () => {
  const { namespaces } = IN_ORDER;
  const selector = {
    matchLabels: { app: "web" },
    matchExpressions: [
      { key: "tier", operator: "In", values: ["front", "back"] },
      { key: "team", operator: "Exists" },
      { key: "old", operator: "DoesNotExist" },
    ],
  };

  it("podToTry returns a pod that matches the first injecting SidecarSet, in a namespace for which the webhook is called", () => {
    const sets = [setOf("paused", { injectionStrategy: { paused: true } }), setOf("ss", { selector })];
    expect(podToTry(sets, valueIn(namespaces))?.metadata).toMatchObject({
      namespace: "default",
      labels: { app: "web", tier: "front", team: "check" },
    });
  });

  it.each([
    ["no SidecarSet", []],
    [
      "a SidecarSet for kube-system",
      [setOf("ss", { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } } })],
    ],
    ["a SidecarSet that is paused", [setOf("ss", { injectionStrategy: { paused: true } })]],
  ])("there is no pod to try with %s", (_what, sets) => {
    expect(podToTry(sets, valueIn(namespaces))).toBeUndefined();
  });
});

describe("findings of checkInstallation:", () => {
  it.each(ALL)("checkInstallation reports %s if %s", (id, _sentence, facts, text) => {
    const found = checkInstallation(facts).findings.filter((one) => one.id === id);
    expect(found.map(({ about, message }) => `${about}: ${message}`)).toEqual(
      expect.arrayContaining([expect.stringMatching(text)]),
    );
    expect(found[0]).toMatchObject({ severity: SEVERITIES[id], link: `docs/check.md#${id.toLowerCase()}` });
    expect(found[0]?.hint.length).toBeGreaterThan(5);
  });

  it.each(ALL.filter(([id]) => id !== "FailsOpen"))(
    "checkInstallation does not report %s in a healthy installation (unlike if %s)",
    (id) => {
      expect(idsIn(IN_ORDER)).not.toContain(id);
    },
  );

  it("EveryPodAsked and ConditionStale are not reported if every pod needs the readiness gate", () => {
    const asked = withWebhook(IN_ORDER, "mpod.kb.io", { matchConditions: [] });
    expect(idsIn(asked)).toContain("EveryPodAsked");
    expect(idsIn(withGate(asked))).not.toContain("EveryPodAsked");
    expect(idsIn(withGate(asked))).not.toContain("ConditionStale");
  });

  it("ConditionStale is not reported if another registration covers the left-out pods", () => {
    const late = { ...IN_ORDER, sidecarSets: seen([setOf("ss", { selector: { matchLabels: { app: "new" } } })]) };
    const [whole] = valueIn(withWebhook(late, "mpod.kb.io", { matchConditions: [] }).mutating);
    const both = { ...late, mutating: seen([...valueIn(late.mutating), ...(whole ? [whole] : [])]) };
    expect(idsIn(late)).toContain("ConditionStale");
    expect(idsIn(both)).not.toContain("ConditionStale");
  });

  it("the examples cover all findings except InstallRefused, which are at least 25", () => {
    const shown = new Set<string>(ALL.map(([id]) => id));
    // This finding is about a manifest; before-install.test.ts tests it.
    expect(Object.keys(SEVERITIES).filter((id) => !shown.has(id))).toEqual(["InstallRefused"]);
    expect(shown.size).toBeGreaterThanOrEqual(25);
  });
});

describe("facts that cannot be read:", () => {
  const nothing = Object.fromEntries(
    Object.entries(IN_ORDER).map(([key, fact]) => [
      key,
      typeof fact === "object" && "value" in fact ? { why: "forbidden" } : fact,
    ]),
  ) as unknown as Facts;

  it("each unreadable fact is a finding NotLookedAt, and there are no other findings", () => {
    const { findings, looked } = checkInstallation({ ...nothing, probes: [] });
    expect(new Set(findings.map(({ id }) => id))).toEqual(new Set(["NotLookedAt"]));
    expect(findings).toHaveLength(20);
    expect(looked).toMatchObject({ sidecarSets: 0, pods: 0, webhooks: 0 });
  });
});

it("RolloutBlocked and PodsFail suggest undo if a revision was ready before, and history if the revisions cannot be read", () => {
  const fact = SETS.find(([id]) => id === "PodsFail")?.[2] ?? IN_ORDER;
  const blocked = SETS.find(([, sentence]) => sentence === "an image cannot be pulled")?.[2] ?? IN_ORDER;
  const before = setOf("ss", { containers: [{ name: "sc", image: "reg/sc:v1" }] });
  const [older, newer] = [before, SET].map((one, index) => {
    const revision = newRevision(one, { revision: index + 1, collisionCount: 0, namespace: "kruise-system" });
    const at = { "sidecarset.kruise.io/ready-at": "2025-05-01T00:00:00Z" };
    return index === 0
      ? { ...revision, metadata: { ...revision.metadata, annotations: { ...revision.metadata?.annotations, ...at } } }
      : revision;
  });
  const hints = (facts: Facts) =>
    checkInstallation(facts)
      .findings.filter(({ id }) => id === "PodsFail" || id === "RolloutBlocked")
      .map(({ hint }) => hint);
  for (const facts of [fact, blocked]) {
    expect(hints({ ...facts, revisions: { why: "forbidden" } })).toEqual([
      expect.stringContaining("sidecarset history ss"),
    ]);
    expect(hints(facts)).toEqual([expect.not.stringContaining("sidecarset undo")]);
    const revisions = seen([older, newer].flatMap((one) => one ?? []));
    expect(hints({ ...facts, revisions })).toEqual([expect.stringContaining("sidecarset undo ss")]);
  }
});
