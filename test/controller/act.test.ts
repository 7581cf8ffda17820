/** Tests the actions of a decision, one at a time. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ControllerRevision, Pod, PodCondition } from "../../shared/api/kubernetes.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { type ActContext, act } from "../../shared/controller/rollout/act.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONTROLLER_REVISIONS, PODS } from "../../shared/kube/port.ts";
import { listedPod } from "../support/objects.ts";
import { bareCluster } from "./bare-cluster.ts";
import { KRUISE_NAMESPACE, sidecarSet, startTestCluster, type TestCluster } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

it("LabelRevision adds the custom version's label to a revision, and RenumberRevision sets its number", async () => {
  const key = { namespace: KRUISE_NAMESPACE, name: "labelled" };
  const made = { metadata: { ...key, labels: { team: "shop" } }, data: {}, revision: 1 };
  await cluster.create<ControllerRevision>(CONTROLLER_REVISIONS, made);
  const context = { cluster, clock: systemClock, sidecarSet: sidecarSet("labelled", 1, {}) };
  await act({ kind: "LabelRevision", ...key, customVersion: "blue" }, context);
  await act({ kind: "RenumberRevision", ...key, revision: 7 }, context);
  const { metadata, revision } = await cluster.get<ControllerRevision>(CONTROLLER_REVISIONS, key);
  expect([metadata?.labels, revision]).toEqual([
    { team: "shop", "apps.kruise.io/sidecarset-custom-version": "blue" },
    7,
  ]);
});

function bare() {
  const stepped = steppedClock();
  const { cluster: store, server } = bareCluster(stepped);
  const context = (through = store): ActContext => ({
    cluster: through,
    clock: stepped.clock,
    sidecarSet: sidecarSet("acted", 1, {}),
  });
  return { cluster: store, server, context };
}

describe("DeleteRevision:", () => {
  const key = { namespace: "shop", name: "old" };
  const stored = () => {
    const on = bare();
    on.server.put("test", CONTROLLER_REVISIONS, { metadata: { ...key, uid: "u" } });
    const { resourceVersion = "" } = on.server.peek(CONTROLLER_REVISIONS, key)?.metadata ?? {};
    const isThere = () => on.server.peek(CONTROLLER_REVISIONS, key) !== undefined;
    return { ...on, resourceVersion, isThere };
  };

  it.each<[string, (version: string) => { readonly uid?: string; readonly resourceVersion?: string }]>([
    ["the same uid and resourceVersion", (resourceVersion) => ({ uid: "u", resourceVersion })],
    ["the same uid", () => ({ uid: "u" })],
    ["the same resourceVersion", (resourceVersion) => ({ resourceVersion })],
    ["neither a uid nor a resourceVersion", () => ({})],
  ])("a revision is deleted when the action names %s", async (_, precondition) => {
    const { context, resourceVersion, isThere } = stored();
    const action = { kind: "DeleteRevision", ...key, ...precondition(resourceVersion) } as const;
    expect(await act(action, context())).toEqual({ kind: "done" });
    expect(isThere()).toBe(false);
  });

  it.each<[string, (version: string) => { readonly uid?: string; readonly resourceVersion?: string }]>([
    ["another uid", (resourceVersion) => ({ uid: "v", resourceVersion })],
    ["another resourceVersion", () => ({ uid: "u", resourceVersion: "1" })],
  ])("a revision is not deleted when the action names %s", async (_, precondition) => {
    const { context, resourceVersion, isThere } = stored();
    const action = { kind: "DeleteRevision", ...key, ...precondition(resourceVersion) } as const;
    expect(await act(action, context())).toMatchObject({ kind: "conflict" });
    expect(isThere()).toBe(true);
  });
});

describe("writes to a pod:", () => {
  const pod = { namespace: "shop", name: "a", uid: "u", resourceVersion: "7" };
  const written = { kind: "PatchPod", purpose: "upgrade", pod, images: [], annotations: {} } as const;
  const patch = { ...written, isFirstAnnotation: true, usesBudget: true };
  const condition: PodCondition = { type: "Mine", status: "True" };
  const resources = [{ index: 0, container: "main", resources: { requests: { cpu: "1" } } }];

  it.each([
    { name: "a pod's images", action: patch, options: { answer: "metadata" } },
    {
      name: "a pod's resources",
      action: { ...patch, resources },
      options: { subresource: "resize", answer: "metadata" },
    },
    {
      name: "a pod's condition",
      action: { kind: "PatchPodCondition", pod, conditions: [], condition } as const,
      options: { subresource: "status", answer: "metadata" },
    },
  ])("a patch of $name uses the right subresource and asks only for the metadata back", async ({ action, options }) => {
    const { cluster: store, context } = bare();
    const asked: unknown[] = [];
    const through: Cluster = {
      ...store,
      patch: (_resource, key, _patch, more) => {
        asked.push([key.name, more]);
        return Promise.resolve({ metadata: pod } as never);
      },
    };
    expect(await act(action, context(through))).toEqual({ kind: "done", object: { metadata: pod } });
    expect(asked).toEqual([["a", options]]);
  });

  it("a patch of a pod's resources leaves its images unchanged", async () => {
    const { cluster: store, server, context } = bare();
    const spec = { containers: [{ name: "main", image: "main:1" }] };
    server.put("test", PODS, listedPod({ namespace: "shop", name: "a", uid: "u" }, spec));
    const { resourceVersion = "" } = server.peek<Pod>(PODS, pod)?.metadata ?? {};
    const sent: unknown[] = [];
    const through: Cluster = {
      ...store,
      patch: (...call) => {
        sent.push(call[2]);
        return store.patch(...call);
      },
    };
    const images = [{ index: 0, container: "main", from: "main:1", to: "main:2" }];
    await act({ ...patch, pod: { ...pod, resourceVersion }, images, resources }, context(through));
    expect(JSON.stringify(sent)).toContain("/resources");
    expect(JSON.stringify(sent)).not.toContain("main:2");
  });
});

describe("outcomes of a write:", () => {
  it.each<[string, ConstructorParameters<typeof KubeError>[1]]>([
    ["gone", { code: 404, reason: "NotFound" }],
    ["conflict", { code: 409, reason: "Conflict" }],
    ["conflict", { code: 422, reason: "Invalid" }],
    ["refused", { code: 403, reason: "Forbidden" }],
    ["refused", { code: 0, reason: "NotSent", isOutcomeKnown: true }],
    ["unknown", { code: 500, reason: "InternalError", isOutcomeKnown: false }],
  ])('the outcome of a write is "%s" when it fails with %j', async (kind, details) => {
    const { cluster: store, context } = bare();
    const error = new KubeError("no", details);
    const through: Cluster = { ...store, create: () => Promise.reject(error) };
    const revision: ControllerRevision = { metadata: { namespace: "shop", name: "new" }, data: {}, revision: 1 };
    expect(await act({ kind: "CreateRevision", revision }, context(through))).toEqual({ kind, error });
  });
});

it("act rethrows an error that does not come from Kubernetes", async () => {
  const { cluster: store, context } = bare();
  const through: Cluster = { ...store, create: () => Promise.reject(new TypeError("a bug")) };
  const revision: ControllerRevision = { metadata: { namespace: "shop", name: "new" }, data: {}, revision: 1 };
  await expect(act({ kind: "CreateRevision", revision }, context(through))).rejects.toThrow("a bug");
});
