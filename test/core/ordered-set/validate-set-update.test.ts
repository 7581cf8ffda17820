import { describe, expect, test } from "vitest";
import type { ObjectMeta } from "../../../shared/api/kubernetes.ts";
import type {
  PersistentVolumeClaim,
  StatefulSet,
  StatefulSetSpec,
  StorageClass,
} from "../../../shared/api/stateful-set.ts";
import {
  claimTemplatesProblem,
  inPlaceOnlyProblem,
  setUpdateErrors,
} from "../../../shared/core/statefulset/validate.ts";
import { setOf } from "./fixture.ts";

function storedSet(spec: StatefulSetSpec = {}, metadata: ObjectMeta = {}): StatefulSet {
  const set = setOf(spec);
  return { ...set, metadata: { ...set.metadata, resourceVersion: "7", ...metadata } };
}

describe("setUpdateErrors:", () => {
  test.each<[string, StatefulSet, StatefulSet, readonly string[]]>([
    ["without changes is accepted", storedSet(), storedSet(), []],
    ["of the uid is refused", storedSet(), storedSet({}, { uid: "set-2" }), ["metadata.uid"]],

    ["to a lower generation is refused", storedSet({}, { generation: 3 }), storedSet(), ["metadata.generation"]],
    [
      "that adds a finalizer to a set being deleted is refused",
      storedSet({}, { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["a/b"] }),
      storedSet({}, { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["a/b", "c/d"] }),
      ["metadata.finalizers"],
    ],
    ["to an invalid label is refused", storedSet(), storedSet({}, { labels: { "a b": "c" } }), ["metadata.labels"]],
    [
      "to a finalizer without a domain is refused",
      storedSet(),
      storedSet({}, { finalizers: ["hold"] }),
      ["metadata.finalizers[0]"],
    ],
    [
      "with an unknown operation in managedFields is refused",
      storedSet(),
      storedSet({}, { managedFields: [{ operation: "Other" }] } as ObjectMeta),
      ["metadata.managedFields[0].operation"],
    ],
    ["of the service name is refused", storedSet(), storedSet({ serviceName: "other" }), ["spec"]],
    ["to negative replicas is refused", storedSet(), storedSet({ replicas: -1 }), ["spec.replicas"]],
    [
      "to an unknown retention policy is refused",
      storedSet(),
      storedSet({ persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Never" } }),
      ["spec.persistentVolumeClaimRetentionPolicy.whenScaled"],
    ],
  ])("an update %s", (_, before, after, fields) => {
    expect(setUpdateErrors(before, after).map(({ field }) => field)).toEqual(fields);
  });
});

describe("inPlaceOnlyProblem with the policy InPlaceOnly:", () => {
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { podUpdatePolicy: "InPlaceOnly" } };
  const spec = (container: object): StatefulSetSpec => ({
    ...setOf({ updateStrategy }).spec,
    template: { spec: { containers: [{ name: "main", image: "app:1", imagePullPolicy: "Always", ...container }] } },
  });

  test.each([
    ["another image is allowed", { image: "app:2" }, true],
    ["another pull policy is allowed", { imagePullPolicy: "Never" }, true],
    ["another command is refused", { command: ["run"] }, false],
    ["a removed pull policy is refused", { imagePullPolicy: undefined }, false],
  ])("%s", (_, container, isPossible) => {
    const after = JSON.parse(JSON.stringify(spec(container))) as StatefulSetSpec;
    expect(inPlaceOnlyProblem(spec({}), after) === undefined).toBe(isPossible);
  });
});

describe("claimTemplatesProblem with OnPodRollingUpdate:", () => {
  const template = (change: object = {}, name = "data"): PersistentVolumeClaim => ({
    metadata: { name },
    spec: {
      storageClassName: "fast",
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "2Gi" } },
      ...change,
    },
  });
  const spec = (templates: readonly PersistentVolumeClaim[], type = "OnPodRollingUpdate"): StatefulSetSpec => ({
    volumeClaimTemplates: templates,
    volumeClaimUpdateStrategy: { type },
  });
  const size = (storage: string) => ({ resources: { requests: { storage } } });
  const fixed: StorageClass = { metadata: { name: "fast" }, allowVolumeExpansion: false };
  const byDefault = (name: string, creationTimestamp: string, allowVolumeExpansion: boolean): StorageClass => ({
    metadata: { name, creationTimestamp, annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
    allowVolumeExpansion,
  });
  const cannotGrow = "spec.volumeClaimTemplates[data].spec.resources.requests.storage: Forbidden";

  test.each<[string, PersistentVolumeClaim, string | undefined]>([
    ["the same size is allowed with any storage class", template(), undefined],
    ["the same size in another unit is allowed", template(size("2048Mi")), undefined],
    ["a larger size is refused if the storage class does not allow expansion", template(size("3Gi")), cannotGrow],
    ["a smaller size is refused if the storage class does not allow expansion", template(size("1Gi")), cannotGrow],
    [
      "another storage class is refused",
      template({ storageClassName: "slow" }),
      "spec.volumeClaimTemplates[data]: Invalid value",
    ],
    [
      "another access mode is refused",
      template({ accessModes: ["ReadWriteMany"] }),
      "spec.volumeClaimTemplates[data]: Invalid",
    ],
    ["another name is refused", template({}, "logs"), "spec.volumeClaimTemplates[logs].name: Forbidden"],
  ])("%s", (_, after, problem) => {
    const found = claimTemplatesProblem(spec([template()]), spec([after]), [fixed]);
    expect(problem === undefined ? found : found?.slice(0, problem.length)).toBe(problem);
  });

  test("claim templates may change together with the strategy from OnDelete, but not back to OnDelete", () => {
    const [grown, made] = [spec([template()]), spec([], "OnDelete")];
    expect(claimTemplatesProblem(made, grown, [fixed])).toBeUndefined();
    expect(claimTemplatesProblem(grown, made, [fixed])).toMatch(/^spec.volumeClaimTemplates: Invalid value/);
  });

  test.each([
    ["a larger size is allowed if the newest default storage class allows expansion", true],
    ["a larger size is refused if the newest default storage class does not allow expansion", false],
  ])("%s", (_, isAllowed) => {
    const bare = (storage: string) => template({ storageClassName: undefined, ...size(storage) });
    const classes = [
      byDefault("new", "2026-01-01T00:00:00Z", isAllowed),
      byDefault("old", "2020-01-01T00:00:00Z", !isAllowed),
    ];
    expect(claimTemplatesProblem(spec([bare("1Gi")]), spec([bare("2Gi")]), classes) === undefined).toBe(isAllowed);
  });
});

test("the error about added finalizers lists them in Go's format", () => {
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const before = storedSet({}, { deletionTimestamp, finalizers: ["a/b"] });
  const after = storedSet({}, { deletionTimestamp, finalizers: ["e/f", "a/b", "c/d", "e/f"] });
  const [error] = setUpdateErrors(before, after);
  expect(error?.detail).toMatch(/found new finalizers \[\]string\{"c\/d", "e\/f"\}$/);
});
