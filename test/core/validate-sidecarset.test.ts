import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import { type SidecarSetView, validateSidecarSet } from "../../shared/core/rollout/validate-sidecarset.ts";

const VIEW: SidecarSetView = {
  sidecarSets: [],
  controllerRevisions: [],
  configMaps: [],
  kruiseNamespace: "kruise-system",
  featureGates: { SidecarSetPatchPodMetadataDefaultsAllowed: false },
};

const CONTAINER = {
  name: "agent",
  image: "nginx:1.25",
  imagePullPolicy: "IfNotPresent",
  terminationMessagePolicy: "File",
  podInjectPolicy: "BeforeAppContainer",
  shareVolumePolicy: { type: "disabled" },
};
const SPEC = { selector: { matchLabels: { app: "web" } }, containers: [CONTAINER] };

function request(object: unknown, changes: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    uid: "u",
    operation: "CREATE",
    resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
    object: object as NonNullable<AdmissionRequest["object"]>,
    ...changes,
  };
}

function sidecarSet(spec: unknown, version = "v1beta1", name = "logs"): Readonly<Record<string, unknown>> {
  return { apiVersion: `apps.kruise.io/${version}`, kind: "SidecarSet", metadata: { name }, spec };
}

describe("validateSidecarSet of an object without apiVersion and kind:", () => {
  it.each([undefined, null, ""])("an object with the apiVersion and kind %j is allowed", (nothing) => {
    const object = { ...sidecarSet(SPEC), apiVersion: nothing, kind: nothing };
    const older = { operation: "UPDATE", oldObject: object as unknown as NonNullable<AdmissionRequest["object"]> };
    expect(validateSidecarSet(request(object, older), VIEW)).toEqual({ kind: "allowed" });
  });
});

describe("validateSidecarSet of an invalid request:", () => {
  const v1alpha1 = { resource: { group: "apps.kruise.io", version: "v1alpha1", resource: "sidecarsets" } };
  const { selector: _selector, ...withoutSelector } = SPEC;
  const rows: readonly (readonly [string, AdmissionRequest, number, string])[] = [
    [
      "a SidecarSet without a selector",
      request(sidecarSet(withoutSelector)),
      422,
      "spec.selector: Required value: no selector defined for SidecarSet",
    ],
    [
      "a SidecarSet without containers",
      request(sidecarSet({ ...SPEC, containers: [] })),
      422,
      "spec: Required value: no initContainer or container defined for SidecarSet",
    ],
    [
      "a SidecarSet with a string as its selector",
      request(sidecarSet({ ...SPEC, selector: "app=web" })),
      400,
      "spec.selector must be an object, not a string",
    ],
    [
      "a SidecarSet with a number as an image",
      request(sidecarSet({ ...SPEC, containers: [{ ...CONTAINER, image: 1 }] })),
      400,
      "spec.containers[0].image must be a string, not the number 1",
    ],
    [
      "a SidecarSet with an invalid quantity",
      request(sidecarSet({ ...SPEC, containers: [{ ...CONTAINER, resources: { limits: { cpu: "much" } } }] })),
      400,
      "spec.containers[0].resources.limits[cpu]: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
    ["a request without an object", request(null), 400, "the object is missing: there is no content to decode"],
    [
      "an update without an old object",
      request(sidecarSet(SPEC), { operation: "UPDATE" }),
      400,
      "the old object is missing: there is no content to decode",
    ],
    [
      "a request with an unknown version",
      request(sidecarSet(SPEC), { resource: { ...v1alpha1.resource, version: "v2" } }),
      400,
      "unsupported version: v2",
    ],
    [
      "an object of another version than the request",
      request(sidecarSet(SPEC), v1alpha1),
      400,
      "the object is a SidecarSet of apps.kruise.io/v1beta1, not a SidecarSet of apps.kruise.io/v1alpha1",
    ],
  ];
  it.each(rows)("%s is denied with one message", (_sentence, given, code, message) => {
    expect(validateSidecarSet(given, VIEW)).toMatchObject({ kind: "denied", code, message });
  });
});

describe("validateSidecarSet of a v1alpha1 object:", () => {
  const v1alpha1 = { resource: { group: "apps.kruise.io", version: "v1alpha1", resource: "sidecarsets" } };

  it("a valid v1alpha1 SidecarSet is allowed like a v1beta1 one", () => {
    expect(validateSidecarSet(request(sidecarSet(SPEC, "v1alpha1"), v1alpha1), VIEW)).toEqual({ kind: "allowed" });
  });

  it("a v1alpha1 SidecarSet conflicts with another one only in the same namespace", () => {
    const one = request(sidecarSet({ ...SPEC, namespace: "one" }, "v1alpha1"), v1alpha1);
    const inNamespace = (namespace: string) => ({
      ...VIEW,
      sidecarSets: [sidecarSet({ ...SPEC, namespace }, "v1alpha1", "other")],
    });
    expect(validateSidecarSet(one, inNamespace("two"))).toEqual({ kind: "allowed" });
    expect(validateSidecarSet(one, inNamespace("one"))).toMatchObject({
      kind: "denied",
      code: 422,
      reason: "Invalid",
      message: 'spec.containers: Invalid value: "agent": container agent already exist in other',
    });
  });
});

it("another SidecarSet that cannot be read does not block a valid one", () => {
  const view = { ...VIEW, sidecarSets: [sidecarSet("broken", "v1beta1", "other")] };
  expect(validateSidecarSet(request(sidecarSet(SPEC)), view)).toEqual({ kind: "allowed" });
});

describe("validateSidecarSet of any JSON:", () => {
  const names = Object.keys(CONTAINER).concat(
    ..."env ports volumeMounts volumes initContainers resources livenessProbe lifecycle transferEnv".split(" "),
    ..."securityContext resourcesPolicy limits cpu key values operator matchExpressions httpGet valueFrom".split(" "),
  );
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      fc.constantFrom<unknown>(null, "", "a", "-1", 0, -1, 1.5, 2 ** 40, true, "10%"),
      fc.array(tie("json"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie("json"), { maxKeys: 4 }),
    ),
  }));
  const spec = fc.dictionary(
    fc.constantFrom(
      ..."selector namespaceSelector containers initContainers volumes updateStrategy injectionStrategy patchPodMetadata".split(
        " ",
      ),
    ),
    json,
  );

  it("validateSidecarSet answers any JSON object with allowed or denied", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          json,
          spec.map((part) => sidecarSet({ ...SPEC, ...part })),
        ),
        json,
        (object, old) => {
          const given = request(object, { operation: "UPDATE", oldObject: old as null });
          expect(["allowed", "denied"]).toContain(validateSidecarSet(given, VIEW).kind);
          expect(["allowed", "denied"]).toContain(validateSidecarSet(request(object), VIEW).kind);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
