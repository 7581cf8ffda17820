/** Unknown fields, whichever way an object comes: each is a warning, and a volume never becomes an emptyDir silently. */
import { request } from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { mutateStatefulSet } from "../../shared/core/statefulset/mutate.ts";
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
const [old, next] = [sidecarSet("a"), { ...statefulSet, spec: { ...statefulSet.spec, replicas: 2 } }];

describe("the admission says that a volume becomes an emptyDir", () => {
  it.each([
    ["in a SidecarSet", () => mutateSidecarSet(asked(sidecarSet("a"), "sidecarsets"))],
    [
      "in a SidecarSet of v1alpha1",
      () => mutateSidecarSet(asked(sidecarSet("a", "v1alpha1"), "sidecarsets", { resource: v1alpha1 })),
    ],
    [
      "in a SidecarSet that is changed",
      () => mutateSidecarSet(asked(old, "sidecarsets", { operation: "UPDATE", oldObject: old })),
    ],
    ["in an Advanced StatefulSet", () => mutateStatefulSet(asked(statefulSet, "statefulsets"), gates(false))],
    [
      "in an Advanced StatefulSet with TemplateNoDefaults",
      () => mutateStatefulSet(asked(statefulSet, "statefulsets"), gates(true)),
    ],
    [
      "in an Advanced StatefulSet whose template stays as it is",
      () =>
        mutateStatefulSet(asked(next, "statefulsets", { operation: "UPDATE", oldObject: statefulSet }), gates(false)),
    ],
  ])("%s", (_, admit) => {
    expect(admit()).toMatchObject({
      kind: "allowed",
      warnings: [
        expect.stringMatching(
          /have no field spec[.].*volumes\[0\][.]newSourceOfTomorrow; without it the volume v becomes an emptyDir$/,
        ),
      ],
    });
  });
});

describe("kubectl is shown the warning of a dropped field", () => {
  let cluster: ServedCluster;
  beforeAll(async () => {
    cluster = await startServedCluster();
  });
  afterAll(() => cluster?.close());

  /** Its code, and the headers `Warning`. */
  function create(query: string, body: object) {
    const { local } = cluster;
    const url = `${local.url}/apis/apps.kruise.io/v1beta1/sidecarsets${query}`;
    const headers = { "Content-Type": "application/json", Authorization: `Bearer ${local.token}` };
    return new Promise<{ readonly code: number; readonly warnings: string }>((resolve, reject) => {
      const sent = request(url, { method: "POST", ca: local.caCertificate, headers }, (answer) => {
        answer.resume();
        const warnings = String(answer.headers["warning"] ?? "");
        answer.on("end", () => resolve({ code: answer.statusCode ?? 0, warnings }));
      });
      sent.on("error", reject);
      sent.end(JSON.stringify(body));
    });
  }

  it.each([
    ["create --validate=strict", "?fieldValidation=Strict"],
    ["create --validate=ignore", "?fieldValidation=Ignore"],
    ["create --dry-run=server", "?dryRun=All"],
  ])("with `kubectl %s`", async (name, query) => {
    const { code, warnings } = await create(query, sidecarSet(name.replaceAll(/[^a-z]+/g, "-")));
    expect(code).toBe(201);
    expect(warnings).toContain("without it the volume v becomes an emptyDir");
  });
});
