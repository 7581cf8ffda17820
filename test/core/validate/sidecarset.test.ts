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

describe("validation of a valid SidecarSet:", () => {
  const native = container({ name: "native", restartPolicy: "Always" });
  const rows: readonly (readonly [string, SidecarSet, Partial<ValidationView>?])[] = [
    ["a SidecarSet with one container", sidecarSet()],
    [
      "a SidecarSet with only an init container",
      sidecarSet({ containers: [], initContainers: [container({ name: "init" })] }),
    ],
    ["a native sidecar with the update strategy NotUpdate", nativeSet(native)],
    ["a partition above 100%", sidecarSet({ updateStrategy: { type: "RollingUpdate", partition: "150%" } })],
    ["an update strategy NotUpdate with an invalid partition", strategy({ type: "NotUpdate", partition: "x" })],
    ["a revisionName that exists", pinned({ revisionName: "r1" }), { controllerRevisions: [revision("r1", "v1")] }],
    ["a customVersion that exists", pinned({ customVersion: "v1" }), { controllerRevisions: [revision("r1", "v1")] }],
    ["a patch of an annotation that the whitelist allows", patching("oom-score"), allowing('["^oom-"]')],
    ["a patch without a whitelist if isAllowedByDefault is true", patching("k"), { isAllowedByDefault: true }],
    ["a mount of a volume of the SidecarSet", mounting({ name: "data", emptyDir: {} })],
    [
      "a SidecarSet next to another that selects other pods",
      sidecarSet(),
      { sidecarSets: [other({ selector: { matchLabels: { app: "db" } } })] },
    ],
    [
      "a SidecarSet next to another with other containers",
      sidecarSet(),
      { sidecarSets: [other({ containers: [container({ name: "x" })] })] },
    ],
  ];
  for (const [subject, given, view] of rows) {
    it(`${subject} is accepted`, () => {
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

describe("validation of an invalid SidecarSet:", () => {
  const empty = sidecarSet();
  const { selector: _selector, ...withoutSelector } = empty.spec;
  const rows: readonly (readonly [string, SidecarSet, string, Partial<ValidationView>?])[] = [
    [
      "a SidecarSet without a selector",
      { ...empty, spec: withoutSelector },
      "spec.selector: Required value: no selector defined for SidecarSet",
    ],
    [
      "an empty selector",
      sidecarSet({ selector: {} }),
      "spec.selector: Invalid value: {}: empty selector is not valid for sidecarset.",
    ],
    [
      "a SidecarSet without containers",
      sidecarSet({ containers: [] }),
      "spec: Required value: no initContainer or container defined for SidecarSet",
    ],
    [
      "a SidecarSet without a name",
      sidecarSet({}, { name: "" }),
      "metadata.name: Required value: name or generateName is required",
    ],
    [
      "a SidecarSet with a namespace",
      sidecarSet({}, { namespace: "x" }),
      "metadata.namespace: Forbidden: not allowed on this type",
    ],
    [
      "a container without an image",
      sidecarSet({ containers: [container({ image: "" })] }),
      "spec.containers[0].image: Required value",
    ],
    [
      "a SidecarSet with two containers of the same name",
      sidecarSet({ containers: [AGENT, AGENT] }),
      'spec.containers[1].name: Duplicate value: "agent"',
    ],
    [
      "a mount of a volume that does not exist",
      sidecarSet({ containers: [container({ volumeMounts: [{ name: "gone", mountPath: "/" }] })] }),
      'spec.containers[0].volumeMounts[0].name: Not found: "gone"',
    ],
    [
      "a native sidecar with the update strategy RollingUpdate",
      sidecarSet({ initContainers: [container({ name: "n", restartPolicy: "Always" })] }),
      "spec.updateStrategy: Required value: The initContainer in-place upgrade is not currently supported.",
    ],
    [
      "a negative partition",
      strategy({ type: "RollingUpdate", partition: -1 }),
      "spec.updateStrategy.partition: Invalid value: -1: must be greater than or equal to 0",
    ],
    [
      "an update strategy with both a partition and a selector",
      strategy({ type: "RollingUpdate", partition: "0%", selector: { matchLabels: { a: "b" } } }),
      'updateStrategy: Invalid value: "&{Type:RollingUpdate Paused:false Selector:&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},} Partition:0% MaxUnavailable:<nil> PriorityStrategy:<nil> ScatterStrategy:[]}": Partition and Selector cannot be used together',
    ],
    [
      "a priority selector with the operator In and no values",
      strategy({
        type: "RollingUpdate",
        priorityStrategy: {
          weightPriority: [{ weight: 1, matchSelector: { matchExpressions: [{ key: "a", operator: "In" }] } }],
        },
      }),
      "spec.updateStrategy.priorityStrategy: Required value: invalid selector values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty",
    ],
    [
      "a customVersion that does not exist",
      pinned({ customVersion: "v2" }),
      'revision: Invalid value: null: Cannot find specific ControllerRevision, err: ControllerRevision.apps "logs" not found',
      { controllerRevisions: [revision("r1", "v1")] },
    ],
    [
      "a resourcesPolicy with a malformed pattern",
      policy({ targetContainersNameRegex: "[" }),
      'spec[0].resourcesPolicy.targetContainersNameRegex: Invalid value: "[": invalid regex pattern: error parsing regexp: missing closing ]: `[`',
    ],
    [
      "a resource expression that is negative for a cpu of 1",
      policy({ resourcesExpr: { requests: { cpu: "cpu-2" } } }),
      'spec[0].resourcesPolicy.resourcesExpr.requests.cpu: Invalid value: "cpu-2": invalid expression: calculation result is negative: -1',
    ],
    [
      "a transferEnv from the field metadata.name",
      transfer({ apiVersion: "v1", fieldPath: "metadata.name" }),
      'spec[0].transferEnv.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: field label not supported: metadata.name',
    ],
    [
      "a patch of an annotation without a whitelist",
      patching("k"),
      "spec.patchPodMetadata: Required value: SidecarSet patch metadata whitelist not found",
    ],
    [
      "a patch of an annotation that the whitelist does not allow",
      patching("k"),
      "spec.patchPodMetadata: Required value: sidecarSet patch metadata annotation(k) is not allowed",
      allowing('["^oom-"]'),
    ],
    [
      "a patch of an annotation with a whitelist that is not JSON",
      patching("k"),
      "spec.patchPodMetadata: Required value: invalid character 'b' looking for beginning of object key string",
      { configMaps: [whitelist("{bad")] },
    ],
    [
      "a patch of an annotation with a whitelist of the wrong shape",
      patching("k"),
      'spec.patchPodMetadata: Required value: SidecarSet_PatchPodMetadata_WhiteList in ConfigMap kruise-configuration is not {"rules":[{"selector":…,"allowedAnnotationKeyExprs":[…]}]}',
      { configMaps: [whitelist('{"rules":[1]}')] },
    ],
    [
      "a SidecarSet next to another that defines the same volume differently",
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
  for (const [subject, given, error, view] of rows) {
    it(`${subject} is refused`, () => {
      expect(errorsOf(given, view)).toEqual([error]);
    });
  }
});

describe("native sidecars with the update strategy RollingUpdate:", () => {
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
    ["a native sidecar is accepted if native sidecars are updated", native(), true, []],
    [
      "a native sidecar with a hot upgrade is refused even if native sidecars are updated",
      native(hot),
      true,
      [refused],
    ],
    ["a native sidecar is refused if native sidecars are not updated", native(), false, [refused]],
    [
      "a native sidecar with a hot upgrade is refused if native sidecars are not updated",
      native(hot),
      false,
      [refused],
    ],
  ];
  it.each(rows)("%s", (_, given, areNativesUpdated, expected) => {
    expect(errorsOf(given, { areNativesUpdated })).toEqual(expected);
  });
});
