/** Tests unknown sources of volumes on every path of an object: new ones are refused, and stored ones stay. */
import { request } from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { validateSidecarSet } from "../../shared/core/rollout/validate-sidecarset.ts";
import { convertSidecarSet } from "../../shared/core/sidecarset/convert.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { revisionData } from "../../shared/core/sidecarset/revision/recorded-revision.ts";
import { mutateStatefulSet } from "../../shared/core/statefulset/mutate.ts";
import type { Decoded } from "../../shared/go/types/decode-go.ts";
import { DEFAULT_FEATURE_GATES } from "../../shared/settings/feature-gates.ts";
import { type ServedCluster, startServedCluster } from "./cluster.ts";

const POD = {
  containers: [{ name: "agent", image: "agent:1", volumeMounts: [{ name: "v", mountPath: "/v" }] }],
  volumes: [{ name: "v", newSourceOfTomorrow: { ref: "data" } }],
};
const sidecarSet = (name: string, version = "v1beta1") => ({
  apiVersion: `apps.kruise.io/${version}`,
  kind: "SidecarSet",
  metadata: { name },
  spec: { selector: { matchLabels: { app: name } }, ...POD },
});
const statefulSet = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "StatefulSet",
  metadata: { name: "db", namespace: "default" },
  spec: {
    serviceName: "db",
    selector: { matchLabels: { app: "db" } },
    template: { metadata: { labels: { app: "db" } }, spec: POD },
  },
};
const asked = (object: object, resource: string, more: Partial<AdmissionRequest> = {}) =>
  ({
    uid: "u",
    operation: "CREATE",
    resource: { group: "apps.kruise.io", version: "v1beta1", resource },
    object,
    ...more,
  }) as AdmissionRequest;
const gates = (TemplateNoDefaults: boolean) => ({ ...DEFAULT_FEATURE_GATES, TemplateNoDefaults });
const v1alpha1 = { group: "apps.kruise.io", version: "v1alpha1", resource: "sidecarsets" };
const SENTENCE =
  /have no field spec[.](template[.]spec[.])?volumes\[0\][.]newSourceOfTomorrow; without it the volume v would be an emptyDir$/;
const changed = (older: object, resource: string, object: object) =>
  asked(object, resource, { operation: "UPDATE", oldObject: older as KubernetesObject });
/** Returns the same object with another source, or with unrelated fields of the spec. */
const withSource = (source: object) => {
  const spec = { ...statefulSet.spec.template.spec, volumes: [{ name: "v", ...source }] };
  return { ...statefulSet, spec: { ...statefulSet.spec, template: { ...statefulSet.spec.template, spec } } };
};
const paused = { ...sidecarSet("a"), spec: { ...sidecarSet("a").spec, injectionStrategy: { paused: true } } };
const scaled = { ...statefulSet, spec: { ...statefulSet.spec, replicas: 2 } };
const known = { ...sidecarSet("a"), spec: { ...sidecarSet("a").spec, volumes: [{ name: "v", emptyDir: {} }] } };

describe("volumes with an unknown source", () => {
  it.each([
    ["in a SidecarSet", () => mutateSidecarSet(asked(sidecarSet("a"), "sidecarsets"))],
    [
      "in a SidecarSet of v1alpha1",
      () => mutateSidecarSet(asked(sidecarSet("a", "v1alpha1"), "sidecarsets", { resource: v1alpha1 })),
    ],
    ["in a SidecarSet that had another source", () => mutateSidecarSet(changed(known, "sidecarsets", sidecarSet("a")))],
    ["in an Advanced StatefulSet", () => mutateStatefulSet(asked(statefulSet, "statefulsets"), gates(false))],
    [
      "in an Advanced StatefulSet with TemplateNoDefaults",
      () => mutateStatefulSet(asked(statefulSet, "statefulsets"), gates(true)),
    ],
    [
      "in an Advanced StatefulSet that had another source",
      () => mutateStatefulSet(changed(withSource({ emptyDir: {} }), "statefulsets", statefulSet), gates(false)),
    ],
  ])("a new volume whose source is unknown is refused %s", (_, admit) => {
    expect(admit()).toEqual({ kind: "denied", code: 422, reason: "Invalid", message: expect.stringMatching(SENTENCE) });
  });

  it("a refusal names twenty of a hundred volumes whose sources are unknown", () => {
    const volumes = Array.from({ length: 100 }, (_, index) => ({ name: `v${index}`, ["x".repeat(999)]: {} }));
    const many = { ...sidecarSet("a"), spec: { ...sidecarSet("a").spec, volumes } };
    const admission = mutateSidecarSet(asked(many, "sidecarsets"));
    expect(admission.kind === "denied" && admission.message.split(". ")).toHaveLength(20);
    expect(admission.kind === "denied" && admission.message.length).toBeLessThan(10_000);
  });

  it.each([
    ["a field beside a source that is known", { emptyDir: {}, newSourceOfTomorrow: {} }],
    ["an unknown field that is null", { newSourceOfTomorrow: null }],
    ["no source at all, which means an emptyDir", {}],
  ])("a volume is accepted with %s", (_, source) => {
    expect(mutateStatefulSet(asked(withSource(source), "statefulsets"), gates(false)).kind).toBe("allowed");
  });
});

describe("stored volumes with an unknown source", () => {
  const view = {
    sidecarSets: [],
    controllerRevisions: [],
    configMaps: [],
    kruiseNamespace: "kruise-system",
    featureGates: { SidecarSetPatchPodMetadataDefaultsAllowed: false },
  };

  it("a stored volume with an unknown source stays when other fields of its SidecarSet change, with a warning", () => {
    const admission = mutateSidecarSet(changed(sidecarSet("a"), "sidecarsets", paused));
    expect(admission).toMatchObject({
      kind: "allowed",
      object: { spec: { injectionStrategy: { paused: true }, volumes: POD.volumes } },
      warnings: [expect.stringMatching(SENTENCE)],
    });
    const { object } = admission as { readonly object: KubernetesObject };
    expect(validateSidecarSet(changed(sidecarSet("a"), "sidecarsets", object), view)).toEqual({ kind: "allowed" });
  });

  it.each([[false], [true]])(
    "a stored volume with an unknown source stays when other fields of its Advanced StatefulSet change, with TemplateNoDefaults=%s",
    (isOn) => {
      const admission = mutateStatefulSet(changed(statefulSet, "statefulsets", scaled), gates(isOn));
      expect(admission).toMatchObject({
        kind: "allowed",
        object: { spec: { replicas: 2, template: { spec: { volumes: POD.volumes } } } },
        warnings: [expect.stringMatching(SENTENCE)],
      });
    },
  );

  it("a volume with an unknown source stays in its revision and through the conversion to v1alpha1 and back", () => {
    const older = convertSidecarSet(sidecarSet("a"), "apps.kruise.io/v1alpha1");
    const again = convertSidecarSet((older as Decoded<KubernetesObject>).value, "apps.kruise.io/v1beta1");
    expect(again).toMatchObject({ kind: "Decoded", value: { spec: { volumes: POD.volumes } } });
    expect(JSON.stringify(revisionData((again as Decoded<SidecarSet>).value))).toContain("newSourceOfTomorrow");
  });
});

describe("kubectl", () => {
  let cluster: ServedCluster;
  beforeAll(async () => {
    cluster = await startServedCluster();
  });
  afterAll(() => cluster?.close());

  /** Returns the code and the warnings. */
  function create(query: string, body: object) {
    const { local } = cluster;
    const url = `${local.url}/apis/apps.kruise.io/v1beta1/sidecarsets${query}`;
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${local.token}` };
    return new Promise<{ readonly code: number; readonly message: string }>((resolve, reject) => {
      const sent = request(url, { method: "POST", ca: local.caCertificate, headers }, async (answer) => {
        const { message } = JSON.parse((await answer.toArray()).join(""));
        resolve({ code: answer.statusCode ?? 0, message });
      });
      sent.on("error", reject);
      sent.end(JSON.stringify(body));
    });
  }

  it.each([
    ["create --validate=strict", "?fieldValidation=Strict"],
    ["create --validate=ignore", "?fieldValidation=Ignore"],
    ["create --dry-run=server", "?dryRun=All"],
  ])("`kubectl %s` shows why a volume with an unknown source is refused", async (name, query) => {
    const { code, message } = await create(query, sidecarSet(name.replaceAll(/[^a-z]+/g, "-")));
    expect(code).toBe(422);
    expect(message).toMatch(SENTENCE);
  });
});
