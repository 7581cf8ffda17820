/** What is said about SidecarSets out of files: the very rules of the webhook, and what its decoder drops. */
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

describe("lint", () => {
  it("has nothing to say of what is right, and of other kinds", () => {
    expect(said(set("a"), set("b"), { apiVersion: "v1", kind: "Pod", metadata: { name: "p" } })).toEqual([]);
  });

  it.each<[string, readonly KubernetesObject[], readonly string[]]>([
    [
      "what the webhook refuses",
      [set("a", { selector: {} })],
      ["0 a error: spec.selector: Invalid value: {}: empty selector is not valid for sidecarset."],
    ],
    [
      "what cannot be decoded",
      [set("a", { containers: "no" })],
      ["0 a error: spec.containers must be a list, not a string"],
    ],
    [
      "a conflict, of both",
      ["a", "b"].map((name) =>
        set(name, { selector: { matchLabels: { app: "web" } }, containers: [{ name: "x", image: "x:1" }] }),
      ),
      [
        '0 a error: spec.containers: Invalid value: "x": container x already exist in b',
        '1 b error: spec.containers: Invalid value: "x": container x already exist in a',
      ],
    ],
    ["one that is given twice", [set("a"), set("a")], ["1 a error: SidecarSet a is given twice; leave one out"]],
    [
      "a misspelt field, and where",
      [set("a", { updateStratgy: {}, containers: [{ name: "x", image: "x:1", immage: "y", zzzzzz: 1 }] })],
      [
        "0 a warning: SidecarSets have no field spec.containers[0].immage, did you mean image; it has no effect",
        "0 a warning: SidecarSets have no field spec.containers[0].zzzzzz; it has no effect",
        "0 a warning: SidecarSets have no field spec.updateStratgy, did you mean updateStrategy; it has no effect",
      ],
    ],
    [
      "a revision, which files don't have",
      [set("a", { injectionStrategy: { revision: { customVersion: "v1" } } })],
      [expect.stringMatching(/^0 a warning: .*only a cluster can tell$/)],
    ],
    [
      "a whitelist that is missing",
      [set("a", PATCHING)],
      [expect.stringMatching(/^0 a warning: .*unless the ConfigMap kruise-configuration/)],
    ],
    ["a whitelist that is there", [set("a", PATCHING), WHITELIST], []],
    [
      "a whitelist that does not allow it",
      [set("a", { patchPodMetadata: [{ annotations: { y: "1" }, patchPolicy: "Overwrite" }] }), WHITELIST],
      [expect.stringMatching(/^0 a error: .*annotation\(y\) is not allowed/)],
    ],
    [
      "an annotation that says nothing",
      [set("a", {}, { metadata: { name: "a", annotations: { "sidecarset.kruise.io/halt-on": "many" } } })],
      [expect.stringMatching(/^0 a warning: .*halt-on/)],
    ],
  ])("finds %s", (_, objects, expected) => {
    expect(said(...objects).toSorted()).toEqual(expected);
  });

  it.each([undefined, {}, "x", [1], [null]])("says what is wrong with %j in the place of objects", (objects) => {
    expect(() => lint({ objects } as never)).toThrow(
      /^lint: objects(?:\[0\])? is (?:missing|not an object|not a list of Kubernetes objects|null)/,
    );
  });
});
