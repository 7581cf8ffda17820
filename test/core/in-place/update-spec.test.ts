import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { isSame, qosClassOf } from "../../../shared/core/statefulset/in-place/calculate-spec.ts";
import { metadataReferences } from "../../../shared/core/statefulset/in-place/metadata.ts";
import {
  readGrace,
  readState,
  storedSpec,
  type UpdateSpec,
} from "../../../shared/core/statefulset/in-place/update-spec.ts";
import { listedPod } from "../../support/objects.ts";

const STATE = "apps.kruise.io/inplace-update-state";
const GRACE = "apps.kruise.io/inplace-update-grace";
const OLD_GRACE = "inplace-update-grace";

const podOf = (annotations: Readonly<Record<string, string>>): Pod => listedPod({ annotations });

const EMPTY: UpdateSpec = {
  revision: "",
  containerImages: {},
  containerRefMetadata: {},
  containerResources: {},
  updateEnvFromMetadata: false,
  graceSeconds: 0,
  verticalUpdateOnly: false,
};

describe("readState and readGrace:", () => {
  test("a pod without annotations has no update state and no grace state", () => {
    for (const pod of [{ spec: { containers: [] } }, { metadata: {}, spec: { containers: [] } }, podOf({})]) {
      expect([readState(pod).kind, readGrace(pod).kind]).toEqual(["absent", "absent"]);
    }
  });

  test("an annotation of null counts as an empty object", () => {
    expect(readState(podOf({ [STATE]: "null" }))).toEqual({ kind: "present", value: {} });
    expect(readGrace(podOf({ [GRACE]: "null" }))).toEqual({ kind: "present", value: EMPTY });
  });

  test("fields of null count as absent, except a container's entry", () => {
    const state = { nextContainerImages: null, lastContainerStatuses: { a: null, b: { imageID: "1" } } };
    expect(readState(podOf({ [STATE]: JSON.stringify(state) }))).toEqual({
      kind: "present",
      value: { lastContainerStatuses: { a: {}, b: { imageID: "1" } } },
    });
    const grace = { containerImages: null, containerResources: { a: null }, metaDataPatch: null };
    expect(readGrace(podOf({ [GRACE]: JSON.stringify(grace) }))).toEqual({
      kind: "present",
      value: { ...EMPTY, containerResources: { a: {} } },
    });
  });

  test("a metadata patch that is not base64 is malformed", () => {
    const message = `annotation ${GRACE} cannot be read`;
    expect(readGrace(podOf({ [GRACE]: '{"metaDataPatch":"!!"}' }))).toEqual({ kind: "malformed", message });
  });

  test.each(["", "{"])("the annotation %j is malformed, with Go's message", (text) => {
    const malformed = { kind: "malformed", message: "unexpected end of JSON input" };
    expect(readState(podOf({ [STATE]: text }))).toEqual(malformed);
    expect(readGrace(podOf({ [OLD_GRACE]: text }))).toEqual(malformed);
  });

  test("storedSpec leaves out empty fields, and readGrace reads the rest back", () => {
    expect(storedSpec(EMPTY)).toEqual({});
    const whole: UpdateSpec = {
      revision: "r",
      containerImages: { a: "a:2" },
      containerRefMetadata: { a: { labels: { x: "1" } } },
      containerResources: { a: { limits: { cpu: "1" } } },
      metaDataPatch: '{"ü":1}',
      updateEnvFromMetadata: true,
      graceSeconds: 5,
      verticalUpdateOnly: false,
    };
    expect(readGrace(podOf({ [GRACE]: JSON.stringify(storedSpec(whole)) }))).toEqual({ kind: "present", value: whole });
  });
});

describe("metadataReferences:", () => {
  const variable = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const rows: readonly [sentence: string, fieldPath: string, read: string | undefined][] = [
    ["a label", "metadata.labels['a']", "labels a"],
    ["an annotation", "metadata.annotations['a/b']", "annotations a/b"],
    ["a key with a line break", "metadata.labels['a\nb']", "labels a\nb"],
    ["an empty key", "metadata.labels['']", "labels "],
    ["another map, which does not count", "metadata.others['a']", undefined],
    ["a map without a key, which does not count", "metadata.labels", undefined],
    ["a path with text before it, which does not count", "x.metadata.labels['a']", undefined],
    ["a path with text after it, which does not count", "metadata.labels['a'].x", undefined],
    ["a path without dots, which does not count", "metadataxlabels['a']", undefined],
  ];
  test.each(rows)("metadataReferences reads %s", (_, fieldPath, read) => {
    const [reference] = metadataReferences([variable("A", fieldPath)]);
    expect(reference && `${reference.map} ${reference.key}`).toBe(read);
  });

  test("metadataReferences returns nothing for other variables", () => {
    const env = [
      { name: "A", value: "1" },
      { name: "B", valueFrom: {} },
      { name: "C", valueFrom: { fieldRef: {} } },
    ];
    expect(metadataReferences(env as Parameters<typeof metadataReferences>[0])).toEqual([]);
    expect(metadataReferences()).toEqual([]);
  });
});

describe("isSame and qosClassOf:", () => {
  test("isSame compares quantities by value, and an absent quantity equals only an absent one", () => {
    expect([isSame("1", "1000m"), isSame("1", "2"), isSame(undefined, undefined)]).toEqual([true, false, true]);
    expect([isSame("1", undefined), isSame(undefined, "0"), isSame("x", "x"), isSame("x", "y")]).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });

  const both = { cpu: "1", memory: "1Gi" };
  const rows: readonly [sentence: string, containers: Parameters<typeof qosClassOf>[0], qos: string][] = [
    ["no container", [], "BestEffort"],
    ["a container without resources", [{}], "BestEffort"],
    ["negative and invalid quantities", [{ resources: { limits: { cpu: "-1", memory: "x" } } }], "BestEffort"],
    ["limits only", [{ resources: { limits: both } }], "Burstable"],
    ["a limit of one resource", [{ resources: { requests: { cpu: "1" }, limits: { cpu: "1" } } }], "Burstable"],
    ["a request below its limit", [{ resources: { requests: { ...both, cpu: "1m" }, limits: both } }], "Burstable"],

    [
      "another resource beside cpu and memory",
      [{ resources: { requests: { ...both, "x/y": "1" }, limits: both } }],
      "Guaranteed",
    ],
  ];
  test.each(rows)("qosClassOf returns the right class for %s", (_, containers, qos) => {
    expect(qosClassOf(containers)).toBe(qos);
  });
});
