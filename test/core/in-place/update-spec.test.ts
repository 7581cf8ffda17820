import { describe, expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { metadataReferences } from "../../../shared/core/statefulset/in-place/metadata-references.ts";
import { isSame, qosClassOf } from "../../../shared/core/statefulset/in-place/qos-class.ts";
import {
  readGrace,
  readState,
  storedSpec,
  type UpdateSpec,
} from "../../../shared/core/statefulset/in-place/update-spec.ts";
import { listedPod } from "../../support/objects.ts";

const STATE = "apps.kruise.io/inplace-update-state";
const OLD_STATE = "inplace-update-state";
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

describe("what a pod remembers of an update", () => {
  test("is nothing without annotations", () => {
    for (const pod of [{ spec: { containers: [] } }, { metadata: {}, spec: { containers: [] } }, podOf({})]) {
      expect([readState(pod).kind, readGrace(pod).kind]).toEqual(["absent", "absent"]);
    }
  });

  test("is its state, under the name of today before the old one", () => {
    const state = (revision: string) => JSON.stringify({ revision });
    expect(readState(podOf({ [OLD_STATE]: state("old") }))).toEqual({ kind: "present", value: { revision: "old" } });
    expect(readState(podOf({ [OLD_STATE]: state("old"), [STATE]: state("new") }))).toEqual({
      kind: "present",
      value: { revision: "new" },
    });
  });

  test("is what waits for the grace period, with what is left out", () => {
    const grace = JSON.stringify({ revision: "r", metaDataPatch: btoa('{"a":1}') });
    const value = { ...EMPTY, revision: "r", metaDataPatch: '{"a":1}' };
    expect(readGrace(podOf({ [GRACE]: grace }))).toEqual({ kind: "present", value });
    expect(readGrace(podOf({ [OLD_GRACE]: "{}" }))).toEqual({ kind: "present", value: EMPTY });
  });

  test("is empty where it is null", () => {
    expect(readState(podOf({ [STATE]: "null" }))).toEqual({ kind: "present", value: {} });
    expect(readGrace(podOf({ [GRACE]: "null" }))).toEqual({ kind: "present", value: EMPTY });
  });

  test("is without what is null, but for what is known of a container", () => {
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

  test("is refused where the patch of metadata is no base64", () => {
    const message = `annotation ${GRACE} cannot be read`;
    expect(readGrace(podOf({ [GRACE]: '{"metaDataPatch":"!!"}' }))).toEqual({ kind: "malformed", message });
  });

  test("is refused where it is a list", () => {
    expect(readState(podOf({ [STATE]: "[]" }))).toEqual({
      kind: "malformed",
      message: `annotation ${STATE} is not a JSON object`,
    });
    expect(readGrace(podOf({ [OLD_GRACE]: "[]" }))).toEqual({
      kind: "malformed",
      message: `annotation ${OLD_GRACE} is not a JSON object`,
    });
  });

  test.each(["", "{"])("is refused in Go's words where it is %j", (text) => {
    const malformed = { kind: "malformed", message: "unexpected end of JSON input" };
    expect(readState(podOf({ [STATE]: text }))).toEqual(malformed);
    expect(readGrace(podOf({ [OLD_GRACE]: text }))).toEqual(malformed);
  });

  test("is stored without what is empty, and read back", () => {
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

describe("what a container reads of its pod's metadata", () => {
  const variable = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const rows: readonly [sentence: string, fieldPath: string, read: string | undefined][] = [
    ["a label", "metadata.labels['a']", "labels a"],
    ["an annotation", "metadata.annotations['a/b']", "annotations a/b"],
    ["a key with a line break", "metadata.labels['a\nb']", "labels a\nb"],
    ["an empty key", "metadata.labels['']", "labels "],
    ["no other map", "metadata.others['a']", undefined],
    ["no map as a whole", "metadata.labels", undefined],
    ["nothing in front", "x.metadata.labels['a']", undefined],
    ["nothing behind", "metadata.labels['a'].x", undefined],
    ["nothing that merely looks like it", "metadataxlabels['a']", undefined],
  ];
  test.each(rows)("%s", (_, fieldPath, read) => {
    const [reference] = metadataReferences([variable("A", fieldPath)]);
    expect(reference && `${reference.map} ${reference.key}`).toBe(read);
  });

  test("is not the version of a hot upgrade", () => {
    const env = ["SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT", "OTHER"].map((name) =>
      variable(name, "metadata.labels['a']"),
    );
    expect(metadataReferences(env)).toEqual([{ name: "OTHER", map: "labels", key: "a" }]);
  });

  test("is nothing of other variables, nor without any", () => {
    const env = [
      { name: "A", value: "1" },
      { name: "B", valueFrom: {} },
      { name: "C", valueFrom: { fieldRef: {} } },
    ];
    expect(metadataReferences(env as Parameters<typeof metadataReferences>[0])).toEqual([]);
    expect(metadataReferences()).toEqual([]);
  });
});

describe("quantities", () => {
  test("are the same however they are written, and absent ones only as absent ones", () => {
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
    ["no resources", [{}], "BestEffort"],
    ["quantities below 0, and none", [{ resources: { limits: { cpu: "-1", memory: "x" } } }], "BestEffort"],
    ["limits alone", [{ resources: { limits: both } }], "Burstable"],
    ["a limit of one", [{ resources: { requests: { cpu: "1" }, limits: { cpu: "1" } } }], "Burstable"],
    ["a request below its limit", [{ resources: { requests: { ...both, cpu: "1m" }, limits: both } }], "Burstable"],
    ["one without limits beside a guaranteed one", [{ resources: { requests: both, limits: both } }, {}], "Burstable"],
    [
      "requests that are the limits in all",
      [
        { resources: { requests: { cpu: "2", memory: "1Gi" }, limits: both } },
        { resources: { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "2", memory: "1Gi" } } },
      ],
      "Guaranteed",
    ],
    [
      "others beside those that count",
      [{ resources: { requests: { ...both, "x/y": "1" }, limits: both } }],
      "Guaranteed",
    ],
  ];
  test.each(rows)("of %s", (_, containers, qos) => {
    expect(qosClassOf(containers)).toBe(qos);
  });
});
