import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import { convertSidecarSet } from "../../shared/core/sidecarset/convert.ts";
import { sidecarSetSchema } from "../../shared/install/crd/sidecarset-crd.ts";

const LABEL = "apps.kruise.io/sidecarset-custom-version";

function converted(object: unknown, version: string): KubernetesObject {
  const result = convertSidecarSet(object as KubernetesObject, version);
  if (result.kind === "DecodeError") throw new Error(result.message);
  return result.value;
}

const label = fc.constantFrom("a", "team", "kubernetes.io/metadata.name");
const value = fc.constantFrom("", "1", "v2");
const labels = fc.dictionary(label, value, { maxKeys: 3 });
const selector = fc.record({ matchLabels: labels }, { requiredKeys: [] });

const sidecarSet = fc.record({
  apiVersion: fc.constant(SIDECARSET_V1BETA1),
  kind: fc.constant("SidecarSet"),
  metadata: fc.record({ name: fc.constant("s"), labels }, { requiredKeys: ["name"] }),
  spec: fc.record(
    {
      selector,
      namespaceSelector: selector,
      containers: fc.array(fc.record({ name: fc.string(), image: value, tty: fc.boolean() })),
      customVersion: value,
      revisionHistoryLimit: fc.nat(),
      updateStrategy: fc.record({ partition: fc.oneof(fc.nat(), value), paused: fc.boolean() }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  ),
  status: fc.record({ matchedPods: fc.nat(), collisionCount: fc.nat() }, { requiredKeys: [] }),
});

describe("convertSidecarSet:", () => {
  it("a v1beta1 object does not change after the first conversion to v1alpha1 and back", () => {
    fc.assert(
      fc.property(sidecarSet, (object) => {
        const there = converted(object, SIDECARSET_V1ALPHA1);
        const back = converted(there, SIDECARSET_V1BETA1);
        const again = converted(converted(back, SIDECARSET_V1ALPHA1), SIDECARSET_V1BETA1);
        expect(there.apiVersion).toBe(SIDECARSET_V1ALPHA1);
        expect(back.apiVersion).toBe(SIDECARSET_V1BETA1);
        expect(again).toEqual(back);
        expect(converted(back, SIDECARSET_V1ALPHA1)).toEqual(there);
      }),
      { numRuns: 2000 },
    );
  });

  const rows: readonly (readonly [string, object, object])[] = [
    [
      "the namespaceSelector of v1beta1 comes from a v1alpha1 namespace, which replaces a given namespaceSelector",
      { namespace: "n", namespaceSelector: { matchLabels: { a: "b" } } },
      { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "n" } } },
    ],
  ];
  it.each(rows)("%s", (_sentence, spec, expected) => {
    const hub = converted({ apiVersion: SIDECARSET_V1ALPHA1, spec }, SIDECARSET_V1BETA1);
    expect(hub).toMatchObject({ spec: expected });
    expect((hub as { spec?: object }).spec).not.toHaveProperty("namespace");
  });

  it("the custom version moves from the v1alpha1 label to the v1beta1 field and back", () => {
    const old = { apiVersion: SIDECARSET_V1ALPHA1, metadata: { name: "s", labels: { [LABEL]: "2" } }, spec: {} };
    const hub = converted(old, SIDECARSET_V1BETA1);
    expect(hub).toMatchObject({ spec: { customVersion: "2" } });
    expect(hub.metadata).not.toHaveProperty("labels");
    expect(converted(hub, SIDECARSET_V1ALPHA1).metadata?.labels).toEqual({ [LABEL]: "2" });
  });

  it("the conversion keeps the status fields that our definition adds", () => {
    const added = {
      conditions: [{ type: "Progressing", status: "True", reason: "r", message: "m", lastTransitionTime: "t" }],
      selection: { digest: "d", since: "2026-01-02T03:04:05Z" },
      ledgerNamespace: "kruise-system",
      observedAnnotations: { "sidecarset.kruise.io/halt-on": "3" },
      waves: { revision: "h", waves: [{ name: "dev", completeAt: "2026-01-02T03:04:05Z" }] },
      notifications: [{ id: "n", at: "2026-01-02T03:04:05Z", event: "Finished", message: "m" }],
    };
    const counts = [
      "observedGeneration matchedPods updatedPods readyPods updatedReadyPods latestRevision collisionCount",
    ].flatMap((names) => names.split(" "));
    const fields = Object.keys(sidecarSetSchema({}).properties?.["status"]?.properties ?? {});
    expect([...counts, ...Object.keys(added)].toSorted()).toEqual(fields.toSorted());
    const there = converted({ apiVersion: SIDECARSET_V1BETA1, status: added }, SIDECARSET_V1ALPHA1);
    expect(there).toMatchObject({ status: added });
    expect(converted(there, SIDECARSET_V1BETA1)).toMatchObject({ status: { matchedPods: 0, ...added } });
    const without = converted({ apiVersion: SIDECARSET_V1BETA1, status: {} }, SIDECARSET_V1ALPHA1);
    expect(without).toMatchObject({ status: { matchedPods: 0, updatedPods: 0, readyPods: 0 } });
    expect(Object.keys((without as { status?: object }).status ?? {})).toHaveLength(3);
  });

  it("an unknown version or an invalid object gives a DecodeError with a message", () => {
    const to = (object: object, version: string): unknown => convertSidecarSet(object, version);
    expect(to({ apiVersion: SIDECARSET_V1BETA1 }, "apps.kruise.io/v2")).toEqual({
      kind: "DecodeError",
      message: "there is no conversion from apps.kruise.io/v1beta1 to apps.kruise.io/v2",
    });
    for (const version of [SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1]) {
      const message = `there is no conversion from apps.kruise.io/v2 to ${version}`;
      expect(to({ apiVersion: "apps.kruise.io/v2" }, version)).toEqual({ kind: "DecodeError", message });
    }
    expect(to({ apiVersion: SIDECARSET_V1ALPHA1 }, "apps.kruise.io/v2")).toMatchObject({ kind: "DecodeError" });
    expect(to({ apiVersion: SIDECARSET_V1BETA1, spec: { containers: 1 } }, SIDECARSET_V1ALPHA1)).toMatchObject({
      message: "spec.containers must be a list, not the number 1",
    });
    expect(to({ apiVersion: SIDECARSET_V1ALPHA1, spec: { containers: 1 } }, SIDECARSET_V1BETA1)).toMatchObject({
      message: "spec.containers must be a list, not the number 1",
    });
  });
});
