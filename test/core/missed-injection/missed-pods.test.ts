import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import { mayHaveMissed, missedPods } from "../../../shared/core/injection/missed/missed-pods.ts";
import { selectionOf } from "../../../shared/core/rollout/missed/selection.ts";
import { listedPod } from "../../support/objects.ts";

const SINCE = "2026-01-01T00:00:10Z";
const LATER = "2026-01-01T00:00:11Z";
const LIST = "kruise.io/sidecarset-injected-list";

function pod(name: string, wish: { metadata?: object; phase?: string } = {}): Pod {
  const metadata = { name, namespace: "shop", creationTimestamp: LATER, ...wish.metadata } as Pod["metadata"];
  return listedPod(metadata ?? {}, { containers: [] }, { phase: wish.phase ?? "Running" });
}

const set: SidecarSet = { metadata: { name: "agent" }, spec: { selector: { matchLabels: { app: "x" } } } };
const scope = { exemptNamespaces: new Set(["kube-system"]), canaries: ["agent-canary"] };
const missed = (pods: readonly Pod[], sidecarSet = set) =>
  missedPods(mayHaveMissed(pods, sidecarSet, SINCE), scope).map(({ metadata }) => metadata?.name);

describe("a pod has missed its sidecars", () => {
  test.each<[string, Pod]>([
    ["when it was made after the SidecarSet, without them", pod("p")],
    ["when it has those of another", pod("p", { metadata: { annotations: { [LIST]: "mesh,agents" } } })],
    ["when somebody asks for them", pod("p", { metadata: { annotations: { "sidecarset.kruise.io/inject": "true" } } })],
    ["when it waits for a node", pod("p", { phase: "Pending" })],
  ])("%s", (_, one) => {
    expect(missed([one])).toEqual(["p"]);
  });
});

describe("a pod has not", () => {
  test.each<[string, Pod]>([
    [
      "when its annotation declines them",
      pod("p", { metadata: { annotations: { "sidecarset.kruise.io/inject": "false" } } }),
    ],
    ["when its label declines them", pod("p", { metadata: { labels: { "sidecarset.kruise.io/inject": "false" } } })],
    [
      "when it is to be ignored",
      pod("p", { metadata: { annotations: { "sidecarset.kruise.io/ignore-missed": "true" } } }),
    ],
    ["when it has them", pod("p", { metadata: { annotations: { [LIST]: "mesh,agent" } } })],
    ["when it was made before", pod("p", { metadata: { creationTimestamp: "2026-01-01T00:00:09Z" } })],
    ["when it was made in that very second", pod("p", { metadata: { creationTimestamp: SINCE } })],
    ["when it is finished", pod("p", { phase: "Succeeded" })],
    ["when it failed", pod("p", { phase: "Failed" })],
    ["when it is being deleted", pod("p", { metadata: { deletionTimestamp: LATER } })],
    ["when its namespace is left out", pod("p", { metadata: { namespace: "kube-system" } })],
    ["when it is a mirror pod", pod("p", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } })],
    ["when it is to have none", pod("p", { metadata: { annotations: { "sidecarset.kruise.io/inject": "false" } } })],
    ["when a canary took the place", pod("p", { metadata: { annotations: { [LIST]: "agent-canary" } } })],
  ])("%s", (_, one) => {
    expect(missed([one])).toEqual([]);
  });

  test("while injection is paused", () => {
    expect(missed([pod("p")], { ...set, spec: { ...set.spec, injectionStrategy: { paused: true } } })).toEqual([]);
  });
});

test("those that missed them come by namespace and name", () => {
  const pods = [pod("b"), pod("a"), pod("c", { metadata: { namespace: "app" } })];
  expect(missed(pods)).toEqual(["c", "a", "b"]);
});

describe("a SidecarSet selects what it does since", () => {
  const NOW = "2026-02-01T00:00:00Z";
  const made = (metadata: object, status?: SidecarSetStatus, spec: object = {}): SidecarSet => ({
    metadata: { name: "agent", creationTimestamp: SINCE, generation: 1, ...metadata },
    spec: { selector: { matchLabels: { app: "x" } }, ...spec },
    ...(status ? { status } : {}),
  });
  const since = (sidecarSet: SidecarSet) => selectionOf(sidecarSet, NOW).since;
  const fields = (time: string, fieldsV1: object, subresource?: string) => ({ time, fieldsV1, subresource });

  test("it was made, when it was never changed", () => {
    expect(since(made({}))).toBe(SINCE);
  });

  test("its last write, when it was changed before anybody looked", () => {
    const managedFields = [
      fields("2026-01-03T00:00:00Z", { "f:spec": {} }),
      fields("2026-01-04T00:00:00Z", { "f:spec": {} }),
      fields("2026-01-05T00:00:00Z", { "f:metadata": {} }),
      fields("2026-01-06T00:00:00Z", { "f:status": {} }, "status"),
    ];
    expect(since(made({ generation: 2, managedFields }))).toBe("2026-01-04T00:00:00Z");
    expect(since(made({ generation: 2 }))).toBe(NOW);
  });

  test("no earlier than it was made or last written, where the clock of whoever looks is slow", () => {
    const sinceBy = (sidecarSet: SidecarSet) => selectionOf(sidecarSet, "2025-12-31T23:00:00Z").since;
    const status = { selection: { digest: "another", since: SINCE } };
    const managedFields = [fields("2026-01-03T00:00:00Z", { "f:spec": {} })];
    expect(sinceBy(made({ generation: 2 }))).toBe(SINCE);
    expect(sinceBy(made({ generation: 2 }, status))).toBe(SINCE);
    expect(sinceBy(made({ generation: 2, managedFields }, status))).toBe("2026-01-03T00:00:00Z");
  });

  test("it was first seen so, whatever else has changed since, and again when the selection changes", () => {
    const selection = selectionOf(made({}), NOW);
    const status = { selection };
    expect(since(made({ generation: 5 }, status, { containers: [{ name: "x", image: "y" }] }))).toBe(SINCE);
    for (const change of [
      { selector: { matchLabels: { app: "y" } } },
      { namespaceSelector: { matchLabels: { team: "a" } } },
      { injectionStrategy: { paused: true } },
    ])
      expect(since(made({ generation: 5 }, status, change))).toBe(NOW);
  });
});
