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

/** The pod afterwards; a refusal is a failed test. */
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

describe("admission of a pod", () => {
  test("injects, and records what and when", () => {
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
    ["that no SidecarSet is for", request({ ...POD, metadata: { name: "web" } } as Pod), [sidecarSet("log")]],
    ["whose SidecarSet pauses injection", request(POD), [sidecarSet("log", { injectionStrategy: { paused: true } })]],
    ["that has ended", request({ ...POD, status: { phase: "Succeeded" } } as Pod), [sidecarSet("log")]],
    ["of a subresource", { ...request(POD), subResource: "ephemeralcontainers" }, [sidecarSet("log")]],
    [
      "of another resource",
      { ...request(POD), resource: { group: "", version: "v1", resource: "nodes" } },
      [sidecarSet("log")],
    ],
    ["that exists already", { ...request(POD, "UPDATE"), oldObject: POD }, [sidecarSet("log")]],
    ["whose SidecarSet brings nothing", request(POD), [sidecarSet("log", { containers: [] })]],
  ];
  test.each(untouched)("leaves a pod alone %s", (_, given, sidecarSets) => {
    expect(admit(given, sidecarSets)).toEqual({ kind: "allowed" });
  });

  const declining: readonly [place: string, pod: Pod][] = [
    ["label", { ...POD, metadata: { labels: { app: "web", "sidecarset.kruise.io/inject": "false" } } }],
    ["annotation", { ...POD, metadata: { ...POD.metadata, annotations: { "sidecarset.kruise.io/inject": "false" } } }],
  ];
  test.each(declining)("with PodOptOut a pod declines all sidecars when it is created, by %s", (_, pod) => {
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
      "without any object",
      { uid: "u", resource: { group: "", version: "v1", resource: "pods" }, operation: "CREATE" },
      {},
      { code: 400, message: "there is no content to decode" },
    ],
    ["without a pod", request(null), {}, { code: 400, message: "there is no content to decode" }],
    [
      "whose containers are no list",
      request({ spec: { containers: "x" } } as KubernetesObject),
      {},
      { code: 400, message: "spec.containers must be a list, not a string" },
    ],
    ["that changes from nothing", request(POD, "UPDATE"), {}, { code: 500, message: "there is no content to decode" }],
    [
      "for a selector that cannot be evaluated",
      request(POD),
      { selector: broken },
      { code: 500, message: '"Bad" is not a valid pod selector operator' },
    ],
    [
      "for a revision that is gone",
      request(POD),
      { injectionStrategy: { revision: { revisionName: "r" } } },
      { code: 500, message: 'controllerrevisions.apps "r" not found' },
    ],
    [
      "whose hash annotation is null, where the reference panics",
      request({ ...POD, metadata: { ...POD.metadata, annotations: { "kruise.io/sidecarset-hash": "null" } } } as Pod),
      {},
      {
        code: 500,
        message:
          "pod(shop/web) invalid annotations[kruise.io/sidecarset-hash] value null, unmarshal failed: null is no map",
      },
    ],
    [
      "whose working containers are null, where the reference panics",
      request({
        ...POD,
        metadata: { ...POD.metadata, annotations: { "kruise.io/sidecarset-working-hotupgrade-container": "null" } },
      } as Pod),
      { containers: [{ name: "hot", upgradeStrategy: { upgradeType: "HotUpgrade" } }] },
      { code: 500, message: "annotations[kruise.io/sidecarset-working-hotupgrade-container] is null, not a map" },
    ],
  ];
  test.each(denied)("refuses a request %s", (_, given, spec, denial) => {
    const reason = denial.code === 400 ? "BadRequest" : "InternalError";
    expect(admit(given, [sidecarSet("log", spec)])).toMatchObject({ kind: "denied", reason, ...denial });
  });

  test("names the SidecarSet that stands in the way", () => {
    const admission = admit(request(POD), [sidecarSet("fine"), sidecarSet("log", { selector: broken })]);
    const detail = '"Bad" is not a valid pod selector operator';
    expect(admission).toMatchObject({ errors: [{ type: "InternalError", field: "sidecarsets/log", detail }] });
  });

  test("names no SidecarSet where the pod itself stands in the way", () => {
    const annotations = { "kruise.io/sidecarset-hash": "null" };
    const admission = admit(request({ ...POD, metadata: { ...POD.metadata, annotations } } as Pod), [
      sidecarSet("log"),
    ]);
    expect(admission).not.toHaveProperty("errors");
  });

  test("refuses a change of a pod for which every SidecarSet steps back, where the reference panics", () => {
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

  test("sees a pod without metadata in the namespace default", () => {
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

  test("asks for no revision for what is no pod, nor where a selector cannot be evaluated", () => {
    const pinned = sidecarSet("log", { injectionStrategy: { revision: { revisionName: "r" } } });
    const wanted = (given: AdmissionRequest, sidecarSets: readonly SidecarSet[]) =>
      revisionsWanted(given, indexSidecarSets(sidecarSets), NAMESPACE);
    expect(wanted(request(POD), [pinned])).toHaveLength(1);
    expect(wanted(request({ ...POD, spec: { containers: "x" } } as KubernetesObject), [pinned])).toEqual([]);
    expect(wanted(request(POD), [pinned, sidecarSet("bad", { selector: broken })])).toEqual([]);
  });

  test("asks for the revisions of the SidecarSets that match, and of no other", () => {
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

  test("a canary takes the place of its base", () => {
    const annotations = { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "log" };
    const canary = { ...sidecarSet("log-canary"), metadata: { name: "log-canary", annotations } };
    expect(containerNames(admitted(POD, [sidecarSet("log"), canary]))).toEqual(["main", "log-canary-agent"]);
  });
});
