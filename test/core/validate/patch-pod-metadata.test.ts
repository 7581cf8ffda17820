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

describe("the whitelist of pod annotations:", () => {
  const rows: readonly (readonly [sentence: string, configMaps: readonly ConfigMap[], errors: readonly string[]])[] = [
    ["no annotation is allowed without the ConfigMap of the whitelist", [], [NONE]],
    [
      "a whitelist in a ConfigMap of another name is ignored",
      [configMap('{"rules":[{"allowedAnnotationKeyExprs":["."]}]}', "other")],
      [NONE],
    ],
    [
      "a whitelist in a ConfigMap of another namespace is ignored",
      [configMap('{"rules":[{"allowedAnnotationKeyExprs":["."]}]}', undefined, "default")],
      [NONE],
    ],
    ["ConfigMaps without a name are ignored", [{}, { metadata: {} }], [NONE]],
    [
      "no annotation is allowed if the ConfigMap of the whitelist has no data",
      [{ metadata: { name: "kruise-configuration", namespace: "kruise-system" } }],
      [NONE],
    ],

    ["no annotation is allowed if the whitelist is null", [configMap("null")], [NOTHING]],
    ["no annotation is allowed if the whitelist has no rules", [configMap("{}")], [NOTHING]],
    ["no annotation is allowed if the rules of the whitelist are null", [configMap('{"rules":null}')], [NOTHING]],
    ["a whitelist that is a list is malformed", [configMap("[]")], [MALFORMED]],
    ["a whitelist that is a number is malformed", [configMap("1")], [MALFORMED]],
    ["a whitelist with an object as its rules is malformed", [configMap('{"rules":{}}')], [MALFORMED]],
    ["a whitelist with null as a rule is malformed", [configMap('{"rules":[null]}')], [MALFORMED]],
    ["a whitelist with a string as a rule is malformed", [configMap('{"rules":[{},"x"]}')], [MALFORMED]],
    ["a whitelist with a string as a selector is malformed", [configMap('{"rules":[{"selector":"x"}]}')], [MALFORMED]],

    [
      "a whitelist with a number as a pattern is malformed",
      [configMap('{"rules":[{"allowedAnnotationKeyExprs":[".",1]}]}')],
      [MALFORMED],
    ],
    [
      "a rule with null as its patterns allows no annotation",
      [configMap('{"rules":[{"allowedAnnotationKeyExprs":null}]}')],
      [NOTHING],
    ],
    ["an annotation is allowed if a pattern of any rule matches it", [allowing("^a", "b$")], []],
    ["an annotation that no pattern matches is refused", [allowing("^a")], [denied("b")]],

    [
      "no annotation is allowed if the selector of a rule has an unknown operator",
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

  it("a rule with a selector does not apply to a SidecarSet without labels", () => {
    const rule = '{"selector":{"matchLabels":{"team":"logs"}},"allowedAnnotationKeyExprs":["."]}';
    const { spec } = patching("a");
    expect(errorsOf({ spec }, { configMaps: [configMap(`{"rules":[${rule}]}`)] })).toContain(NOTHING);
  });

  const withoutRules: readonly (readonly [sentence: string, configMaps: readonly ConfigMap[]])[] = [
    ["no whitelist", []],
    ["a whitelist without rules", [configMap("{}")]],
  ];
  it.each(withoutRules)("with isAllowedByDefault, %s allows every annotation", (_sentence, configMaps) => {
    expect(errorsOf(patching("a"), { configMaps, isAllowedByDefault: true })).toEqual([]);
  });
});

describe("validation of patchPodMetadata:", () => {
  const errorsOfPatches = (...patchPodMetadata: NonNullable<SidecarSet["spec"]["patchPodMetadata"]>) =>
    errorsOf(sidecarSet({ patchPodMetadata }), { isAllowedByDefault: true });

  it("a patch without a patchPolicy is refused, but an unknown patchPolicy is accepted", () => {
    const error = "spec.patchPodMetadata: Required value: no patchPolicy defined for patchPodMetadata";
    expect(errorsOfPatches({ annotations: { a: "b" } })).toEqual([error]);
    expect(errorsOfPatches({ annotations: { a: "b" }, patchPolicy: "Other" })).toEqual([]);
  });

  it("a patch with an invalid annotation key is refused", () => {
    expect(errorsOfPatches({ annotations: { "a b": "1" }, patchPolicy: "Retain" })[0]).toContain(
      'patchPodMetadata.annotations: Invalid value: "a b"',
    );
  });
});
