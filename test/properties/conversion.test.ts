import fc from "fast-check";
import { expect, test } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { convertSidecarSet } from "../../shared/core/sidecarset/convert.ts";
import { defaulted, sidecarSet } from "./arbitraries.ts";
import { holds } from "./holds.ts";

const [ALPHA, BETA] = ["apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"];
const LABEL = "apps.kruise.io/sidecarset-custom-version";
const NAMESPACE_NAME = "kubernetes.io/metadata.name";

function converted(object: object, version: string): SidecarSet {
  const result = convertSidecarSet(object as KubernetesObject, version);
  if (result.kind === "DecodeError") throw new Error(result.message);
  return result.value as SidecarSet;
}

/** Generates SidecarSets of the hub version, with all fields that only one version has. */
const hubs = fc
  .record({
    object: sidecarSet,
    customVersion: fc.constantFrom(undefined, "v2"),
    labels: fc.constantFrom<Readonly<Record<string, string>> | undefined>(undefined, { team: "a" }),
    status: fc.record({ matchedPods: fc.nat(9), updatedPods: fc.nat(9), readyPods: fc.nat(9) }),
  })
  .map(({ object, customVersion, labels, status }) => {
    const spec = { ...object.spec, ...(customVersion ? { customVersion } : {}) };
    const metadata = { ...object.metadata, ...(labels ? { labels } : {}) };
    return defaulted({ ...object, metadata, spec, status });
  });

test("a SidecarSet is unchanged after conversion from v1beta1 to v1alpha1 and back", () => {
  holds(hubs, ["custom version", "no labels", "namespaceSelector"], (hub, seen) => {
    const there = converted(hub, ALPHA);
    expect(there.metadata?.labels?.[LABEL]).toBe(hub.spec.customVersion);
    expect(there.spec).not.toHaveProperty("customVersion");
    expect(converted(there, BETA)).toEqual(hub);
    seen("custom version", hub.spec.customVersion !== undefined);
    seen("no labels", hub.metadata?.labels === undefined);
    seen("namespaceSelector", hub.spec.namespaceSelector !== undefined);
  });
});

/** Generates an object of v1alpha1 with fields that the hub lacks, and its expected form in the hub version. */
const olds = fc
  .tuple(hubs, fc.constantFrom(undefined, "", "shop"), fc.constantFrom(undefined, "", "v3"))
  .map(([hub, namespace, label]) => {
    const { spec, metadata, ...rest } = converted(hub, ALPHA);
    const { [LABEL]: _label, ...others } = metadata?.labels ?? {};
    const labels = { ...others, ...(label === undefined ? {} : { [LABEL]: label }) };
    const { namespaceSelector: given, ...same } = spec;
    const namespaceSelector = namespace ? { matchLabels: { [NAMESPACE_NAME]: namespace } } : given;
    return {
      old: { ...rest, metadata: { ...metadata, labels }, spec: { ...spec, namespace } },
      spec: { ...same, ...(namespaceSelector ? { namespaceSelector } : {}) },
      labels: { ...others, ...(label ? { [LABEL]: label } : {}) },
      classes: {
        namespace: namespace === "shop",
        "empty namespace": namespace === "",
        "namespace wins": namespace === "shop" && given !== undefined,
        label: label === "v3",
        "empty label": label === "",
      },
    };
  });

test("conversion from v1alpha1 to v1beta1 and back changes only spec.namespace, into a namespaceSelector", () => {
  const names = ["namespace", "empty namespace", "namespace wins", "label", "empty label"];
  holds(olds, names, ({ old, spec, labels, classes }, seen) => {
    const there = converted(old, BETA);
    expect(there.spec.namespaceSelector).toEqual(spec.namespaceSelector);
    expect(there.spec.customVersion).toBe(labels[LABEL]);
    const back = converted(there, ALPHA);
    expect(back.spec).toEqual(spec);
    expect(back.metadata?.labels ?? {}).toEqual(labels);
    expect(converted(back, BETA)).toEqual(there);
    for (const [name, isSeen] of Object.entries(classes)) seen(name, isSeen);
  });
});

test("a SidecarSet gets the same hashes and the same defaults in both versions", () => {
  holds(hubs, ["init containers"], (hub, seen) => {
    const { metadata, spec } = converted(hub, ALPHA);
    const { annotations: _hashes, ...bare } = metadata ?? {};
    const beside = defaulted({ apiVersion: ALPHA, kind: "SidecarSet", metadata: bare, spec }, "v1alpha1");
    const hashesOf = ({ metadata: { annotations = {} } = {} }: SidecarSet) =>
      Object.entries(annotations).filter(([key]) => key.startsWith("kruise.io/sidecarset-hash"));
    expect(hashesOf(beside)).toEqual(hashesOf(hub));
    expect(hashesOf(beside)).toHaveLength(2);
    expect(converted(beside, BETA).spec).toEqual(hub.spec);
    seen("init containers", hub.spec.initContainers !== undefined);
  });
});
