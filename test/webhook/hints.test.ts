import { describe, expect, onTestFinished, test } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import type { Admission } from "../../shared/core/admission/admission.ts";
import type { Work } from "../../shared/core/rollout/queue/work.ts";
import { createLog } from "../../shared/log.ts";
import { hints, type Send } from "../../shared/webhook/handlers/hints.ts";
import { startVirtualTime, stopVirtualTime } from "../support/virtual-time.ts";

const ALLOWED: Admission = { kind: "allowed" };
const DENIED: Admission = { kind: "denied", code: 422, reason: "Invalid", message: "no" };

function fixture(send?: Send, names?: readonly string[] | Error) {
  const sent: Work[] = [];
  const lines: string[] = [];
  let [clock, times] = [10_000, 0];
  const { ofSidecarSets, ofPods } = hints({
    send:
      send ??
      (async (work) => {
        times++;
        sent.push(...work);
      }),
    log: createLog("warn", (line) => lines.push(line)),
    now: () => clock,
    ...(names
      ? { sidecarSetNames: async () => (names instanceof Error ? Promise.reject(names) : new Set(names)) }
      : {}),
  });
  return { sent, lines, ofSidecarSets, ofPods, at: (time: number) => (clock = time), times: () => times };
}

const sidecarSet = (hash: string, spec: object = {}, generation = 1) => ({
  metadata: { name: "proxy", generation, annotations: { [HASH_ANNOTATION]: hash } },
  spec,
});
const RESOURCE = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
const created: AdmissionRequest = { uid: "u", resource: RESOURCE, operation: "CREATE", object: sidecarSet("h1") };
const updated = (object: object, more: Partial<AdmissionRequest> = {}): AdmissionRequest => ({
  ...created,
  operation: "UPDATE",
  oldObject: sidecarSet("h1"),
  object,
  ...more,
});
const hint = (hash: string, generation = 1) => ({
  kind: "change",
  sidecarSet: "proxy",
  hash,
  generation,
  request: "u",
});

const relabelled = { ...sidecarSet("h1"), metadata: { ...sidecarSet("h1").metadata, labels: { team: "a" } } };

// A Lambda function freezes after its answer.

test.each(["a SidecarSet", "a pod"])("the answer about %s waits until its hint is sent", async (subject) => {
  const given = Promise.withResolvers<void>();
  let isAnswered = false;
  const { ofSidecarSets, ofPods } = fixture(() => given.promise);
  const metadata = { name: "web", annotations: { [INJECTED_LIST_ANNOTATION]: "proxy" } };
  const admit = subject === "a pod" ? ofPods : ofSidecarSets(() => ALLOWED);
  const answering = Promise.resolve(admit(subject === "a pod" ? updated({ metadata }) : created)).then(() => {
    isAnswered = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isAnswered).toBe(false);
  given.resolve();
  await answering;
});

describe("hints about SidecarSets:", () => {
  test.each<[string, AdmissionRequest, object[]]>([
    ["a creation sends a hint", created, [hint("h1")]],
    ["a change of the hash sends a hint", updated(sidecarSet("h2", {}, 2)), [hint("h2", 2)]],
    ["a change of the spec sends a hint", updated(sidecarSet("h1", { x: 1 }, 2)), [hint("h1", 2)]],
    ["a change of a label sends no hint", updated(relabelled), []],
    ["a dry run sends no hint", updated(sidecarSet("h2"), { dryRun: true }), []],
    ["a deletion sends no hint", { ...created, operation: "DELETE", oldObject: sidecarSet("h1") }, []],
    ["an update without a name sends no hint", updated({ metadata: {}, spec: { x: 1 } }), []],
    ["an update without metadata sends no hint", updated({ spec: { x: 1 } }), []],
    ["a request without an object sends no hint", { ...created, object: null }, []],
    [
      "a creation without a hash and generation sends a hint",
      { ...created, object: { metadata: { name: "proxy" } } },
      [hint("", 0)],
    ],
  ])("for a SidecarSet, %s", async (_, request, expected) => {
    const { sent, times, ofSidecarSets } = fixture();
    expect(await ofSidecarSets(() => ALLOWED)(request)).toBe(ALLOWED);
    expect([sent, times()]).toEqual([expected, expected.length]);
  });

  test("a refused SidecarSet sends no hint", async () => {
    const { sent, ofSidecarSets } = fixture();
    expect(await ofSidecarSets(() => DENIED)(created)).toBe(DENIED);
    expect(sent).toEqual([]);
  });

  test.each<[string, Send]>([
    ["fails", () => Promise.reject(new Error("the queue is gone"))],
    ["never ends", () => new Promise(() => undefined)],
    [
      "throws",
      () => {
        throw new Error("no credentials");
      },
    ],
  ])("a hint that %s is logged, and the decision comes within a second", async (_, send) => {
    const { lines, ofSidecarSets } = fixture(send);
    startVirtualTime();
    onTestFinished(stopVirtualTime);
    const began = performance.now();
    expect(await ofSidecarSets(() => ALLOWED)(created)).toBe(ALLOWED);
    expect(performance.now() - began).toBeLessThanOrEqual(1_000);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: "warn",
        message: expect.stringContaining("no hint was given"),
        error: {
          message: expect.stringMatching(/^the queue is gone|there is no decision after 300 ms|no credentials$/),
        },
      },
    ]);
  });
});

const pod = (list: string, more: Partial<AdmissionRequest> = {}): AdmissionRequest => ({
  uid: "u",
  operation: "UPDATE",
  resource: { group: "", version: "v1", resource: "pods" },
  subResource: "status",
  object: { metadata: { name: "p", annotations: { [INJECTED_LIST_ANNOTATION]: list } } },
  ...more,
});

describe("hints about pods:", () => {
  test.each<[string, AdmissionRequest, string[]]>([
    ["names each SidecarSet once", pod("a,b,a"), ["a", "b"]],
    ["leaves out invalid names", pod(`a,,../x,${"y".repeat(64)}`), ["a"]],
    ["is not sent for a dry run", pod("a", { dryRun: true }), []],
    ["is not sent for a pod without the list of SidecarSets", pod("", { object: { metadata: { name: "p" } } }), []],
    ["is not sent without an object", pod("a", { object: null }), []],
    ["is not sent without metadata", pod("a", { object: {} }), []],
    ["is not sent when the list is not a string", pod(5 as never), []],
    ["names at most twenty SidecarSets", pod(Array.from({ length: 50 }, (_, i) => `s${i}`).join()), range(20)],
  ])("the hint about a pod %s", async (_, request, names) => {
    const { sent, ofPods } = fixture();
    expect(await ofPods(request)).toEqual(ALLOWED);
    expect(sent.map(({ sidecarSet: name }) => name)).toEqual(names);
  });

  const barrier = {
    name: "KRUISE_CONTAINER_BARRIER",
    valueFrom: { configMapKeyRef: { name: "p-barrier", key: "p_1" } },
  };
  const launching = (annotations: object = {}, containers: unknown = [{ name: "a", env: [barrier] }]) =>
    pod("", { object: { metadata: { name: "p", annotations }, spec: { containers } } as KubernetesObject });
  const completed = { "apps.kruise.io/container-launch-priority-completed": "true" };
  test.each<[string, AdmissionRequest, string[]]>([
    ["names the launch order when its containers wait for each other", launching(), ["launch *"]],
    [
      "names the launch order and its SidecarSets",
      launching({ [INJECTED_LIST_ANNOTATION]: "a" }),
      ["launch *", "pods a"],
    ],
    ["is not sent when its launch is complete", launching(completed), []],
    ["is not sent when no container waits", launching({}, [{ name: "a" }]), []],
    ["is not sent when it has no containers", launching({}, null), []],
  ])("the hint about a pod with a launch order %s", async (_, request, expected) => {
    const { sent, ofPods } = fixture();
    expect(await ofPods(request)).toEqual(ALLOWED);
    expect(sent.map(({ kind, sidecarSet: name }) => `${kind} ${name}`)).toEqual(expected);
  });

  test("a hint about the launch order is sent once per half second", async () => {
    const { sent, ofPods, at } = fixture();
    for (let index = 0; index < 50; index++) await ofPods(launching());
    at(10_500);
    await ofPods(launching());
    expect(sent).toMatchObject([{ slot: 20 }, { slot: 21 }]);
  });

  test("a hint about a SidecarSet is sent once per half second", async () => {
    const { sent, ofPods, at } = fixture();
    await Promise.all(Array.from({ length: 50 }, () => ofPods(pod("a"))));
    at(10_500);
    await ofPods(pod("a"));
    expect(sent).toMatchObject([{ slot: 20 }, { slot: 21 }]);
  });

  test("the 1000 SidecarSets with the latest hints are remembered", async () => {
    const { sent, ofPods, at } = fixture();
    const again = async (name: string) => {
      const before = sent.length;
      await ofPods(pod(name, { namespace: "another" }));
      return sent.length > before;
    };
    const names = Array.from({ length: 1_000 }, (_, index) => `s${index}`);
    for (let first = 0; first < 1_000; first += 20)
      await ofPods(pod(names.slice(first, first + 20).join(), { namespace: `of-${first}` }));
    expect([sent.length, await again("s0")]).toEqual([1_000, false]);
    at(10_500);
    expect(await again("s0")).toBe(true);
    at(10_000);
    expect(await again("one-more")).toBe(true);
    expect([await again("s2"), await again("s1")]).toEqual([false, true]);
    at(10_500);
    expect(await again("s0")).toBe(false);
  });
});

describe("limits of hints:", () => {
  test("a pod's hint names only SidecarSets that exist", async () => {
    const { sent, ofPods } = fixture(undefined, ["a", "c"]);
    await ofPods(pod("a,b,c,nobody"));
    expect(sent.map(({ sidecarSet: name }) => name)).toEqual(["a", "c"]);
  });

  test("a pod is admitted without a hint when the names of SidecarSets cannot be read", async () => {
    const { sent, lines, ofPods } = fixture(undefined, new Error("the API server is down"));
    expect(await ofPods(pod("a"))).toEqual(ALLOWED);
    expect([sent, lines.length]).toEqual([[], 1]);
  });

  test("a namespace sends at most 20 messages per half second, and other namespaces still send theirs", async () => {
    const { sent, ofPods, at } = fixture();
    for (let nth = 0; nth < 100; nth++) {
      const names = Array.from({ length: 50 }, (_, index) => `x${nth}-${index}`);
      await ofPods(pod(names.join(), { namespace: "greedy" }));
    }
    expect(sent).toHaveLength(20);
    await ofPods(pod("a,b", { namespace: "modest" }));
    expect(sent.slice(20).map(({ sidecarSet: name }) => name)).toEqual(["a", "b"]);
    at(10_500);
    await ofPods(pod("c", { namespace: "greedy" }));
    expect(sent).toHaveLength(23);
  });

  test("a message that is over the share of one namespace is still sent for another namespace", async () => {
    const { sent, ofPods } = fixture();
    const names = Array.from({ length: 60 }, (_, index) => `s${index}`);
    for (const from of [0, 20, 40]) await ofPods(pod(names.slice(from, from + 20).join(), { namespace: "greedy" }));
    await ofPods(pod("s5,s25,s45", { namespace: "modest" }));
    expect(sent.slice(20).map(({ sidecarSet: name }) => name)).toEqual(["s25", "s45"]);
  });
});

function range(length: number): string[] {
  return Array.from({ length }, (_, index) => `s${index}`);
}
