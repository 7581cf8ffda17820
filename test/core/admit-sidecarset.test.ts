import { describe, expect, it } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { parseJson } from "../../shared/go/json/json-number.ts";

const META = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name: "s" } };

function request(object: unknown, changes: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    uid: "1",
    operation: "CREATE",
    resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
    object: object as KubernetesObject,
    ...changes,
  };
}

function container(fields: object): object {
  return { ...META, spec: { containers: [{ name: "c", image: "c:1", ...fields }] } };
}

/** Returns the first container after the webhook. */
function admitted(fields: object): Record<string, unknown> {
  const admission = mutateSidecarSet(request(container(fields)));
  if (admission.kind === "denied") throw new Error(admission.message);
  const { spec } = admission.object as { readonly spec?: { readonly containers?: readonly Record<string, unknown>[] } };
  return spec?.containers?.[0] ?? {};
}

describe("mutateSidecarSet:", () => {
  it("mutateSidecarSet fills in defaults and hashes, and a second call changes nothing", () => {
    const first = mutateSidecarSet(request(container({})));
    expect(first).toMatchObject({
      kind: "allowed",
      object: {
        metadata: { annotations: { "kruise.io/sidecarset-hash": expect.stringMatching(/^\w{64}$/) } },
        spec: {
          updateStrategy: { type: "RollingUpdate", maxUnavailable: 1, partition: 0 },
          revisionHistoryLimit: 10,
          containers: [{ podInjectPolicy: "BeforeAppContainer", imagePullPolicy: "IfNotPresent" }],
        },
      },
    });
    const { object } = first as { readonly object?: KubernetesObject };
    expect(mutateSidecarSet(request(object, { operation: "UPDATE" }))).toEqual({ kind: "allowed" });
    const withUnknown = { ...object, spec: { ...(object as { spec?: object }).spec, later: true } };
    expect(mutateSidecarSet(request(withUnknown)), "unknown fields survive").toEqual({
      kind: "allowed",
      warnings: ["SidecarSets have no field spec.later; it has no effect"],
    });
  });

  it("mutateSidecarSet names 20 unknown fields at most, each with 200 letters at most, and counts the others", () => {
    const unknown = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`${"x".repeat(300)}${index}`, 1]));
    const object = { ...META, spec: { containers: [{ name: "c", image: "c:1" }], ...unknown } };
    const { warnings = [] } = mutateSidecarSet(request(object)) as { warnings?: readonly string[] };
    expect(warnings).toHaveLength(21);
    expect(warnings[0]).toBe(`SidecarSets have no field spec.${"x".repeat(195)}…; it has no effect`);
    expect(warnings[20]).toBe("SidecarSets do not have 49980 other fields of it either; none of them has an effect");
  });

  it.each([undefined, null, ""])("mutateSidecarSet accepts an object whose apiVersion and kind are %j", (nothing) => {
    const object = { ...container({}), apiVersion: nothing, kind: nothing };
    expect(mutateSidecarSet(request(object))).toMatchObject({ kind: "allowed", object: { metadata: { name: "s" } } });
  });

  const PROBE = { httpGet: { port: 80 } };
  const rows: readonly (readonly [string, object, object])[] = [
    ["the upgrade type ColdUpgrade", { tty: false }, { upgradeStrategy: { upgradeType: "ColdUpgrade" } }],
    [
      "the default of a probe's timeoutSeconds if it is 0",
      { livenessProbe: { ...PROBE, timeoutSeconds: 0 } },
      { livenessProbe: { timeoutSeconds: 1 } },
    ],
    [
      "the path and the scheme of a readiness probe",
      { readinessProbe: PROBE },
      { readinessProbe: { httpGet: { path: "/", scheme: "HTTP" } } },
    ],
    ["the startup probe without any defaults", { startupProbe: PROBE }, { startupProbe: { httpGet: { port: 80 } } }],
    [
      "the service null for a gRPC probe that names none",
      { livenessProbe: { grpc: { port: 1 } } },
      { livenessProbe: { grpc: { port: 1, service: null } } },
    ],
    [
      "cpu 0.0001 rounded up to 1m",
      { resources: { limits: { cpu: "0.0001" } } },
      { resources: { limits: { cpu: "1m" } } },
    ],
    [
      "the protocol TCP for a port that names none",
      { ports: [{ containerPort: 1 }] },
      { ports: [{ containerPort: 1, protocol: "TCP" }] },
    ],
    [
      "the same user id if it is greater than 2^53",
      parseJson('{"securityContext":{"runAsUser":9007199254740993}}') as object,
      parseJson('{"securityContext":{"runAsUser":9007199254740993}}') as object,
    ],
  ];
  it.each(rows)("after mutateSidecarSet a container has %s", (_sentence, fields, expected) =>
    expect(admitted(fields)).toMatchObject(expected),
  );

  it("the pull policy is Always for an image without a tag or with the tag latest, else IfNotPresent", () => {
    const policies = ["c", "c:latest", "c:1", "C", `c@sha256:${"a".repeat(64)}`, "a".repeat(64)].map(
      (image) => admitted({ image })["imagePullPolicy"],
    );
    expect(policies).toEqual(["Always", "Always", "IfNotPresent", "IfNotPresent", "IfNotPresent", "IfNotPresent"]);
  });

  const denials: readonly (readonly [string, AdmissionRequest, number, string])[] = [
    [
      "an unknown version",
      request(META, { resource: { group: "apps.kruise.io", version: "v2", resource: "sidecarsets" } }),
      400,
      "unsupported version: v2",
    ],
    ["a request without an object", request(null), 400, "there is no content to decode"],
    [
      "an object of another version than the request",
      request({ ...META, apiVersion: "apps.kruise.io/v1alpha1" }),
      400,
      "the object is a SidecarSet of apps.kruise.io/v1alpha1, not of apps.kruise.io/v1beta1",
    ],
    [
      "an object whose apiVersion is not a string",
      request({ ...META, apiVersion: { toString: 1 } as unknown as string }),
      400,
      "the object is a SidecarSet of (no text), not of apps.kruise.io/v1beta1",
    ],
    [
      "a field of the wrong type",
      request(container({ env: {} })),
      400,
      "spec.containers[0].env must be a list, not an object",
    ],
    [
      "a transferEnv source that names no field",
      request(container({ transferEnv: [{ envName: "A" }, { sourceContainerNameFrom: {}, envName: "B" }] })),
      422,
      "spec.containers[0].transferEnv[1].sourceContainerNameFrom.fieldRef: Required value",
    ],
    [
      "a SidecarSet with two transferEnv sources that name no field, with an error for each",
      request({
        ...META,
        spec: {
          initContainers: [{ name: "i", transferEnv: [{ sourceContainerNameFrom: {} }] }],
          containers: [{ name: "c", transferEnv: [{ sourceContainerNameFrom: {} }] }],
        },
      }),
      422,
      "[spec.initContainers[0].transferEnv[0].sourceContainerNameFrom.fieldRef: Required value, spec.containers[0].transferEnv[0].sourceContainerNameFrom.fieldRef: Required value]",
    ],
  ];
  it.each(denials)("mutateSidecarSet denies %s", (_what, refused, code, message) => {
    expect(mutateSidecarSet(refused)).toMatchObject({ kind: "denied", code, message });
  });

  it.each(["DELETE", "CONNECT"])("mutateSidecarSet allows a %s request without a change", (operation) => {
    expect(mutateSidecarSet(request(null, { operation }))).toEqual({ kind: "allowed" });
  });

  it("mutateSidecarSet returns v1alpha1 for a v1alpha1 request, with the same hash as v1beta1", () => {
    const { spec } = container({}) as { readonly spec: object };
    const old = { ...META, apiVersion: "apps.kruise.io/v1alpha1", spec: { ...spec, namespace: "n" } };
    const resource = { group: "apps.kruise.io", version: "v1alpha1", resource: "sidecarsets" };
    const admission = mutateSidecarSet(request(old, { resource }));
    const current = mutateSidecarSet(request(container({})));
    expect(admission).toMatchObject({ object: { apiVersion: "apps.kruise.io/v1alpha1", spec: { namespace: "n" } } });
    const hash = (object: typeof admission): unknown =>
      (object as { object?: KubernetesObject }).object?.metadata?.annotations?.["kruise.io/sidecarset-hash"];
    expect(hash(admission)).toBe(hash(current));
  });
});
