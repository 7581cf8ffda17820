import { describe, expect, it } from "vitest";
import { checkInstallation } from "../../../shared/core/inspect/check/check.ts";
import type { Facts } from "../../../shared/core/inspect/check/facts.ts";
import { SEVERITIES } from "../../../shared/core/inspect/check/finding.ts";
import { IN_ORDER, seen, setOf, valueIn, withWebhook } from "./fixture.ts";
import { ADDRESSES } from "./rows-address.ts";
import { CLUSTER } from "./rows-cluster.ts";
import { REGISTRATION, withGate } from "./rows-registration.ts";
import { SETS } from "./rows-sets.ts";

const ALL = [...REGISTRATION, ...ADDRESSES, ...CLUSTER, ...SETS];

const idsIn = (facts: Facts) => checkInstallation(facts).findings.map(({ id }) => id);

describe("an installation in order", () => {
  it("has nothing but what is told of every one", () => {
    expect(checkInstallation(IN_ORDER).findings.map(({ id, message }) => `${id}: ${message}`)).toEqual([
      expect.stringMatching(/^FailsOpen: /),
    ]);
  });

  it("is looked at in whole, and it is said how much that was", () => {
    expect(checkInstallation(IN_ORDER)).toMatchObject({
      counts: { error: 0, warning: 0, note: 1 },
      looked: { sidecarSets: 1, pods: 1, webhooks: 3, addresses: 1, rights: 3 },
    });
  });
});

describe("what is wrong is found", () => {
  it.each(ALL)("%s: %s", (id, _sentence, facts, text) => {
    const found = checkInstallation(facts).findings.filter((one) => one.id === id);
    expect(found.map(({ about, message }) => `${about}: ${message}`)).toEqual(
      expect.arrayContaining([expect.stringMatching(text)]),
    );
    expect(found[0]).toMatchObject({ severity: SEVERITIES[id], link: `docs/check.md#${id.toLowerCase()}` });
    expect(found[0]?.hint.length).toBeGreaterThan(5);
  });

  it.each(ALL.filter(([id]) => id !== "FailsOpen"))("%s, and not where it is in order: %s", (id) => {
    expect(idsIn(IN_ORDER)).not.toContain(id);
  });

  it("not where every pod is asked about because every pod is to have a readiness gate", () => {
    const asked = withWebhook(IN_ORDER, "mpod.kb.io", { matchConditions: [] });
    expect(idsIn(asked)).toContain("EveryPodAsked");
    expect(idsIn(withGate(asked))).not.toContain("EveryPodAsked");
    expect(idsIn(withGate(asked))).not.toContain("ConditionStale");
  });

  it("not where another registration asks about the pods that one leaves out", () => {
    const late = { ...IN_ORDER, sidecarSets: seen([setOf("ss", { selector: { matchLabels: { app: "new" } } })]) };
    const [whole] = valueIn(withWebhook(late, "mpod.kb.io", { matchConditions: [] }).mutating);
    const both = { ...late, mutating: seen([...valueIn(late.mutating), ...(whole ? [whole] : [])]) };
    expect(idsIn(late)).toContain("ConditionStale");
    expect(idsIn(both)).not.toContain("ConditionStale");
  });

  it("each of them, and at least 25", () => {
    const shown = new Set<string>(ALL.map(([id]) => id));
    // Of a manifest, not of an installation: before-install.test.ts
    expect(Object.keys(SEVERITIES).filter((id) => !shown.has(id))).toEqual(["InstallRefused"]);
    expect(shown.size).toBeGreaterThanOrEqual(25);
  });
});

describe("what cannot be looked at", () => {
  const nothing = Object.fromEntries(
    Object.entries(IN_ORDER).map(([key, fact]) => [
      key,
      typeof fact === "object" && "value" in fact ? { why: "forbidden" } : fact,
    ]),
  ) as unknown as Facts;

  it("is a finding each, and nothing else is made up", () => {
    const { findings, looked } = checkInstallation({ ...nothing, probes: [] });
    expect(new Set(findings.map(({ id }) => id))).toEqual(new Set(["NotLookedAt"]));
    expect(findings).toHaveLength(18);
    expect(looked).toMatchObject({ sidecarSets: 0, pods: 0, webhooks: 0 });
  });
});
