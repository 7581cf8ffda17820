import { expect, test } from "vitest";
import { storedSidecarSet } from "../../functions/library/pass-input.ts";
import { preview } from "../../functions/library/preview.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { newPod } from "../support/objects.ts";

const POD = newPod({ labels: { app: "web" } }, { containers: [] });

function written(): SidecarSet {
  const object = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "logging" },
    spec: {
      selector: { matchLabels: { app: "web" } },
      containers: [{ name: "agent", image: "agent:1" }],
      imagePullSecrets: [{ name: "one" }],
    },
  };
  return { ...storedSidecarSet(object), apiVersion: object.apiVersion, kind: object.kind } as SidecarSet;
}

function previewed(sidecarSet: SidecarSet, featureGates = {}) {
  const result = preview({ object: POD, sidecarSets: [sidecarSet], now: "2026-01-02T03:04:05Z", featureGates });
  if (result.kind !== "admitted") throw new Error(result.message);
  return result;
}

test("preview reads the SidecarSet again at each call, also after the caller changed it or an earlier result", () => {
  const sidecarSet = written();
  const before = previewed(sidecarSet);
  const text = JSON.stringify(before);
  (before.pod.spec.containers[0] as { image: string }).image = "another";
  expect(JSON.stringify(previewed(sidecarSet))).toBe(text);
  (sidecarSet.spec as { imagePullSecrets: unknown }).imagePullSecrets = [{ name: "two" }];
  expect(previewed(sidecarSet).pod.spec.imagePullSecrets).toEqual([{ name: "two" }]);
  (sidecarSet.metadata as { name: string }).name = "another";
  expect(previewed(sidecarSet).injected).toEqual(["another"]);
});

test("preview follows the feature gates of the webhook", () => {
  const gatesOf = (featureGates: object) => previewed(written(), featureGates).pod.spec as { readinessGates?: unknown };
  expect(gatesOf({}).readinessGates).toBeUndefined();
  expect(gatesOf({ KruisePodReadinessGate: true }).readinessGates).toEqual([{ conditionType: "KruisePodReady" }]);
});
