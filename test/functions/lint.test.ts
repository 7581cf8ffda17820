/** Findings about SidecarSets in files: the rules of the webhook, and fields that its decoder drops. */
import { describe, expect, it } from "vitest";
import { lint } from "../../functions/library/lint.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";

const set = (name: string, spec: object = {}, more: object = {}): KubernetesObject =>
  ({
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name },
    spec: {
      selector: { matchLabels: { app: name } },
      containers: [{ name: `${name}-agent`, image: "agent:1" }],
      ...spec,
    },
    ...more,
  }) as KubernetesObject;
const WHITELIST: KubernetesObject = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "kruise-configuration" },
  data: { SidecarSet_PatchPodMetadata_WhiteList: '{"rules":[{"allowedAnnotationKeyExprs":["^x$"]}]}' },
} as KubernetesObject;
const PATCHING = { patchPodMetadata: [{ annotations: { x: "1" }, patchPolicy: "Overwrite" }] };
const said = (...objects: readonly KubernetesObject[]) =>
  lint({ objects }).map(({ index, name, severity, message }) => `${index} ${name} ${severity}: ${message}`);

describe("lint:", () => {
  it("lint reports nothing for valid SidecarSets and for other kinds", () => {
    expect(said(set("a"), set("b"), { apiVersion: "v1", kind: "Pod", metadata: { name: "p" } })).toEqual([]);
  });

  it.each<[string, readonly KubernetesObject[], readonly string[]]>([
    [
      "an error of the webhook's validation",
      [set("a", { selector: {} })],
      ["0 a error: spec.selector: Invalid value: {}: empty selector is not valid for sidecarset."],
    ],
    [
      "a field with a wrong type",
      [set("a", { containers: "no" })],
      ["0 a error: spec.containers must be a list, not a string"],
    ],
    [
      "a conflict for both SidecarSets",
      ["a", "b"].map((name) =>
        set(name, { selector: { matchLabels: { app: "web" } }, containers: [{ name: "x", image: "x:1" }] }),
      ),
      [
        '0 a error: spec.containers: Invalid value: "x": container x already exist in b',
        '1 b error: spec.containers: Invalid value: "x": container x already exist in a',
      ],
    ],
    [
      "a SidecarSet that is given twice",
      [set("a"), set("a")],
      ["1 a error: SidecarSet a is given twice; leave one out"],
    ],
    [
      "the path of a misspelt field",
      [set("a", { updateStratgy: {}, containers: [{ name: "x", image: "x:1", immage: "y", zzzzzz: 1 }] })],
      [
        "0 a warning: SidecarSets have no field spec.containers[0].immage, did you mean image; it has no effect",
        "0 a warning: SidecarSets have no field spec.containers[0].zzzzzz; it has no effect",
        "0 a warning: SidecarSets have no field spec.updateStratgy, did you mean updateStrategy; it has no effect",
      ],
    ],
    [
      "a revision that only a cluster has",
      [set("a", { injectionStrategy: { revision: { customVersion: "v1" } } })],
      [expect.stringMatching(/^0 a warning: .*only a cluster can tell$/)],
    ],
    [
      "a missing whitelist of patchPodMetadata",
      [set("a", PATCHING)],
      [expect.stringMatching(/^0 a warning: .*unless the ConfigMap kruise-configuration/)],
    ],
    ["nothing for an annotation that the whitelist allows", [set("a", PATCHING), WHITELIST], []],
    [
      "an annotation that the whitelist does not allow",
      [set("a", { patchPodMetadata: [{ annotations: { y: "1" }, patchPolicy: "Overwrite" }] }), WHITELIST],
      [expect.stringMatching(/^0 a error: .*annotation\(y\) is not allowed/)],
    ],
    [
      "an invalid value of the annotation halt-on",
      [set("a", {}, { metadata: { name: "a", annotations: { "sidecarset.kruise.io/halt-on": "many" } } })],
      [expect.stringMatching(/^0 a warning: .*halt-on/)],
    ],
  ])("lint reports %s", (_, objects, expected) => {
    expect(said(...objects).toSorted()).toEqual(expected);
  });

  it.each([undefined, {}, "x", [1], [null]])("lint refuses %j in place of a list of objects", (objects) => {
    expect(() => lint({ objects } as never)).toThrow(
      /^lint: objects(?:\[0\])? is (?:missing|not an object|not a list of Kubernetes objects|null)/,
    );
  });
});
