import { describe, expect, it } from "vitest";
import type { ConfigMap, ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import type { ValidationView } from "../../../shared/core/sidecarset/validate/sidecarset.ts";
import { AGENT, container, errorsOf, other, sidecarSet } from "./fixture.ts";

function whitelist(text: string): ConfigMap {
  return {
    metadata: { name: "kruise-configuration", namespace: "kruise-system" },
    data: { SidecarSet_PatchPodMetadata_WhiteList: text },
  };
}

function revision(name: string, version: string): ControllerRevision {
  const labels = { "kruise.io/sidecarset-name": "logs", "apps.kruise.io/sidecarset-custom-version": version };
  return { metadata: { name, namespace: "kruise-system", labels }, revision: 1 };
}

describe("a SidecarSet is accepted", () => {
  const native = container({ name: "native", restartPolicy: "Always" });
  const rows: readonly (readonly [string, SidecarSet, Partial<ValidationView>?])[] = [
    ["with one container", sidecarSet()],
    ["with an init container alone", sidecarSet({ containers: [], initContainers: [container({ name: "init" })] })],
    ["with a native sidecar that is not rolled out", nativeSet(native)],
    ["with a partition beyond 100%", sidecarSet({ updateStrategy: { type: "RollingUpdate", partition: "150%" } })],
    ["with an update strategy of another type, whatever it holds", strategy({ type: "NotUpdate", partition: "x" })],
    [
      "with a revision that exists by name",
      pinned({ revisionName: "r1" }),
      { controllerRevisions: [revision("r1", "v1")] },
    ],
    [
      "with a revision that exists by version",
      pinned({ customVersion: "v1" }),
      { controllerRevisions: [revision("r1", "v1")] },
    ],
    ["with annotations that the whitelist allows", patching("oom-score"), allowing('["^oom-"]')],
    ["with annotations that no whitelist forbids, if that is allowed", patching("k"), { isAllowedByDefault: true }],
    ["with a mount of its own volume", mounting({ name: "data", emptyDir: {} })],
    [
      "beside one that selects other pods",
      sidecarSet(),
      { sidecarSets: [other({ selector: { matchLabels: { app: "db" } } })] },
    ],
    [
      "beside one with other containers",
      sidecarSet(),
      { sidecarSets: [other({ containers: [container({ name: "x" })] })] },
    ],
  ];
  for (const [sentence, given, view] of rows) {
    it(sentence, () => {
      expect(errorsOf(given, view)).toEqual([]);
    });
  }
});

function nativeSet(native: SidecarContainer): SidecarSet {
  return sidecarSet({ initContainers: [native], updateStrategy: { type: "NotUpdate" } });
}

function strategy(updateStrategy: SidecarSetSpec["updateStrategy"]): SidecarSet {
  return sidecarSet(updateStrategy === undefined ? {} : { updateStrategy });
}

function pinned(wanted: Readonly<Record<string, string>>): SidecarSet {
  return sidecarSet({ injectionStrategy: { revision: wanted } });
}

function patching(key: string, patchPolicy = "Overwrite"): SidecarSet {
  return sidecarSet({ patchPodMetadata: [{ annotations: { [key]: "v" }, patchPolicy }] });
}

function allowing(patterns: string): Partial<ValidationView> {
  return { configMaps: [whitelist(`{"rules":[{"allowedAnnotationKeyExprs":${patterns}}]}`)] };
}

function mounting(volume: Readonly<Record<string, unknown>>): SidecarSet {
  const volumes = [volume] as unknown as NonNullable<SidecarSetSpec["volumes"]>;
  return sidecarSet({ volumes, containers: [container({ volumeMounts: [{ name: "data", mountPath: "/data" }] })] });
}

function policy(changes: Readonly<Record<string, unknown>>): SidecarSet {
  const whole = {
    targetContainersMode: "sum",
    targetContainersNameRegex: ".*",
    resourcesExpr: { limits: { cpu: "cpu" } },
  };
  return sidecarSet({ containers: [container({ resourcesPolicy: { ...whole, ...changes } })] });
}

function transfer(fieldRef: Readonly<Record<string, string>>): SidecarSet {
  return sidecarSet({ containers: [container({ transferEnv: [{ sourceContainerNameFrom: { fieldRef } }] })] });
}

describe("a SidecarSet is refused", () => {
  const empty = sidecarSet();
  const { selector: _selector, ...withoutSelector } = empty.spec;
  const rows: readonly (readonly [string, SidecarSet, string, Partial<ValidationView>?])[] = [
    [
      "without a selector",
      { ...empty, spec: withoutSelector },
      "spec.selector: Required value: no selector defined for SidecarSet",
    ],
    [
      "with a selector that selects everything",
      sidecarSet({ selector: {} }),
      "spec.selector: Invalid value: {}: empty selector is not valid for sidecarset.",
    ],
    [
      "without any container",
      sidecarSet({ containers: [] }),
      "spec: Required value: no initContainer or container defined for SidecarSet",
    ],
    ["without a name", sidecarSet({}, { name: "" }), "metadata.name: Required value: name or generateName is required"],
    ["with a namespace", sidecarSet({}, { namespace: "x" }), "metadata.namespace: Forbidden: not allowed on this type"],
    [
      "without an image",
      sidecarSet({ containers: [container({ image: "" })] }),
      "spec.containers[0].image: Required value",
    ],
    [
      "with two containers of one name",
      sidecarSet({ containers: [AGENT, AGENT] }),
      'spec.containers[1].name: Duplicate value: "agent"',
    ],
    [
      "with a mount of nothing",
      sidecarSet({ containers: [container({ volumeMounts: [{ name: "gone", mountPath: "/" }] })] }),
      'spec.containers[0].volumeMounts[0].name: Not found: "gone"',
    ],
    [
      "with a native sidecar that is rolled out",
      sidecarSet({ initContainers: [container({ name: "n", restartPolicy: "Always" })] }),
      "spec.updateStrategy: Required value: The initContainer in-place upgrade is not currently supported.",
    ],
    [
      "with a negative partition",
      strategy({ type: "RollingUpdate", partition: -1 }),
      "spec.updateStrategy.partition: Invalid value: -1: must be greater than or equal to 0",
    ],
    [
      "with both partition and selector",
      strategy({ type: "RollingUpdate", partition: "0%", selector: { matchLabels: { a: "b" } } }),
      'updateStrategy: Invalid value: "&{Type:RollingUpdate Paused:false Selector:&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},} Partition:0% MaxUnavailable:<nil> PriorityStrategy:<nil> ScatterStrategy:[]}": Partition and Selector cannot be used together',
    ],
    [
      "with a priority selector that cannot be read",
      strategy({
        type: "RollingUpdate",
        priorityStrategy: {
          weightPriority: [{ weight: 1, matchSelector: { matchExpressions: [{ key: "a", operator: "In" }] } }],
        },
      }),
      "spec.updateStrategy.priorityStrategy: Required value: invalid selector values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty",
    ],
    [
      "with a revision that does not exist",
      pinned({ customVersion: "v2" }),
      'revision: Invalid value: null: Cannot find specific ControllerRevision, err: ControllerRevision.apps "logs" not found',
      { controllerRevisions: [revision("r1", "v1")] },
    ],
    [
      "with a malformed pattern",
      policy({ targetContainersNameRegex: "[" }),
      'spec[0].resourcesPolicy.targetContainersNameRegex: Invalid value: "[": invalid regex pattern: error parsing regexp: missing closing ]: `[`',
    ],
    [
      "with an expression that is negative at 1",
      policy({ resourcesExpr: { requests: { cpu: "cpu-2" } } }),
      'spec[0].resourcesPolicy.resourcesExpr.requests.cpu: Invalid value: "cpu-2": invalid expression: calculation result is negative: -1',
    ],
    [
      "with a transfer from a field that is no label",
      transfer({ apiVersion: "v1", fieldPath: "metadata.name" }),
      'spec[0].transferEnv.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: field label not supported: metadata.name',
    ],
    [
      "with annotations and no whitelist",
      patching("k"),
      "spec.patchPodMetadata: Required value: SidecarSet patch metadata whitelist not found",
    ],
    [
      "with annotations that the whitelist does not know",
      patching("k"),
      "spec.patchPodMetadata: Required value: sidecarSet patch metadata annotation(k) is not allowed",
      allowing('["^oom-"]'),
    ],
    [
      "with annotations and a whitelist that is no JSON",
      patching("k"),
      "spec.patchPodMetadata: Required value: invalid character 'b' looking for beginning of object key string",
      { configMaps: [whitelist("{bad")] },
    ],
    [
      "with annotations and a whitelist of another shape",
      patching("k"),
      'spec.patchPodMetadata: Required value: SidecarSet_PatchPodMetadata_WhiteList in ConfigMap kruise-configuration is not {"rules":[{"selector":…,"allowedAnnotationKeyExprs":[…]}]}',
      { configMaps: [whitelist('{"rules":[1]}')] },
    ],
    [
      "beside one with the same container",
      sidecarSet(),
      'spec.containers: Invalid value: "agent": container agent already exist in other',
      { sidecarSets: [other()] },
    ],
    [
      "beside one with another volume of the same name",
      mounting({ name: "data", emptyDir: {} }),
      'spec.volumes: Invalid value: "data": volume data is in conflict with sidecarset other',
      {
        sidecarSets: [
          other({
            containers: [],
            volumes: mounting({ name: "data", emptyDir: { medium: "Memory" } }).spec.volumes ?? [],
          }),
        ],
      },
    ],
  ];
  for (const [sentence, given, error, view] of rows) {
    it(sentence, () => {
      expect(errorsOf(given, view)).toEqual([error]);
    });
  }
});

it("conflicts are looked for only in a SidecarSet that is valid by itself", () => {
  const errors = errorsOf(sidecarSet({ selector: {} }), { sidecarSets: [other()] });
  expect(errors).toHaveLength(1);
});

describe("native sidecars that are rolled out, with the gate that updates them,", () => {
  const native = (more: object = {}) =>
    sidecarSet({ initContainers: [container({ name: "n", restartPolicy: "Always", ...more })] });
  const refused = "spec.updateStrategy: Required value: The initContainer in-place upgrade is not currently supported.";
  const hot = { upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "empty:1" } } as const;
  const rows: readonly [
    sentence: string,
    given: SidecarSet,
    areNativesUpdated: boolean,
    expected: readonly string[],
  ][] = [
    ["are taken", native(), true, []],
    ["are refused as a pair of a hot upgrade: nothing empties init containers", native(hot), true, [refused]],
    ["are refused without it", native(), false, [refused]],
    ["are refused without it as a pair, too", native(hot), false, [refused]],
  ];
  it.each(rows)("%s", (_, given, areNativesUpdated, expected) => {
    expect(errorsOf(given, { areNativesUpdated })).toEqual(expected);
  });
});
