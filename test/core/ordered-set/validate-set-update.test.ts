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
} from "../../../shared/core/statefulset/admission/validate-set-update.ts";
import { setOf } from "./fixture.ts";

function storedSet(spec: StatefulSetSpec = {}, metadata: ObjectMeta = {}): StatefulSet {
  const set = setOf(spec);
  return { ...set, metadata: { ...set.metadata, resourceVersion: "7", ...metadata } };
}

describe("a set that changes", () => {
  test.each<[string, StatefulSet, StatefulSet, readonly string[]]>([
    ["may stay as it is", storedSet(), storedSet(), []],
    ["keeps its uid", storedSet(), storedSet({}, { uid: "set-2" }), ["metadata.uid"]],
    ["names the version it changes", storedSet(), storedSet({}, { resourceVersion: "" }), ["metadata.resourceVersion"]],
    ["counts its generations up", storedSet({}, { generation: 3 }), storedSet(), ["metadata.generation"]],
    [
      "gets no finalizer once it goes",
      storedSet({}, { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["a/b"] }),
      storedSet({}, { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["a/b", "c/d"] }),
      ["metadata.finalizers"],
    ],
    ["has labels that are none", storedSet(), storedSet({}, { labels: { "a b": "c" } }), ["metadata.labels"]],
    ["names its finalizers in full", storedSet(), storedSet({}, { finalizers: ["hold"] }), ["metadata.finalizers[0]"]],
    [
      "is written by managers that are known",
      storedSet(),
      storedSet({}, { managedFields: [{ operation: "Other" }] } as ObjectMeta),
      ["metadata.managedFields[0].operation"],
    ],
    ["keeps its service", storedSet(), storedSet({ serviceName: "other" }), ["spec"]],
    ["has replicas again", storedSet(), storedSet({ replicas: -1 }), ["spec.replicas"]],
    [
      "has a retention policy again",
      storedSet(),
      storedSet({ persistentVolumeClaimRetentionPolicy: { whenDeleted: "Retain", whenScaled: "Never" } }),
      ["spec.persistentVolumeClaimRetentionPolicy.whenScaled"],
    ],
  ])("%s", (_, before, after, fields) => {
    expect(setUpdateErrors(before, after).map(({ field }) => field)).toEqual(fields);
  });
});

describe("pods that are only updated in place", () => {
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { podUpdatePolicy: "InPlaceOnly" } };
  const spec = (container: object): StatefulSetSpec => ({
    ...setOf({ updateStrategy }).spec,
    template: { spec: { containers: [{ name: "main", image: "app:1", imagePullPolicy: "Always", ...container }] } },
  });

  test.each([
    ["may get another image", { image: "app:2" }, true],
    ["may get another pull policy", { imagePullPolicy: "Never" }, true],
    ["may get no other command", { command: ["run"] }, false],
    ["may lose no pull policy", { imagePullPolicy: undefined }, false],
  ])("%s", (_, container, isPossible) => {
    const after = JSON.parse(JSON.stringify(spec(container))) as StatefulSetSpec;
    expect(inPlaceOnlyProblem(spec({}), after) === undefined).toBe(isPossible);
  });
});

describe("claim templates of a set whose claims grow with its pods", () => {
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
    ["may stay, whatever their class allows", template(), undefined],
    ["may be written in another unit", template(size("2048Mi")), undefined],
    ["may not grow in a class that allows none", template(size("3Gi")), cannotGrow],
    ["may not shrink in a class that allows no growth", template(size("1Gi")), cannotGrow],
    [
      "may not change their class",
      template({ storageClassName: "slow" }),
      "spec.volumeClaimTemplates[data]: Invalid value",
    ],
    [
      "may not change their modes",
      template({ accessModes: ["ReadWriteMany"] }),
      "spec.volumeClaimTemplates[data]: Invalid",
    ],
    ["may not change their name", template({}, "logs"), "spec.volumeClaimTemplates[logs].name: Forbidden"],
  ])("%s", (_, after, problem) => {
    const found = claimTemplatesProblem(spec([template()]), spec([after]), [fixed]);
    expect(problem === undefined ? found : found?.slice(0, problem.length)).toBe(problem);
  });

  test("may change freely where claims are only recreated", () => {
    expect(claimTemplatesProblem(spec([template()], "OnDelete"), spec([], "OnDelete"), [fixed])).toBeUndefined();
  });

  test("may change with the strategy where claims were only recreated before, and not the other way round", () => {
    const [grown, made] = [spec([template()]), spec([], "OnDelete")];
    expect(claimTemplatesProblem(made, grown, [fixed])).toBeUndefined();
    expect(claimTemplatesProblem(grown, made, [fixed])).toMatch(/^spec.volumeClaimTemplates: Invalid value/);
  });

  test.each([
    ["may grow where the newest default class allows it", true],
    ["may not grow where the newest default class allows none", false],
  ])("%s", (_, isAllowed) => {
    const bare = (storage: string) => template({ storageClassName: undefined, ...size(storage) });
    const classes = [
      byDefault("new", "2026-01-01T00:00:00Z", isAllowed),
      byDefault("old", "2020-01-01T00:00:00Z", !isAllowed),
    ];
    expect(claimTemplatesProblem(spec([bare("1Gi")]), spec([bare("2Gi")]), classes) === undefined).toBe(isAllowed);
  });
});

test("finalizers that are added too late are listed as Go prints them", () => {
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const before = storedSet({}, { deletionTimestamp, finalizers: ["a/b"] });
  const after = storedSet({}, { deletionTimestamp, finalizers: ["e/f", "a/b", "c/d", "e/f"] });
  const [error] = setUpdateErrors(before, after);
  expect(error?.detail).toMatch(/found new finalizers \[\]string\{"c\/d", "e\/f"\}$/);
});
