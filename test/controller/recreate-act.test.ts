/** Tests writes to a ContainerRecreateRequest or its pod, with and without other people's entries. */
import { expect, it } from "vitest";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  POD_READY_CONDITION,
  RECREATE_ACTIVE_LABEL,
  RECREATE_POD_UID_LABEL,
  UNREADY_ACQUIRED,
} from "../../shared/api/names.ts";
import { actOnRequest, recreateContainers } from "../../shared/controller/container-recreate/recreate-containers.ts";
import { CONTAINER_RECREATE_REQUESTS, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { NAMESPACE } from "./fixture.ts";
import { serviceOf } from "./service.ts";
import { steppedClock } from "./stepped-clock.ts";

it.each([
  ["an ended request is deleted when its uid matches", "uid", []],
  ["a newer request of the same name is not deleted", "of another", ["request"]],
])("%s", async (_, stored, left) => {
  const { cluster, server } = bareCluster(steppedClock());
  const metadata = { namespace: NAMESPACE, name: "request", uid: "uid" };
  const request = { metadata, spec: { podName: "pod", containers: [] } } as ContainerRecreateRequest;
  server.put("test", CONTAINER_RECREATE_REQUESTS, { ...request, metadata: { ...metadata, uid: stored } });
  const deleting = actOnRequest(cluster, { request, pod: undefined }, { kind: "DeleteRequest" });
  if (stored === metadata.uid) expect(await deleting).toBeUndefined();
  else await expect(deleting).rejects.toMatchObject({ code: 409 });
  expect(server.all(CONTAINER_RECREATE_REQUESTS).map((one) => one.metadata?.name)).toEqual(left);
});

type Action = Parameters<typeof actOnRequest>[2];

const KEY = { namespace: NAMESPACE, name: "one" };
const OTHERS = { labels: { team: "shop" }, annotations: { team: "shop" }, finalizers: ["example.com/keep"] };
const READY = { type: "Ready", status: "True" };
const HELD = { type: "KruisePodReady", status: "False" };
const CHANGE = { index: 0, container: "main", from: "main:1", to: "main:2" };
const IMAGES = { kind: "PatchImages", images: [CHANGE], annotations: { mine: "1" } } as const;

/** Returns the entries of a request and its pod before and after an action. */
async function actOn(action: Action, others: Partial<typeof OTHERS>) {
  const { cluster, server, answeredWhole } = bareCluster(steppedClock());
  const spec = { containers: [{ name: "main", image: "main:1" }] };
  const pod = newPod({ ...KEY, uid: "pod", ...others }, spec, { conditions: [READY] });
  const labels = { ...others.labels, [RECREATE_ACTIVE_LABEL]: "true" };
  const finalizers = [...(others.finalizers ?? []), ...(action.kind === "RemoveFinalizer" ? [UNREADY_ACQUIRED] : [])];
  const metadata = { ...KEY, uid: "request", labels, ...(finalizers.length > 0 ? { finalizers } : {}) };
  const status = { phase: "Pending", message: "waits" };
  server.put("test", PODS, pod);
  server.put("test", CONTAINER_RECREATE_REQUESTS, {
    metadata,
    spec: { podName: "one", containers: [] },
    status,
  } as never);
  const look = () => ({
    request: server.peek(CONTAINER_RECREATE_REQUESTS, KEY) as ContainerRecreateRequest,
    pod: server.peek<Pod>(PODS, KEY) as Pod,
  });
  const view = ({ request, pod: { metadata: ofPod, spec: has, status: shown } }: ReturnType<typeof look>) => ({
    finalizers: request.metadata?.finalizers ?? [],
    labels: request.metadata?.labels,
    status: request.status,
    annotations: ofPod?.annotations ?? {},
    image: has.containers[0]?.image,
    conditions: shown?.conditions,
  });
  const before = look();
  const subject = await actOnRequest(cluster, before, action);
  return { before: view(before), after: view(look()), subject, look: look(), answeredWhole };
}

it.each<[string, Action, (others: Partial<typeof OTHERS>) => object]>([
  [
    "AddFinalizer",
    { kind: "AddFinalizer" },
    ({ finalizers = [] }) => ({ finalizers: [...finalizers, UNREADY_ACQUIRED] }),
  ],
  ["RemoveFinalizer", { kind: "RemoveFinalizer" }, ({ finalizers = [] }) => ({ finalizers })],
  ["Deactivate", { kind: "Deactivate" }, ({ labels = {} }) => ({ labels })],
  [
    "PatchRequestStatus",
    { kind: "PatchRequestStatus", status: { phase: "Recreating" } },
    () => ({ status: { phase: "Recreating" } }),
  ],
  [
    "PatchPodConditions",
    { kind: "PatchPodConditions", conditions: [READY, HELD] },
    () => ({ conditions: [HELD, READY] }),
  ],
  ["PatchImages", IMAGES, ({ annotations }) => ({ image: "main:2", annotations: { ...annotations, mine: "1" } })],
])("%s changes its own entry and no other entry", async (kind, action, change) => {
  for (const others of [OTHERS, {}]) {
    const { before, after, subject, look, answeredWhole } = await actOn(action, others);
    expect(after).toEqual({ ...before, ...change(others) });
    expect(subject?.request).toEqual(look.request);
    // The next action reads the pod that a write of its conditions returned.
    if (kind === "PatchPodConditions") expect(subject?.pod).toEqual(look.pod);
    expect(answeredWhole).toHaveLength(kind === "PatchImages" ? 0 : 1);
  }
});

it.each<[Action]>([[IMAGES], [{ kind: "PatchPodConditions", conditions: [HELD] }]])(
  "$kind writes nothing when the pod is gone",
  async (action) => {
    const { cluster, calls } = bareCluster(steppedClock());
    const request = { metadata: KEY, spec: { podName: "one", containers: [] } } as ContainerRecreateRequest;
    await actOnRequest(cluster, { request, pod: undefined }, action);
    expect(calls).toEqual([]);
  },
);

it("a write of conditions sends only the changed ones", async () => {
  const { cluster } = bareCluster(steppedClock());
  const sent: unknown[] = [];
  const recording = {
    ...cluster,
    patch: async (...[, , patch]: Parameters<typeof cluster.patch>) => void sent.push(patch),
  };
  const pod = newPod({ ...KEY, uid: "pod", resourceVersion: "7" }, undefined, { conditions: [READY] });
  const request = { metadata: KEY, spec: { podName: "one", containers: [] } } as ContainerRecreateRequest;
  const action = { kind: "PatchPodConditions", conditions: [READY, HELD] } as const;
  await actOnRequest(recording as never, { request, pod }, action);
  const metadata = { uid: "pod", resourceVersion: "7" };
  expect(sent).toEqual([{ type: "strategic", body: { metadata, status: { conditions: [HELD] } } }]);
});

interface Asked {
  readonly name: string;
  readonly pod?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly strategy?: object;
}

const DIGEST = `nginx@sha256:${"1".repeat(64)}`;

/** Serves new requests for the containers "a" and "b" once. */
async function serve(asked: readonly Asked[], isDryRun: boolean, refuse?: Refuse) {
  const stepped = steppedClock();
  const { cluster, server } = bareCluster(stepped, refuse);
  const creationTimestamp = new Date(stepped.clock.epochMs() - 10_000).toISOString().replace(/\.\d+/, "");
  const one = { imageID: DIGEST, containerID: "cri://1", restartCount: 0, ready: true };
  const state = { running: { startedAt: "2026-01-01T00:00:00Z" } };
  const statuses = ["a", "b"].map((name) => ({ name, image: `nginx:${name}`, ...one, state }));
  const containers = statuses.map(({ name }) => ({ name, statusContext: { containerID: "cri://1", restartCount: 0 } }));
  for (const { name, pod = name, labels, strategy = {} } of asked) {
    const spec = {
      containers: statuses.map(({ name: container, image }) => ({ name: container, image })),
      readinessGates: [{ conditionType: POD_READY_CONDITION }],
    };
    const ofPod = { namespace: NAMESPACE, name: pod, uid: `uid of ${pod}` };
    server.put("test", PODS, newPod(ofPod, spec, { phase: "Running", containerStatuses: statuses }));
    server.put("test", CONTAINER_RECREATE_REQUESTS, {
      metadata: {
        ...{ namespace: NAMESPACE, name, uid: name, creationTimestamp },
        labels: labels ?? { [RECREATE_POD_UID_LABEL]: ofPod.uid },
      },
      spec: { podName: pod, containers, strategy },
    } as never);
  }
  const service = serviceOf(cluster, { clock: stepped.clock, isDryRun, isFollowing: false });
  return { report: await recreateContainers(service), problems: service.problems, server };
}

const NOTHING_DONE = { requests: 0, recreated: 0, completed: 0, waiting: 0 };
const UNADMITTED =
  "this request was stored without its webhook, so it names no pod by uid: register the webhook and create another one";

it("a dry run names the images that it would write, the pod that it would hold, and the request that waits", async () => {
  const { report, problems, server } = await serve(
    [
      { name: "planned-1", pod: "planned" },
      { name: "planned-2", pod: "planned" },
      { name: "planned-3", labels: {} },
      { name: "graceful", strategy: { unreadyGracePeriodSeconds: 30 } },
    ],
    true,
  );
  const planned = [
    `planned-1: a nginx:a → nginx:a@${DIGEST.split("@")[1]}, b nginx:b → nginx:b@${DIGEST.split("@")[1]}`,
    "planned-1: phase Recreating",
    `planned-3: phase Completed, ${UNADMITTED}`,
    "graceful: AddFinalizer",
    "graceful: set the readiness of pod graceful",
    "graceful: phase Recreating",
    "planned-2 waits for another request for the same pod",
  ].map((text) => `ContainerRecreateRequest shop/${text}`);
  expect({ ...report, planned: [...(report?.planned ?? [])].sort() }).toEqual({
    ...NOTHING_DONE,
    planned: planned.sort(),
  });
  expect(problems).toEqual([]);
  expect(server.all<ContainerRecreateRequest>(CONTAINER_RECREATE_REQUESTS).map(({ status }) => status)).toEqual(
    Array.from({ length: 4 }),
  );
});

it.each<[string, number, readonly string[]]>([
  [
    "forbidden",
    403,
    ["ContainerRecreateRequest shop/forbidden: no; infra/rbac/optional/container-recreate.yaml grants what is missing"],
  ],
  ["broken", 500, ["ContainerRecreateRequest shop/broken: no"]],
  ["gone", 404, []],
  ["changed", 409, []],
])(
  "a pass reports a failed write to a pod, unless the pod is gone or has changed: pod %s",
  async (name, code, expected) => {
    const refuse: Refuse = (call) => (call === "PATCH pods" ? refusal(code, "no") : undefined);
    const { report, problems } = await serve([{ name }], false, refuse);
    expect(problems).toEqual(expected);
    expect(report).toEqual({ ...NOTHING_DONE, requests: 1 });
  },
);
