/**
 * Tests the places beside the webhook that must know each feature gate of the injection. The compiler demands a row for
 * a new gate.
 */
import { expect, test } from "vitest";
import { compile } from "../../functions/library/compile.ts";
import { storedSidecarSet } from "../../functions/library/pass-input.ts";
import { preview } from "../../functions/library/preview.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { INJECT_KEY } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { admitPod, type InjectionGates } from "../../shared/core/injection/admit-pod.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { newPod } from "../support/objects.ts";

interface Row {
  /** labels of a pod that the feature gate changes, beside its label `app` */
  readonly labels?: Readonly<Record<string, string>>;
  /** false: policies leave the gate's effect out, as docs/compile.md says */
  readonly isCompiled: boolean;
}

const ROWS: Readonly<Record<keyof InjectionGates, Row>> = {
  EnableSortSidecarContainerByName: { isCompiled: true },
  KruisePodReadinessGate: { isCompiled: false },
  PodOptOut: { labels: { [INJECT_KEY]: "false" }, isCompiled: true },
};
const GATES = Object.entries(ROWS) as readonly (readonly [keyof InjectionGates, Row])[];

const NOW = "2026-01-02T03:04:05Z";
const SIDECAR_SET: SidecarSet & { readonly apiVersion: string; readonly kind: string } = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "log" },
  spec: {
    selector: { matchLabels: { app: "web" } },
    containers: ["second", "first"].map((name) => ({ name, image: "agent:1" })),
  },
};

function podWith({ labels }: Row): Pod {
  return newPod({ name: "web", labels: { app: "web", ...labels } });
}

function previewed(row: Row, featureGates: InjectionGates): Pod {
  const result = preview({ object: podWith(row), sidecarSets: [SIDECAR_SET], now: NOW, featureGates });
  if (result.kind === "refused") throw new Error(result.message);
  return result.pod;
}

/** Returns the containers, the readiness gates and the labels of the pod that the webhook makes. */
function partsOf({ metadata, spec }: Pod): unknown {
  return [metadata?.labels, { ...spec }];
}

function admitted(row: Row, gates: InjectionGates): Pod {
  const pod = podWith(row);
  const resource = { group: "", version: "v1", resource: "pods" };
  const request = { uid: "u", resource, namespace: "default", operation: "CREATE", object: pod };
  const view = { index: indexSidecarSets([storedSidecarSet(SIDECAR_SET)]), namespace: undefined, revisions: [] };
  const admission = admitPod(request, view, { now: NOW, random: () => 0, kruiseNamespace: "kruise-system", gates });
  if (admission.kind === "denied") throw new Error(admission.message);
  return (admission.object ?? pod) as Pod;
}

test.each(GATES)("gate %s changes the pod that the webhook returns", (gate, row) => {
  expect(partsOf(admitted(row, { [gate]: true }))).not.toEqual(partsOf(admitted(row, {})));
});

test.each(GATES)("preview of the library knows gate %s, and returns the same pod as the webhook", (gate, row) => {
  for (const isOn of [true, false])
    expect(partsOf(previewed(row, { [gate]: isOn }))).toEqual(partsOf(admitted(row, { [gate]: isOn })));
});

test.each(GATES)(
  "compile of the library knows gate %s, unless the row of the gate says that policies leave it out",
  (gate, row) => {
    const compiled = (isOn: boolean) => compile({ sidecarSet: SIDECAR_SET, now: NOW, featureGates: { [gate]: isOn } });
    const isTheSame = JSON.stringify(compiled(true)) === JSON.stringify(compiled(false));
    expect(isTheSame).toBe(!row.isCompiled);
  },
);
