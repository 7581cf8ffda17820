/** Tests how the sidecars of finished jobs end: the calls, the Events, and how long a pass looks for more jobs. */
import { expect, it } from "vitest";
import type { EnvVar, KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { FENCE_ANNOTATION } from "../../shared/api/names.ts";
import type { Service } from "../../shared/controller/rollout/service.ts";
import { terminateSidecars } from "../../shared/controller/sidecar-terminator/terminate-sidecars.ts";
import { EVENTS, NODES, PODS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { NAMESPACE } from "./fixture.ts";
import { serviceOf } from "./service.ts";
import { steppedClock } from "./stepped-clock.ts";

const NORMAL = { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", value: "true" };
const IGNORING = { name: "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE", value: "true" };
const BY_IMAGE = { name: "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", value: "exit:1" };

interface Told extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTimestamp?: string;
  readonly involvedObject?: object;
}

const BEGAN_AT = Date.UTC(2026, 0, 10);
const keyOf = (name: string) => ({ namespace: NAMESPACE, name });

/** Prepares a cluster with one node. */
function stage(refuse?: Refuse, more: Partial<Service> = {}) {
  const stepped = steppedClock();
  stepped.beginAt(BEGAN_AT);
  const bare = bareCluster(stepped, refuse);
  bare.server.put("test", NODES, { metadata: { name: "node", uid: "node" } });
  const service = serviceOf(bare.cluster, { clock: stepped.clock, isFollowing: false, ...more });
  /** Creates a pod of a Job whose own container has finished, and whose sidecars run. */
  const deployJob = (
    name: string,
    means: readonly EnvVar[],
    sidecars: readonly string[] = ["proxy"],
    nodeName = "node",
  ) => {
    const containers = ["job", ...sidecars].map((one) => ({
      ...{ name: one, image: `${one}:1` },
      ...(one === "job" ? {} : { env: [NORMAL, ...means] }),
    }));
    const containerStatuses = containers.map(({ name: one, image }) => {
      const state = one === "job" ? { terminated: { exitCode: 0 } } : { running: {} };
      return { name: one, image, imageID: "", ready: one !== "job", restartCount: 0, state };
    });
    const metadata = { ...keyOf(name), uid: `uid-${name}`, annotations: { team: "shop" } };
    const pod = newPod(metadata, { restartPolicy: "Never", nodeName, containers });
    bare.server.put("test", PODS, { ...pod, status: { phase: "Running", containerStatuses } } as Pod);
  };
  const terminate = async (served: AbortSignal = AbortSignal.abort()) => {
    const report = await terminateSidecars(service, served);
    return { report, problems: service.problems };
  };
  const readPod = (name: string) => bare.server.peek<Pod>(PODS, keyOf(name)) as Pod;
  const told = () =>
    bare.server.all<Told>(EVENTS).map(({ type, reason, message, lastTimestamp, involvedObject }) => ({
      ...{ type, reason, message, lastTimestamp, involvedObject },
    }));
  const writes = () => bare.calls.map(([, call]) => call).filter((call) => call.startsWith("PATCH"));
  return { ...stepped, ...bare, deployJob, terminate, readPod, told, writes };
}

const NONE = { finished: 0, swapped: 0, left: 0 };
const event = (pod: string, type: string, message: string) => ({
  ...{ type, reason: "SidecarTerminator", message, lastTimestamp: "2026-01-10T00:00:00Z" },
  involvedObject: { apiVersion: "v1", kind: "Pod", ...keyOf(pod), uid: `uid-${pod}` },
});
const PREFIX = "SidecarTerminator ended the sidecars of a job that is done, using";

it("a sidecar that names an image that exits gets that image", async () => {
  const { deployJob, terminate, readPod, told, writes, answeredWhole } = stage();
  deployJob("swapped", [BY_IMAGE]);
  expect(await terminate()).toEqual({ report: { ...NONE, swapped: 1 }, problems: [] });
  expect(readPod("swapped").spec.containers.map(({ image }) => image)).toEqual(["job:1", "exit:1"]);
  expect(readPod("swapped").metadata?.annotations).toEqual({ team: "shop" });
  expect(told()).toEqual([event("swapped", "Normal", `${PREFIX} in-place update`)]);
  expect([writes(), answeredWhole]).toEqual([["PATCH pods"], []]);
});

it("a sidecar whose exit code is ignored is terminated by the pod's phase, with a fence in the same write", async () => {
  const { deployJob, terminate, readPod, told } = stage();
  deployJob("done", [IGNORING]);
  const { resourceVersion } = readPod("done").metadata ?? {};
  expect(await terminate()).toEqual({ report: { ...NONE, finished: 1 }, problems: [] });
  const { metadata, status } = readPod("done");
  expect(status).toMatchObject({ phase: "Succeeded", conditions: [{ type: "SidecarTerminated", status: "True" }] });
  expect(metadata?.annotations).toEqual({ team: "shop", [FENCE_ANNOTATION]: resourceVersion });
  expect(told()).toEqual([event("done", "Normal", `${PREFIX} the phase of the pod, Succeeded`)]);
});

it("a sidecar that can only end together with its pod is left running, with one Event per pass", async () => {
  const served = new AbortController();
  const on = stage(undefined, { isFollowing: true });
  on.deployJob("held", [], ["proxy", "agent"]);
  on.plan(9_000, () => served.abort());
  expect(await on.terminate(served.signal)).toEqual({ report: { ...NONE, left: 1 }, problems: [] });
  const why =
    "sidecar [proxy agent] keeps a job that is done from its end: give it KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE or KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE, or make it a native sidecar";
  expect(on.told()).toEqual([event("held", "Warning", why)]);
  expect(on.calls.filter(([, call]) => call.endsWith(" events"))).toEqual([[0, "CREATE events"]]);
  expect(on.writes()).toEqual([]);
});

it("each pod with sidecars that are left running has its own Event", async () => {
  const { deployJob, terminate, told } = stage();
  deployJob("one", []);
  deployJob("other", []);
  expect(await terminate()).toEqual({ report: { ...NONE, left: 2 }, problems: [] });
  expect(told()).toMatchObject(["one", "other"].map((name) => ({ involvedObject: { name } })));
});

it("a dry run plans the termination of sidecars and writes nothing", async () => {
  const { deployJob, terminate, told, writes } = stage(undefined, { isDryRun: true, isFollowing: true });
  deployJob("planned", [BY_IMAGE]);
  deployJob("held", []);
  deployJob("nowhere", [BY_IMAGE], ["proxy"], "absent");
  const planned = ["end the sidecars of pod shop/planned"];
  expect(await terminate(new AbortController().signal)).toEqual({ report: { ...NONE, planned }, problems: [] });
  expect([told(), writes()]).toEqual([[], []]);
});

it("a pass reports that listing jobs is forbidden", async () => {
  const { terminate } = stage((call) => (call === "LIST pods" ? refusal(403, "no") : undefined));
  expect(await terminate()).toEqual({ report: NONE, problems: ["sidecars of jobs are not ended: no"] });
});

it("a pass does not terminate sidecars on a missing node and reports the node", async () => {
  const { deployJob, terminate, writes } = stage();
  deployJob("nowhere", [BY_IMAGE], ["proxy"], "absent");
  const problems = ['sidecars of job pods such as shop/nowhere: nodes "absent" not found'];
  expect(await terminate()).toEqual({ report: NONE, problems });
  expect(writes()).toEqual([]);
});

it.each<[number, readonly string[]]>([
  [404, []],
  [409, []],
  [422, []],
  [
    403,
    ["sidecars of job pods such as shop/one: no; infra/rbac/optional/sidecar-terminator.yaml grants what is missing"],
  ],
  [500, ["sidecars of job pods such as shop/one: no"]],
])(
  "a write that is answered by %i terminates no sidecar, and the next pod's sidecar is terminated",
  async (code, problems) => {
    const { deployJob, terminate, told } = stage((call, nth) =>
      call.startsWith("PATCH pods") && nth === 1 ? refusal(code, "no") : undefined,
    );
    deployJob("one", [BY_IMAGE]);
    deployJob("two", [BY_IMAGE]);
    expect(await terminate()).toEqual({ report: { ...NONE, swapped: 1 }, problems });
    expect(told()).toEqual([event("two", "Normal", `${PREFIX} in-place update`)]);
  },
);

it("a sidecar is not terminated when its pod has changed since the list", async () => {
  const on = stage((call) => {
    if (call === "GET nodes") on.server.put("test", PODS, on.readPod("changed"));
    return undefined;
  });
  on.deployJob("changed", [IGNORING]);
  expect(await on.terminate()).toEqual({ report: NONE, problems: [] });
  expect(on.readPod("changed").status?.phase).toBe("Running");
});

it.each([
  [true, [0, 5_000, 10_000]],
  [false, [0]],
])("a pass looks for jobs every five seconds only if it follows, here %s", async (isFollowing, looks) => {
  const served = new AbortController();
  const { plan, terminate, calls, lists } = stage(undefined, { isFollowing });
  plan(12_000, () => served.abort());
  expect((await terminate(served.signal)).report).toEqual(NONE);
  expect(calls).toEqual(looks.map((atMs) => [atMs, "LIST pods"]));
  for (const { fieldSelector } of lists) expect(fieldSelector).toBe("spec.restartPolicy!=Always,status.phase=Running");
});

it("a pod whose writes are refused is tried less and less often, until a write succeeds", async () => {
  const served = new AbortController();
  const refuse: Refuse = (call, nth) => (call.startsWith("PATCH pods") && nth !== 6 ? refusal(409, "no") : undefined);
  const on = stage(refuse, { isFollowing: true });
  on.deployJob("refused", [BY_IMAGE]);
  on.plan(46_000, () => on.deployJob("refused", [BY_IMAGE]));
  on.plan(62_000, () => served.abort());
  await on.terminate(served.signal);
  const tries = on.calls.filter(([, call]) => call.startsWith("PATCH")).map(([atMs]) => atMs);
  expect(tries).toEqual([0, 5_000, 10_000, 15_000, 25_000, 45_000, 50_000, 55_000, 60_000]);
});

it("a namespace in which twenty writes are refused waits for the next round, and other namespaces do not wait", async () => {
  const triesOf = async (refuse: Refuse) => {
    const on = stage(refuse);
    for (let n = 0; n < 40; n++) on.deployJob(`job-${n}`, [BY_IMAGE]);
    await on.terminate();
    return on.writes().length;
  };
  expect(await triesOf(() => undefined)).toBe(40);
  // Sixteen calls run at once, so some of the first namespace have started when the twentieth is refused.
  const tries = await triesOf((call) => (call.startsWith("PATCH pods") ? refusal(409, "no") : undefined));
  expect(tries).toBeGreaterThanOrEqual(20);
  expect(tries).toBeLessThan(40);
});

it("a job pod that is too large to keep is left out, with a problem that names it", async () => {
  const { deployJob, terminate, writes } = stage();
  deployJob("large", [{ ...BY_IMAGE, value: "i".repeat(70_000) }]);
  const { problems } = await terminate();
  expect(problems).toEqual([expect.stringMatching(/^job pod shop\/large is left out: /)]);
  expect(writes()).toEqual([]);
});
