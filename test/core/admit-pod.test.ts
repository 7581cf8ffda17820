import { describe, expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { ControllerRevision, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { admitPod, revisionsWanted } from "../../shared/core/injection/admit-pod.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { listedPod } from "../support/objects.ts";

const NAMESPACE = { metadata: { name: "shop", labels: { "kubernetes.io/metadata.name": "shop" } } };
const CONTEXT = { now: "2026-01-02T03:04:05.678Z", random: () => 0.5, kruiseNamespace: "kruise-system", gates: {} };

function request(object: KubernetesObject | null, operation = "CREATE"): AdmissionRequest {
  return { uid: "u", resource: { group: "", version: "v1", resource: "pods" }, namespace: "shop", operation, object };
}

function admit(
  given: AdmissionRequest,
  sidecarSets: readonly SidecarSet[],
  revisions: readonly ControllerRevision[] = [],
) {
  return admitPod(given, { index: indexSidecarSets(sidecarSets), namespace: NAMESPACE, revisions }, CONTEXT);
}

/** Returns the pod after admission. A refusal fails the test. */
function admitted(pod: Pod, sidecarSets: readonly SidecarSet[]): Pod {
  const admission = admit(request(pod), sidecarSets);
  if (admission.kind === "denied") throw new Error(admission.message);
  return (admission.object ?? pod) as Pod;
}

function sidecarSet(name: string, spec: Partial<SidecarSet["spec"]> = {}): SidecarSet {
  const selector = { matchLabels: { app: "web" } };
  return { metadata: { name }, spec: { selector, containers: [{ name: `${name}-agent`, image: "agent:1" }], ...spec } };
}

const POD: Pod = listedPod({ name: "web", labels: { app: "web" } }, { containers: [{ name: "main" }] });

function containerNames({ spec }: Pod): readonly string[] {
  return spec.containers.map(({ name }) => name);
}

describe("admitPod:", () => {
  test("a matching pod gets the sidecar and the annotations that record the hash, the time and the SidecarSet", () => {
    const pod = admitted(POD, [sidecarSet("log")]);
    expect(containerNames(pod)).toEqual(["main", "log-agent"]);
    expect(pod.metadata).toEqual({
      ...POD.metadata,
      annotations: {
        "kruise.io/sidecarset-hash":
          '{"log":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"","sidecarSetName":"log","sidecarList":["log-agent"]}}',
        "kruise.io/sidecarset-hash-without-image":
          '{"log":{"updateTimestamp":"2026-01-02T03:04:05Z","hash":"","sidecarSetName":"log","sidecarList":["log-agent"]}}',
        "kruise.io/sidecarset-injected-list": "log",
      },
    });
  });

  const untouched: readonly [sentence: string, request: AdmissionRequest, sidecarSets: readonly SidecarSet[]][] = [
    ["that no SidecarSet selects", request({ ...POD, metadata: { name: "web" } } as Pod), [sidecarSet("log")]],
    [
      "whose SidecarSet has injection paused",
      request(POD),
      [sidecarSet("log", { injectionStrategy: { paused: true } })],
    ],
    ["that has ended", request({ ...POD, status: { phase: "Succeeded" } } as Pod), [sidecarSet("log")]],
    ["in a request for a subresource", { ...request(POD), subResource: "ephemeralcontainers" }, [sidecarSet("log")]],
    [
      "in a request for another resource",
      { ...request(POD), resource: { group: "", version: "v1", resource: "nodes" } },
      [sidecarSet("log")],
    ],
    ["in an update request", { ...request(POD, "UPDATE"), oldObject: POD }, [sidecarSet("log")]],
    ["whose SidecarSet has no containers", request(POD), [sidecarSet("log", { containers: [] })]],
  ];
  test.each(untouched)("admitPod does not change a pod %s", (_, given, sidecarSets) => {
    expect(admit(given, sidecarSets)).toEqual({ kind: "allowed" });
  });

  const declining: readonly [place: string, pod: Pod][] = [
    ["a label", { ...POD, metadata: { labels: { app: "web", "sidecarset.kruise.io/inject": "false" } } }],
    [
      "an annotation",
      { ...POD, metadata: { ...POD.metadata, annotations: { "sidecarset.kruise.io/inject": "false" } } },
    ],
  ];
  test.each(declining)("with PodOptOut on, a new pod that declines with %s gets no sidecars", (_, pod) => {
    const view = { index: indexSidecarSets([sidecarSet("log")]), namespace: NAMESPACE, revisions: [] };
    const isInjected = (PodOptOut: boolean, value: string) => {
      const created = JSON.parse(JSON.stringify(pod).replace('"false"', JSON.stringify(value)));
      const admission = admitPod(request(created), view, { ...CONTEXT, gates: { PodOptOut } });
      return admission.kind === "allowed" && admission.object !== undefined;
    };
    expect(isInjected(true, "false")).toBe(false);
    expect(isInjected(true, "true")).toBe(true);
    expect(isInjected(false, "false")).toBe(true);
  });

  const broken = { matchExpressions: [{ key: "app", operator: "Bad" }] };
  const denied: readonly [
    sentence: string,
    request: AdmissionRequest,
    spec: Partial<SidecarSet["spec"]>,
    denial: { code: number; message: string },
  ][] = [
    [
      "a request without any object",
      { uid: "u", resource: { group: "", version: "v1", resource: "pods" }, operation: "CREATE" },
      {},
      { code: 400, message: "there is no content to decode" },
    ],
    ["a request whose object is null", request(null), {}, { code: 400, message: "there is no content to decode" }],
    [
      "a pod whose containers are not a list",
      request({ spec: { containers: "x" } } as KubernetesObject),
      {},
      { code: 400, message: "spec.containers must be a list, not a string" },
    ],
    [
      "an update without an old object",
      request(POD, "UPDATE"),
      {},
      { code: 500, message: "there is no content to decode" },
    ],
    [
      "a pod while the selector of a SidecarSet cannot be evaluated",
      request(POD),
      { selector: broken },
      { code: 500, message: '"Bad" is not a valid pod selector operator' },
    ],
    [
      "a pod whose SidecarSet names a revision that does not exist",
      request(POD),
      { injectionStrategy: { revision: { revisionName: "r" } } },
      { code: 500, message: 'controllerrevisions.apps "r" not found' },
    ],
    [
      "a pod whose hash annotation is null (the reference panics)",
      request({ ...POD, metadata: { ...POD.metadata, annotations: { "kruise.io/sidecarset-hash": "null" } } } as Pod),
      {},
      {
        code: 500,
        message:
          "pod(shop/web) invalid annotations[kruise.io/sidecarset-hash] value null, unmarshal failed: null is no map",
      },
    ],
    [
      "a pod whose annotation of working hot-upgrade containers is null (the reference panics)",
      request({
        ...POD,
        metadata: { ...POD.metadata, annotations: { "kruise.io/sidecarset-working-hotupgrade-container": "null" } },
      } as Pod),
      { containers: [{ name: "hot", upgradeStrategy: { upgradeType: "HotUpgrade" } }] },
      { code: 500, message: "annotations[kruise.io/sidecarset-working-hotupgrade-container] is null, not a map" },
    ],
  ];
  test.each(denied)("admitPod denies %s", (_, given, spec, denial) => {
    const reason = denial.code === 400 ? "BadRequest" : "InternalError";
    expect(admit(given, [sidecarSet("log", spec)])).toMatchObject({ kind: "denied", reason, ...denial });
  });

  test("a denial names the SidecarSet whose selector is invalid", () => {
    const admission = admit(request(POD), [sidecarSet("fine"), sidecarSet("log", { selector: broken })]);
    const detail = '"Bad" is not a valid pod selector operator';
    expect(admission).toMatchObject({ errors: [{ type: "InternalError", field: "sidecarsets/log", detail }] });
  });

  test("a denial names no SidecarSet if the pod's own annotation is invalid", () => {
    const annotations = { "kruise.io/sidecarset-hash": "null" };
    const admission = admit(request({ ...POD, metadata: { ...POD.metadata, annotations } } as Pod), [
      sidecarSet("log"),
    ]);
    expect(admission).not.toHaveProperty("errors");
  });

  test("admitPod denies the update of a pod if every matching SidecarSet is the base of another's canary (the reference panics)", () => {
    const canary = (name: string, base: string): SidecarSet => ({
      ...sidecarSet(name),
      metadata: {
        name,
        annotations: { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": base },
      },
    });
    const given = { ...request(POD, "UPDATE"), oldObject: POD };
    expect(admit(given, [canary("a", "b"), canary("b", "a")])).toMatchObject({
      message: "every SidecarSet that matches the pod is the base of another's canary",
    });
  });

  test("a pod without a namespace, in a request without a namespace, counts as in the namespace default", () => {
    const named = sidecarSet("log", {
      selector: { matchExpressions: [{ key: "a", operator: "DoesNotExist" }] },
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "shop" } },
    });
    const { spec } = POD;
    const bare = { ...request({ spec } as Pod), namespace: "" };
    expect(admit(bare, [named])).toEqual({ kind: "allowed" });
    expect(admit(request({ spec } as Pod), [named])).toHaveProperty("object");
    const everywhere = sidecarSet("log", { selector: named.spec.selector ?? {} });
    expect(admit(bare, [everywhere])).toHaveProperty("object");
    expect(revisionsWanted(bare, indexSidecarSets([everywhere]), NAMESPACE)).toEqual([]);
  });

  test("revisionsWanted returns nothing for an invalid pod or an invalid selector", () => {
    const pinned = sidecarSet("log", { injectionStrategy: { revision: { revisionName: "r" } } });
    const wanted = (given: AdmissionRequest, sidecarSets: readonly SidecarSet[]) =>
      revisionsWanted(given, indexSidecarSets(sidecarSets), NAMESPACE);
    expect(wanted(request(POD), [pinned])).toHaveLength(1);
    expect(wanted(request({ ...POD, spec: { containers: "x" } } as KubernetesObject), [pinned])).toEqual([]);
    expect(wanted(request(POD), [pinned, sidecarSet("bad", { selector: broken })])).toEqual([]);
  });

  test("revisionsWanted returns the revisions of the matching SidecarSets only, and none for an update", () => {
    const pinned = (name: string, spec: Partial<SidecarSet["spec"]> = {}) =>
      sidecarSet(name, { injectionStrategy: { revision: { customVersion: `${name}-v1` } }, ...spec });
    const index = indexSidecarSets([
      pinned("b"),
      pinned("a"),
      pinned("other", { selector: { matchLabels: { app: "other" } } }),
      sidecarSet("current"),
    ]);
    expect(revisionsWanted(request(POD), index, NAMESPACE)).toEqual([
      { sidecarSet: "a", customVersion: "a-v1" },
      { sidecarSet: "b", customVersion: "b-v1" },
    ]);
    expect(revisionsWanted({ ...request(POD), operation: "UPDATE" }, index, NAMESPACE)).toEqual([]);
  });

  test("a pod that a canary selects gets the sidecars of the canary instead of its base", () => {
    const annotations = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "log" };
    const canary = { ...sidecarSet("log-canary"), metadata: { name: "log-canary", annotations } };
    expect(containerNames(admitted(POD, [sidecarSet("log"), canary]))).toEqual(["main", "log-canary-agent"]);
  });
});
