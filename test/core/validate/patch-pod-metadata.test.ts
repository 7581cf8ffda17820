import { describe, expect, it } from "vitest";
import type { ConfigMap } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { errorsOf, sidecarSet } from "./fixture.ts";

function configMap(text: string, name = "kruise-configuration", namespace = "kruise-system"): ConfigMap {
  return { metadata: { name, namespace }, data: { SidecarSet_PatchPodMetadata_WhiteList: text } };
}

function patching(...keys: readonly string[]): SidecarSet {
  const annotations = Object.fromEntries(keys.map((key) => [key, "v"]));
  return sidecarSet({ patchPodMetadata: [{ annotations, patchPolicy: "Retain" }] }, { labels: { team: "logs" } });
}

const NONE = "spec.patchPodMetadata: Required value: SidecarSet patch metadata whitelist not found";
const NOTHING = "spec.patchPodMetadata: Required value: sidecarSet patch metadata annotation is not allowed";
const MALFORMED =
  'spec.patchPodMetadata: Required value: SidecarSet_PatchPodMetadata_WhiteList in ConfigMap kruise-configuration is not {"rules":[{"selector":…,"allowedAnnotationKeyExprs":[…]}]}';
const denied = (key: string) =>
  `spec.patchPodMetadata: Required value: sidecarSet patch metadata annotation(${key}) is not allowed`;

describe("the whitelist of annotations", () => {
  const rows: readonly (readonly [sentence: string, configMaps: readonly ConfigMap[], errors: readonly string[]])[] = [
    ["that is missing allows nothing", [], [NONE]],
    ["is not another ConfigMap's", [configMap('{"rules":[{"allowedAnnotationKeyExprs":["."]}]}', "other")], [NONE]],
    [
      "is not another namespace's",
      [configMap('{"rules":[{"allowedAnnotationKeyExprs":["."]}]}', undefined, "default")],
      [NONE],
    ],
    ["is not found among ConfigMaps that lack almost everything", [{}, { metadata: {} }], [NONE]],
    [
      "may be missing in its ConfigMap",
      [{ metadata: { name: "kruise-configuration", namespace: "kruise-system" } }],
      [NONE],
    ],
    ["is not an empty text", [configMap("")], ["spec.patchPodMetadata: Required value: unexpected end of JSON input"]],
    ["that is null allows nothing", [configMap("null")], [NOTHING]],
    ["without rules allows nothing", [configMap("{}")], [NOTHING]],
    ["of no rules allows nothing", [configMap('{"rules":null}')], [NOTHING]],
    ["is no list", [configMap("[]")], [MALFORMED]],
    ["is no number", [configMap("1")], [MALFORMED]],
    ["has a list of rules", [configMap('{"rules":{}}')], [MALFORMED]],
    ["has no rule that is null", [configMap('{"rules":[null]}')], [MALFORMED]],
    ["has no rule that is a text", [configMap('{"rules":[{},"x"]}')], [MALFORMED]],
    ["has no selector that is a text", [configMap('{"rules":[{"selector":"x"}]}')], [MALFORMED]],
    ["has no pattern that stands alone", [configMap('{"rules":[{"allowedAnnotationKeyExprs":"."}]}')], [MALFORMED]],
    ["has no pattern that is a number", [configMap('{"rules":[{"allowedAnnotationKeyExprs":[".",1]}]}')], [MALFORMED]],
    ["may have rules without patterns", [configMap('{"rules":[{"allowedAnnotationKeyExprs":null}]}')], [NOTHING]],
    ["allows what one pattern of one rule matches", [allowing("^a", "b$")], []],
    ["allows nothing that no pattern matches", [allowing("^a")], [denied("b")]],
    [
      "refuses everything over one malformed pattern",
      [allowing(".", "[")],
      ["spec.patchPodMetadata: Required value: error parsing regexp: missing closing ]: `[`"],
    ],
    [
      "counts the rules that select the SidecarSet",
      [configMap('{"rules":[{"selector":{"matchLabels":{"team":"logs"}},"allowedAnnotationKeyExprs":["."]}]}')],
      [],
    ],
    [
      "does not count the others",
      [configMap('{"rules":[{"selector":{"matchLabels":{"team":"x"}},"allowedAnnotationKeyExprs":["."]}]}')],
      [NOTHING],
    ],
    [
      "refuses everything over one selector of an unknown operator",
      [configMap('{"rules":[{"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}}]}')],
      ['spec.patchPodMetadata: Required value: "Near" is not a valid pod selector operator'],
    ],
  ];
  it.each(rows)("%s", (_sentence, configMaps, errors) => {
    expect(errorsOf(patching("a", "b"), { configMaps })).toEqual(errors);
  });

  function allowing(...patterns: readonly string[]): ConfigMap {
    return configMap(JSON.stringify({ rules: patterns.map((pattern) => ({ allowedAnnotationKeyExprs: [pattern] })) }));
  }

  it("selects by the labels of the SidecarSet, of which there may be none", () => {
    const rule = '{"selector":{"matchLabels":{"team":"logs"}},"allowedAnnotationKeyExprs":["."]}';
    const { spec } = patching("a");
    expect(errorsOf({ spec }, { configMaps: [configMap(`{"rules":[${rule}]}`)] })).toContain(NOTHING);
  });

  it.each([[[]], [[configMap("{}")]]])("that says nothing allows everything where the gate says so", (configMaps) => {
    expect(errorsOf(patching("a"), { configMaps, isAllowedByDefault: true })).toEqual([]);
  });
});

describe("a patch of annotations", () => {
  const errorsOfPatches = (...patchPodMetadata: NonNullable<SidecarSet["spec"]["patchPodMetadata"]>) =>
    errorsOf(sidecarSet({ patchPodMetadata }), { isAllowedByDefault: true });

  it("sets something", () => {
    const error = "spec.patchPodMetadata: Required value: no annotations defined for SidecarSet";
    expect(errorsOfPatches({ patchPolicy: "Retain" })).toEqual([error]);
    expect(errorsOfPatches({ annotations: {}, patchPolicy: "Retain" })).toEqual([error]);
  });

  it("has a policy, be it unknown", () => {
    const error = "spec.patchPodMetadata: Required value: no patchPolicy defined for patchPodMetadata";
    expect(errorsOfPatches({ annotations: { a: "b" } })).toEqual([error]);
    expect(errorsOfPatches({ annotations: { a: "b" }, patchPolicy: "Other" })).toEqual([]);
  });

  it("sets nothing that another one sets", () => {
    const patch = { annotations: { a: "1" }, patchPolicy: "Retain" };
    expect(errorsOfPatches(patch, { ...patch, annotations: { a: "2", b: "1" } })).toEqual([
      "spec.patchPodMetadata: Required value: patch annotation[a] already exist",
    ]);
    expect(errorsOfPatches(patch, { ...patch, annotations: { b: "1" } })).toEqual([]);
  });

  it("sets nothing whose key is none", () => {
    expect(errorsOfPatches({ annotations: { "a b": "1" }, patchPolicy: "Retain" })[0]).toContain(
      'patchPodMetadata.annotations: Invalid value: "a b"',
    );
  });
});
