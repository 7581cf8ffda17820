/**
 * Tests readiness of webhooks: they must read the cluster, and decide correctly on a test pod. Also tests the answers
 * of an app of all webhooks at its paths.
 */
import { describe, expect, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import {
  ANNOUNCE_SIDECARSET_PATH,
  ANNOUNCEMENTS_CONFIG_MAP,
  SIDECARSET_V1ALPHA1,
  SIDECARSET_V1BETA1,
  VALIDATING_CONFIGURATION,
} from "../../shared/api/names.ts";
import type { Admission } from "../../shared/core/admission/admission.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { allWebhooks, type WebhooksOptions } from "../../shared/webhook/handlers/all-webhooks.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { checkPods } from "../../shared/webhook/handlers/pods-ready.ts";
import {
  containersIn,
  type Deciding,
  decideSample,
  samplePod,
  sampleReview,
} from "../../shared/webhook/handlers/sample-decision.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import type { HttpRequest } from "../../shared/webhook/server/http.ts";
import {
  CONVERT_PATH,
  MUTATE_POD_PATH,
  MUTATE_RECREATE_REQUEST_PATH,
  MUTATE_STATEFUL_SET_PATH,
  VALIDATE_SIDECARSET_PATH,
  VALIDATE_STATEFUL_SET_PATH,
} from "../../shared/webhook/server/paths.ts";
import type { ClusterView } from "../../shared/webhook/view/cluster-view.ts";
import { newPod } from "../support/objects.ts";

const { kruiseNamespace, featureGates } = readConfig({});
const options = { kruiseNamespace, featureGates };
const ours: Deciding = { podAdmission, webhookApp, indexSidecarSets };
const deciding = (admission: Admission): Deciding => ({ ...ours, podAdmission: () => () => admission });
const throwing = (message: string): Deciding => ({
  ...ours,
  podAdmission: () => () => {
    throw new Error(message);
  },
});

describe("decideSample:", () => {
  test("a sample pod gets its sidecar from this build", async () => {
    await expect(decideSample(options, ours)).resolves.toBeUndefined();
  });

  test("a sample pod is reviewed as API servers review pods, without data from a cluster", async () => {
    let asked: AdmissionRequest | undefined;
    let view: ClusterView | undefined;
    const seeing: Deciding = {
      ...ours,
      podAdmission: (given) => {
        view = given.view;
        return (request) => {
          asked = request;
          return podAdmission(given)(request);
        };
      },
    };
    await decideSample(options, seeing);
    expect(asked).toMatchObject({ operation: "CREATE", dryRun: true, resource: { version: "v1", resource: "pods" } });
    const none = { value: undefined };
    expect([await view?.getNamespace("x"), await view?.getConfigMap("x")]).toEqual([none, none]);
    expect(await view?.findRevisions({ sidecarSet: "x", revisionName: "x" } as never)).toEqual({ value: [] });
  });

  test.each<[string, Deciding, string]>([
    ["refuses a sample pod", deciding({ kind: "denied", code: 422, reason: "Invalid", message: "no" }), "is refused"],
    ["changes nothing in a sample pod", deciding({ kind: "allowed" }), "gets no sidecar"],
    [
      "changes a sample pod without a sidecar",
      deciding({ kind: "allowed", object: samplePod({ a: "b" }) }),
      "gets no sidecar",
    ],
    ["throws for a sample pod", throwing("out of order"), 'is answered with 500 {"apiVersion":"v1","kind":"Status"'],
  ])("decideSample fails and gives the reason when the build %s", async (_, broken, problem) => {
    await expect(decideSample(options, broken)).rejects.toThrow(`this build cannot decide: a made-up pod ${problem}`);
  });

  test("decideSample shortens a long error", async () => {
    const failure: Error = await decideSample(options, throwing("x".repeat(5_000))).then(
      () => expect.unreachable(),
      (error) => error,
    );
    expect(failure.message.length).toBeLessThan(400);
    expect(failure.message).toContain("xxx");
  });

  test("sampleReview is a dry run in the form that API servers send", () => {
    const review = sampleReview(samplePod({ app: "web" }), ["", "v1", "pods"]);
    expect(JSON.parse(review)).toMatchObject({
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        operation: "CREATE",
        resource: { group: "", version: "v1", resource: "pods" },
        namespace: "default",
        dryRun: true,
        object: newPod(
          { name: "sidecarset-sample", namespace: "default", labels: { app: "web" } },
          { containers: [{ name: "main", image: "nginx:1.29" }] },
        ),
      },
    });
  });

  test("decideSample fails when the answer has no decision", async () => {
    const app: Deciding["webhookApp"] = () => async () => ({ status: 200, headers: {}, body: "{}" });
    await expect(decideSample(options, { ...ours, webhookApp: app })).rejects.toThrow("a made-up pod is refused");
  });
});

describe("containersIn:", () => {
  const named = (name: string) => ({ name, image: "x" });
  const patchOf = (...operations: object[]) => Buffer.from(JSON.stringify(operations)).toString("base64");
  test.each<[string, object, readonly string[]]>([
    ["an added container", { op: "add", path: "/spec/containers/0", value: named("a") }, ["a"]],
    ["a container added at index 10", { op: "add", path: "/spec/containers/10", value: named("a") }, ["a"]],
    ["a container added at the end", { op: "add", path: "/spec/containers/-", value: named("a") }, ["a"]],
    ["an added init container", { op: "add", path: "/spec/initContainers/1", value: named("a") }, ["a"]],
    [
      "an added list of init containers",
      { op: "add", path: "/spec/initContainers", value: [named("a"), named("b")] },
      ["a", "b"],
    ],
    [
      "no container in the replacement of a container",
      { op: "replace", path: "/spec/containers/0", value: named("a") },
      [],
    ],
    ["no container for an added volume", { op: "add", path: "/spec/volumes/0", value: named("a") }, []],
    [
      "no container for an added list of ports",
      { op: "add", path: "/spec/containers/0/ports", value: [named("a")] },
      [],
    ],
    [
      "no container for a path that only ends like one",
      { op: "add", path: "/x/spec/containers/0", value: named("a") },
      [],
    ],
  ])("containersIn finds %s", (_, operation, names) => {
    expect(containersIn(patchOf(operation))).toEqual(names);
  });

  test("containersIn finds no containers without a patch", () => {
    expect(containersIn(undefined)).toEqual([]);
  });
});

const log = createLog("error", () => undefined);

describe("checkPods:", () => {
  const view = {
    listSidecarSets: async () => ({ value: { sidecarSets: [], index: indexSidecarSets([]) } }),
    getNamespace: () => Promise.reject(),
    findRevisions: () => Promise.reject(),
    getConfigMap: () => Promise.reject(),
  } satisfies ClusterView;

  test("pod webhooks are ready when SidecarSets can be read and this build decides", async () => {
    await expect(checkPods({ ...options, view }, ours)).resolves.toBeUndefined();
  });

  test("pod webhooks are not ready when SidecarSets cannot be read", async () => {
    const listSidecarSets = () => Promise.reject(new Error("no way to the cluster"));
    const blind = { ...options, view: { ...view, listSidecarSets } };
    await expect(checkPods(blind, ours)).rejects.toThrow("no way to the cluster");
  });

  test("pod webhooks are not ready when this build cannot decide", async () => {
    await expect(checkPods({ ...options, view }, throwing("out of order"))).rejects.toThrow("cannot decide");
  });
});

describe("allWebhooks:", () => {
  /** Returns a cluster without objects. */
  const reading = (asked: string[], isDown = false) =>
    ({
      get: async ({ plural }, { name }) => {
        asked.push(`${plural} ${name}`);
        throw isDown ? new Error("no way to the cluster") : new KubeError("none", { code: 404, reason: "NotFound" });
      },
      list: async ({ plural }) => {
        asked.push(plural);
        return { items: [], metadata: { resourceVersion: "1" } };
      },
    }) as Pick<Cluster, "get" | "list"> as Cluster;
  const app = (cluster: Cluster, more: Partial<WebhooksOptions> = {}) =>
    allWebhooks({
      ...options,
      log,
      isKnown: () => true,
      connect: async () => cluster,
      freshnessMs: 0,
      now: Date.now,
      isKeepingRegistration: true,
      ...more,
    });
  const request = (more: Partial<HttpRequest>): HttpRequest => ({
    method: "POST",
    path: "/readyz",
    query: "",
    headers: { "content-type": "application/json" },
    readBody: async () => "",
    ...more,
  });
  const probe = request({ method: "GET" });
  const answerTo = async (path: string, body: string, cluster = reading([])) => {
    const { body: text } = await app(cluster)(request({ path, readBody: async () => body }));
    return JSON.parse(text);
  };
  const podReview = () => sampleReview(samplePod({ app: "web" }), ["", "v1", "pods"]);
  const sidecarSet = {
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: { name: "agent" },
    spec: {
      selector: { matchLabels: { app: "web" } },
      containers: [{ name: "agent", image: "agent:1", podInjectPolicy: "BeforeAppContainer" }],
      updateStrategy: { type: "NotUpdate" },
    },
  };
  /** Returns a review of the SidecarSet with its defaults, not a dry run. */
  const sidecarSetReview = () => {
    const review: { readonly request: AdmissionRequest } = JSON.parse(
      sampleReview(sidecarSet, ["apps.kruise.io", "v1beta1", "sidecarsets"]),
    );
    const mutated = mutateSidecarSet(review.request);
    const object = mutated.kind === "allowed" ? mutated.object : undefined;
    return JSON.stringify({ ...review, request: { ...review.request, object, dryRun: false } });
  };

  test("the webhooks are ready when they can read the Namespace default", async () => {
    const asked: string[] = [];
    expect(await app(reading(asked))(probe)).toMatchObject({ status: 200, body: "ok" });
    expect(asked).toEqual(["namespaces default"]);
  });

  test("the webhooks are not ready when the cluster cannot be read", async () => {
    expect(await app(reading([], true))(probe)).toMatchObject({ status: 503 });
  });

  test("the webhooks show their readiness to strangers, because only the cluster's probes reach them", async () => {
    expect(await app(reading([]), { isKnown: () => false })(probe)).toMatchObject({ status: 200 });
  });

  test.each([
    ["the webhooks read the registration of pods", VALIDATE_SIDECARSET_PATH, "mutatingwebhookconfigurations"],
    [
      "the webhooks read the ConfigMap of announcements",
      ANNOUNCE_SIDECARSET_PATH,
      `configmaps ${ANNOUNCEMENTS_CONFIG_MAP}`,
    ],
  ])("%s before they allow a SidecarSet", async (_, path, wanted) => {
    const asked: string[] = [];
    expect(await answerTo(path, sidecarSetReview(), reading(asked))).toMatchObject({ response: { allowed: true } });
    expect(asked).toContainEqual(expect.stringContaining(wanted));
  });

  test("the webhooks decide pods", async () => {
    expect(await answerTo(MUTATE_POD_PATH, podReview())).toMatchObject({ response: { allowed: true } });
  });

  test("the webhooks list SidecarSets once for two pods while no write is announced", async () => {
    const asked: string[] = [];
    const { list } = reading(asked);
    const creationTimestamp = "2026-11-23T10:00:00Z";
    const { webhooks } = webhookConfigurations({ url: "https://x", pathSecret: "s".repeat(43) })[1] ?? {};
    const stored: Readonly<Record<string, object>> = {
      [ANNOUNCEMENTS_CONFIG_MAP]: { metadata: { uid: "n", resourceVersion: "1", creationTimestamp } },
      [VALIDATING_CONFIGURATION]: { metadata: { uid: "r", generation: 1, creationTimestamp }, webhooks },
    };
    const cluster = { list, get: async (_: unknown, { name }: { readonly name: string }) => stored[name] };
    const answer = app(cluster as unknown as Cluster, { now: () => Date.parse("2026-11-23T12:00:00Z") });
    for (const _ of ["a first", "a second"]) {
      const { status } = await answer(request({ path: MUTATE_POD_PATH, readBody: async () => podReview() }));
      expect(status).toBe(200);
    }
    expect(asked).toEqual(["sidecarsets"]);
  });

  const statefulSet = { apiVersion: SIDECARSET_V1BETA1, kind: "StatefulSet", metadata: { name: "web" }, spec: {} };
  const recreation = {
    apiVersion: SIDECARSET_V1BETA1,
    kind: "ContainerRecreateRequest",
    metadata: { name: "again" },
    spec: { podName: "web-0", containers: [{ name: "main" }] },
  };
  test.each([
    [
      "set defaults in an Advanced StatefulSet",
      MUTATE_STATEFUL_SET_PATH,
      statefulSet,
      { allowed: true, patch: expect.any(String) },
    ],
    [
      "refuse an Advanced StatefulSet without a selector",
      VALIDATE_STATEFUL_SET_PATH,
      statefulSet,
      { allowed: false, status: { code: 422, message: expect.stringContaining("spec.selector") } },
    ],
    [
      "refuse a ContainerRecreateRequest for a pod that does not exist",
      MUTATE_RECREATE_REQUEST_PATH,
      recreation,
      { allowed: false, status: { code: 400, message: expect.stringContaining("web-0") } },
    ],
  ])("the webhooks %s", async (_, path, object, response) => {
    const body = sampleReview(object, ["apps.kruise.io", "v1beta1", `${object.kind.toLowerCase()}s`]);
    expect(await answerTo(path, body)).toMatchObject({ response });
  });

  test("the webhooks convert SidecarSets", async () => {
    const body = JSON.stringify({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "ConversionReview",
      request: { uid: "u", desiredAPIVersion: SIDECARSET_V1ALPHA1, objects: [sidecarSet] },
    });
    const { response } = await answerTo(CONVERT_PATH, body);
    expect(response).toMatchObject({ convertedObjects: [{ apiVersion: SIDECARSET_V1ALPHA1 }] });
  });
});
