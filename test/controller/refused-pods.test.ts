/**
 * Tests an API server that refuses writes to one pod: the other pods are updated, and the next pass knows of the
 * refusal.
 */
import { expect, it } from "vitest";
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import type { UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { noteAcceptedPod, noteVague } from "../../shared/controller/rollout/refused-pods.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONFIG_MAPS, NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { refusal } from "./bare-cluster.ts";
import { bareRollout, running } from "./bare-rollout.ts";
import { injectedPod, KRUISE_NAMESPACE, NAMESPACE } from "./fixture.ts";
import { sharedClock, steppedClock } from "./stepped-clock.ts";

const WORDS = "metadata.annotations: Too long: may not be more than 262144 bytes";
const TOO_LONG = refusal(422, WORDS);

interface Wanted {
  readonly pods: number;
  readonly maxUnavailable?: number | string;
  /** returns an error that replaces the answer to a write; `call`: such as "pods" or "pods/status" */
  readonly answer: (call: string, name: string) => KubeError | undefined;
  readonly partition?: number;
  /** milliseconds until the server sends the error; absent: no wait */
  readonly waitMs?: number;
}

/** Releases version 2 on ready pods, with a kubelet that makes updated pods ready at once. */
function world({ pods, maxUnavailable = 1, answer, partition, waitMs = 0 }: Wanted) {
  const on = bareRollout("web", undefined, { ...steppedClock(), ...sharedClock() });
  on.server.put("test", NAMESPACES, { metadata: { name: "default", uid: "default" } });
  const strategy = { maxUnavailable, ...(partition === undefined ? {} : { partition }) };
  on.deploy(pods, strategy);
  on.release(2, strategy);
  const sent: string[] = [];
  const settle = (key: { readonly namespace?: string; readonly name: string }) => {
    const pod = on.server.peek<Pod>(PODS, key);
    if (pod) on.server.put("kubelet", PODS, running(pod));
  };
  const late = async (error: KubeError): Promise<never> => {
    if (waitMs > 0) await on.clock.sleep(waitMs);
    throw error;
  };
  const patch: Cluster["patch"] = async (resource, key, body, options) => {
    if (resource !== PODS) return await on.cluster.patch(resource, key, body, options);
    const call = `pods${options?.subresource ? `/${options.subresource}` : ""}`;
    const instead = answer(call, key.name);
    if (call === "pods") sent.push(key.name);
    if (instead) return await late(instead);
    const answered = await on.cluster.patch(resource, key, body, options);
    if (call === "pods") settle(key);
    return answered as never;
  };
  const cluster: Cluster = { ...on.cluster, patch };
  const pass = (sleepMs = 60_000) =>
    on.clock.sleep(sleepMs).then(() =>
      runPass(cluster, {
        deadlineMs: 55_000,
        kruiseNamespace: KRUISE_NAMESPACE,
        sidecarSet: "web",
        follow: true,
        settings: DEFAULT_ROLLOUT_SETTINGS,
        clock: on.clock,
        memory: newPassMemory(),
      }),
    );
  const ledger = () =>
    on.server.peek<ConfigMap>(CONFIG_MAPS, { namespace: KRUISE_NAMESPACE, name: "sidecarset-ledger-web" })?.data ?? {};
  const condition = (type: string) => {
    const found = on.readSet().status?.conditions?.find((one) => one.type === type);
    return `${found?.status} ${found?.reason} ${found?.message}`;
  };
  return { ...on, pass, ledger, condition, sent, strategy };
}

const refusing =
  (error: KubeError, ...names: readonly string[]) =>
  (call: string, name: string) =>
    call === "pods" && names.includes(name) ? error : undefined;

it.each([400, 403, 409, 413, 422])(
  "with maxUnavailable 1 the first pass updates all other pods although each patch of one pod is answered with %i",
  async (code) => {
    const { pass, versions, ledger } = world({ pods: 4, answer: refusing(refusal(code, WORDS), "web-0") });
    const report = await pass();
    expect(versions()).toBe("1 2 2 2");
    expect(ledger()["reservations"]).toBe("");
    expect(report.sidecarSets[0]?.tally.problems).toContainEqual({
      namespace: NAMESPACE,
      name: "web-0",
      message: WORDS,
    });
  },
);

it("the status names a refusing pod and the API server's message, and is Blocked when only that pod is left", async () => {
  const { pass, condition } = world({ pods: 4, answer: refusing(TOO_LONG, "web-0") });
  await pass();
  expect(condition("Blocked")).toBe(`False Refused the API server refuses to change pod shop/web-0: ${WORDS}`);
  await pass();
  expect(condition("Blocked")).toBe(`True Refused the API server refuses to change pod shop/web-0: ${WORDS}`);
  expect(condition("Ready")).toMatch(/^False Blocked/);
});

it.each([409, 500])(
  "if a pod's webhook takes ten seconds to answer %i, later passes try it at most three times, and the fifth is Blocked",
  async (code) => {
    const answer = refusing(refusal(code, WORDS), "web-0");
    const { pass, sent, condition } = world({ pods: 2, answer, waitMs: 10_000 });
    await pass();
    await pass();
    const tries: number[] = [];
    for (let index = 0; index < 3; index++) {
      const before = sent.length;
      await pass();
      tries.push(sent.length - before);
    }
    expect(Math.max(...tries)).toBeLessThanOrEqual(3);
    expect(condition("Blocked")).toMatch(/^True Refused/);
  },
);

it("a rollback of all other pods continues although one pod refuses every write", async () => {
  const { pass, versions, release, readSet, strategy } = world({
    pods: 4,
    maxUnavailable: "100%",
    answer: (_, name) => (name === "web-0" ? TOO_LONG : undefined),
  });
  await pass();
  expect(versions()).toBe("1 2 2 2");
  release(3, strategy);
  await pass();
  expect(versions()).toBe("1 3 3 3");
  expect(readSet().status?.observedGeneration).toBe(readSet().metadata?.generation);
});

it("passes of new processes retry a refusing pod less and less often", async () => {
  const { pass, sent } = world({ pods: 1, answer: refusing(TOO_LONG, "web-0") });
  const tries: number[] = [];
  for (let index = 0; index < 16; index++) {
    const before = sent.length;
    await pass();
    tries.push(sent.length - before);
  }
  expect(tries).toEqual([4, 1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]);
});

it("a change of the SidecarSet is tried at once on a refusing pod", async () => {
  const { pass, sent, release, strategy } = world({ pods: 1, answer: refusing(TOO_LONG, "web-0") });
  for (let index = 0; index < 8; index++) await pass();
  const before = sent.length;
  release(3, strategy);
  await pass(0);
  expect(sent.length - before).toBe(4);
});

it("the ledger forgets a refusing pod once a write to it is accepted", async () => {
  let isRefusing = true;
  const { pass, versions, ledger, condition } = world({
    pods: 2,
    answer: (call) => (isRefusing && call === "pods" ? TOO_LONG : undefined),
  });
  await pass();
  expect(ledger()["refused"]).toMatch(/^shop\/web-\d uid-web-\d 4 \S+Z metadata.annotations/);
  isRefusing = false;
  await pass();
  expect([versions(), ledger()["refused"]]).toEqual(["2 2", undefined]);
  expect(condition("Blocked")).toMatch(/^False NotBlocked/);
});

it("five refusing pods of one namespace keep its other pods waiting, and pods of other namespaces are updated", async () => {
  const on = world({
    pods: 40,
    answer: (call, name) => (call === "pods" && name.startsWith("web-") ? TOO_LONG : undefined),
  });
  on.server.put("test", NAMESPACES, { metadata: { name: "victim", uid: "victim" } });
  for (const name of ["v-0", "v-1"]) {
    const { metadata, ...pod } = injectedPod("web", name);
    on.server.put("test", PODS, running({ ...pod, metadata: { ...metadata, namespace: "victim", uid: name } }));
  }
  await on.pass();
  expect(new Set(on.sent.filter((name) => name.startsWith("web-"))).size).toBe(5);
  const victims = ["v-0", "v-1"].map((name) => on.server.peek<Pod>(PODS, { namespace: "victim", name }));
  expect(victims.map((pod) => pod?.spec.containers[1]?.image?.split(":")[1])).toEqual(["2", "2"]);
});

it("a pod whose webhook cannot be called is fenced in its status and skipped, and does not hold the others", async () => {
  const broken = new KubeError('failed calling webhook "tenant.example.com"', { code: 500, reason: "InternalError" });
  const { pass, versions, ledger, readPod } = world({ pods: 4, answer: refusing(broken, "web-0") });
  await pass();
  expect(versions()).toBe("1 2 2 2");
  expect(ledger()["reservations"]).toBe("");
  expect(readPod(0).status?.conditions?.map(({ type }) => type)).toContain("sidecarset.kruise.io/fence");
});

it.each([409, 500])(
  "a pod whose write is answered with %i twice and then accepted is updated by that pass and not reported",
  async (code) => {
    let answers = 0;
    const failed = new KubeError("failed", { code, reason: "Failed" });
    const isFailing = (call: string, name: string) => call === "pods" && name === "web-0" && answers++ < 2;
    const { pass, versions, sent } = world({
      pods: 2,
      answer: (call, name) => (isFailing(call, name) ? failed : undefined),
    });
    const { sidecarSets } = await pass();
    expect([versions(), sent.filter((name) => name === "web-0").length]).toEqual(["2 2", 3]);
    expect(sidecarSets[0]?.tally.problems).toEqual([]);
  },
);

it.each([501, 502, 503, 504, 599])(
  "a webhook that denies all writes to one pod with %i, also to its status, does not hold the others",
  async (code) => {
    const denied = new KubeError('admission webhook "tenant.example.com" denied the request: no', {
      code,
      reason: "No",
    });
    const { pass, versions, ledger } = world({
      pods: 4,
      answer: (_call, name) => (name === "web-0" ? denied : undefined),
    });
    await pass();
    expect([versions(), ledger()["reservations"]]).toEqual(["1 2 2 2", ""]);
  },
);

it("a pod whose patch times out in its webhook waits for at least a minute and does not hold the others", async () => {
  const slow = new KubeError("no answer within 30000 ms", { code: 0, reason: "Timeout", isOutcomeKnown: false });
  const { pass, versions, ledger, sent, condition } = world({ pods: 4, answer: refusing(slow, "web-0") });
  await pass();
  expect([versions(), ledger()["reservations"]]).toEqual(["1 2 2 2", ""]);
  expect(sent.filter((name) => name === "web-0")).toHaveLength(1);
  expect(condition("Blocked")).toContain("shop/web-0: no answer within 30000 ms");
});

it("a pod whose patch had no answer, and whose status refuses the fence, is fenced by its annotation", async () => {
  const slow = new KubeError("no answer within 30000 ms", { code: 0, reason: "Timeout", isOutcomeKnown: false });
  let patches = 0;
  const { pass, versions, ledger } = world({
    pods: 3,
    answer: (call, name) => {
      if (name !== "web-0") return undefined;
      if (call === "pods/status") return refusal(403, WORDS);
      return patches++ === 0 ? slow : undefined;
    },
  });
  await pass();
  expect(ledger()["reservations"]).not.toContain("web-0");
  expect(versions()).toMatch(/ 2 2$/);
});

it("a webhook that answers 429 for one pod delays no other pod", async () => {
  const busy = new KubeError('admission webhook "tenant.example.com" denied the request: later', {
    code: 429,
    reason: "TooManyRequests",
    retryAfterSeconds: 5,
  });
  const { pass, versions, clock } = world({ pods: 4, answer: refusing(busy, "web-0") });
  const beganAtMs = clock.now() + 60_000;
  await pass();
  expect(versions()).toBe("1 2 2 2");
  expect(clock.now() - beganAtMs).toBeLessThan(20_000);
});

it("a refusing pod keeps its place in the partition, so that no other pod is updated instead", async () => {
  const { pass, versions } = world({ pods: 4, partition: 2, answer: refusing(TOO_LONG, "web-0") });
  await pass();
  await pass();
  expect(
    versions()
      .split(" ")
      .filter((version) => version === "2"),
  ).toHaveLength(1);
});

function addLabel({ server, readPod }: ReturnType<typeof world>, label: string, index = 0): void {
  const { metadata, ...pod } = readPod(index);
  server.put("somebody", PODS, { ...pod, metadata: { ...metadata, labels: { ...metadata?.labels, [label]: "1" } } });
}

/**
 * Prepares pods of which one refuses every write, and was reserved by a pass that has ended. Then version 3 is
 * released.
 */
function reservedByDeadPass(wanted: Omit<Wanted, "answer">, next: UpdateStrategy = {}, index = 0) {
  const stuck = `web-${index}`;
  const on = world({ ...wanted, answer: (_, name) => (name === stuck ? TOO_LONG : undefined) });
  addLabel(on, "first", index);
  const { resourceVersion = "" } = on.readPod(index).metadata ?? {};
  const line = `shop/${stuck} uid-${stuck} ${resourceVersion} 1 older\n`;
  on.server.put("test", CONFIG_MAPS, {
    metadata: { namespace: KRUISE_NAMESPACE, name: "sidecarset-ledger-web" },
    data: { sidecarSetUID: "uid-web", generation: "2", reservations: line },
  } as ConfigMap);
  on.release(3, { ...on.strategy, ...next });
  return on;
}

const updatedOf = (versions: string) => versions.split(" ").filter((version) => version === "3").length;

it("a reserved pod that refuses both fences of a later pass takes one place of maxUnavailable, and the others are updated", async () => {
  const { pass, versions, ledger, condition, readSet } = reservedByDeadPass({ pods: 30, maxUnavailable: 2 });
  await pass();
  await pass();
  expect([updatedOf(versions()), ledger()["reservations"]?.split(" ")[0]]).toEqual([29, "shop/web-0"]);
  expect(condition("Blocked")).toContain("pod shop/web-0");
  expect(readSet().status?.observedGeneration).not.toBe(readSet().metadata?.generation);
});

it("a reserved pod that refuses both fences of a later pass takes a place in the partition", async () => {
  const { pass, versions } = reservedByDeadPass({ pods: 30, maxUnavailable: 2, partition: 20 }, {}, 29);
  await pass();
  await pass();
  expect(updatedOf(versions())).toBe(9);
});

it("no other pod is updated while a reserved pod refuses both fences of a later pass and the new spec excludes it", async () => {
  const others = { matchExpressions: [{ key: "first", operator: "DoesNotExist" }] } as const;
  const { pass, versions } = reservedByDeadPass({ pods: 3, maxUnavailable: 2 }, { selector: others });
  await pass();
  expect(versions()).toBe("1 1 1");
});

it("with maxUnavailable 1, no other pod is updated while a reserved pod refuses both fences and nobody writes to it", async () => {
  const on = reservedByDeadPass({ pods: 3 });
  const { pass, versions, ledger, condition } = on;
  await pass();
  await pass();
  expect([versions(), ledger()["reservations"]?.split(" ")[0]]).toEqual(["1 1 1", "shop/web-0"]);
  expect(condition("Blocked")).toContain("pod shop/web-0");
  addLabel(on, "touched");
  await pass();
  expect(versions()).toBe("1 3 3");
});

it("refusals without a clear reason count only in a row: an accepted write resets the count", () => {
  const rollout = {} as Parameters<typeof noteVague>[0];
  const pod = { uid: "u" } as Parameters<typeof noteVague>[1];
  expect([noteVague(rollout, pod), noteVague(rollout, pod)]).toEqual([1, 2]);
  noteAcceptedPod(rollout, pod);
  expect(noteVague(rollout, pod)).toBe(1);
});
