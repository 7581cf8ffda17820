import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import { mayHaveMissed, missedPods } from "../../../shared/core/injection/missed/missed-pods.ts";
import { selectionOf } from "../../../shared/core/rollout/rules/missed/selection.ts";
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

describe("pods that missed injection:", () => {
  test.each<[string, Pod]>([
    ["that was created after the SidecarSet without sidecars", pod("p")],
    ["with the sidecars of another SidecarSet", pod("p", { metadata: { annotations: { [LIST]: "mesh,agents" } } })],
    [
      "with the annotation inject true",
      pod("p", { metadata: { annotations: { "sidecarset.kruise.io/inject": "true" } } }),
    ],
    ["in the phase Pending", pod("p", { phase: "Pending" })],
  ])("missedPods contains a pod %s", (_, one) => {
    expect(missed([one])).toEqual(["p"]);
  });
});

describe("pods that did not miss injection:", () => {
  test.each<[string, Pod]>([
    [
      "with the annotation inject false",
      pod("p", { metadata: { annotations: { "sidecarset.kruise.io/inject": "false" } } }),
    ],
    ["with the label inject false", pod("p", { metadata: { labels: { "sidecarset.kruise.io/inject": "false" } } })],
    [
      "with the annotation ignore-missed",
      pod("p", { metadata: { annotations: { "sidecarset.kruise.io/ignore-missed": "true" } } }),
    ],
    ["that has the sidecars", pod("p", { metadata: { annotations: { [LIST]: "mesh,agent" } } })],
    ["that was created before the SidecarSet", pod("p", { metadata: { creationTimestamp: "2026-01-01T00:00:09Z" } })],
    ["that was created in the same second as the SidecarSet", pod("p", { metadata: { creationTimestamp: SINCE } })],
    ["that has succeeded", pod("p", { phase: "Succeeded" })],
    ["that has failed", pod("p", { phase: "Failed" })],
    ["that is being deleted", pod("p", { metadata: { deletionTimestamp: LATER } })],
    ["in an exempt namespace", pod("p", { metadata: { namespace: "kube-system" } })],
    ["that is a mirror pod", pod("p", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } })],
    [
      "whose annotation inject is false",
      pod("p", { metadata: { annotations: { "sidecarset.kruise.io/inject": "false" } } }),
    ],
    ["that has the sidecars of a canary", pod("p", { metadata: { annotations: { [LIST]: "agent-canary" } } })],
  ])("missedPods does not contain a pod %s", (_, one) => {
    expect(missed([one])).toEqual([]);
  });

  test("missedPods is empty while injection is paused", () => {
    expect(missed([pod("p")], { ...set, spec: { ...set.spec, injectionStrategy: { paused: true } } })).toEqual([]);
  });
});

test("missedPods are sorted by namespace and name", () => {
  const pods = [pod("b"), pod("a"), pod("c", { metadata: { namespace: "app" } })];
  expect(missed(pods)).toEqual(["c", "a", "b"]);
});

describe("selectionOf, the time since which a SidecarSet has its selection:", () => {
  const NOW = "2026-02-01T00:00:00Z";
  const made = (metadata: object, status?: SidecarSetStatus, spec: object = {}): SidecarSet => ({
    metadata: { name: "agent", creationTimestamp: SINCE, generation: 1, ...metadata },
    spec: { selector: { matchLabels: { app: "x" } }, ...spec },
    ...(status ? { status } : {}),
  });
  const since = (sidecarSet: SidecarSet) => selectionOf(sidecarSet, NOW).since;
  const fields = (time: string, fieldsV1: object, subresource?: string) => ({ time, fieldsV1, subresource });

  test("the time is the creation of a SidecarSet that never changed", () => {
    expect(since(made({}))).toBe(SINCE);
  });

  test("the time is the last write of the spec if the SidecarSet changed before the first pass", () => {
    const managedFields = [
      fields("2026-01-03T00:00:00Z", { "f:spec": {} }),
      fields("2026-01-04T00:00:00Z", { "f:spec": {} }),
      fields("2026-01-05T00:00:00Z", { "f:metadata": {} }),
      fields("2026-01-06T00:00:00Z", { "f:status": {} }, "status"),
    ];
    expect(since(made({ generation: 2, managedFields }))).toBe("2026-01-04T00:00:00Z");
    expect(since(made({ generation: 2 }))).toBe(NOW);
  });

  test("the time is never before the creation or the last write, even if the clock is slow", () => {
    const sinceBy = (sidecarSet: SidecarSet) => selectionOf(sidecarSet, "2025-12-31T23:00:00Z").since;
    const status = { selection: { digest: "another", since: SINCE } };
    const managedFields = [fields("2026-01-03T00:00:00Z", { "f:spec": {} })];
    expect(sinceBy(made({ generation: 2 }))).toBe(SINCE);
    expect(sinceBy(made({ generation: 2 }, status))).toBe(SINCE);
    expect(sinceBy(made({ generation: 2, managedFields }, status))).toBe("2026-01-03T00:00:00Z");
  });

  test("the time stays if other fields change, and is now if selector, namespaces or pause of injection change", () => {
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
