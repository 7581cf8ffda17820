import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { Admission } from "../../shared/core/admission/admission.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, type JsonPatchOperation, type Patch, PODS } from "../../shared/kube/port.ts";
import { announcing } from "../../shared/webhook/handlers/announce.ts";
import type { Admit } from "../../shared/webhook/review/app.ts";
import { ANNOUNCE_WAIT_MS, LEASE_MS, MAX_ANNOUNCEMENTS, readNotice } from "../../shared/webhook/view/announcements.ts";
import { Breaker, patientConnect } from "../../shared/webhook/view/fresh.ts";

/** A ConfigMap, as an API server stores it. */
let stored: { metadata: { uid: string; resourceVersion: string }; data?: Record<string, string> } | undefined;
let failures: KubeError[];
let slept: number[];
let patches: number;
const cluster = {
  get: async () => {
    if (stored === undefined) throw new KubeError("not found", { code: 404, reason: "NotFound" });
    return structuredClone(stored);
  },
  patch: async (_: unknown, __: unknown, { operations }: Extract<Patch, { type: "json" }>) => {
    patches++;
    const failure = failures.shift();
    if (failure) throw failure;
    const [test, add] = operations as readonly Exclude<JsonPatchOperation, { op: "remove" }>[];
    if (test?.value !== stored?.metadata.resourceVersion) throw new KubeError("no", { code: 422, reason: "Invalid" });
    const resourceVersion = String(Number(stored?.metadata.resourceVersion) + 1);
    stored = { metadata: { uid: "u", resourceVersion }, data: add?.value as Record<string, string> };
    return {};
  },
} as unknown as Cluster;

const admitAs = (admission: Admission) =>
  announcing({
    connect: async () => cluster,
    kruiseNamespace: "kruise-system",
    now: () => 1_000,
    sleep: async (ms) => void slept.push(ms),
    random: () => 0.5,
  })(() => admission);
let admit: Admit;

beforeEach(() => {
  stored = { metadata: { uid: "u", resourceVersion: "9" } };
  [failures, slept, patches] = [[], [], 0];
  admit = admitAs({ kind: "allowed" });
});

const object = (resourceVersion: string | undefined, image: string): KubernetesObject => ({
  metadata: { name: "web", uid: "set-1", ...(resourceVersion === undefined ? {} : { resourceVersion }) },
  ...{ spec: { image } },
});
const managed = (image: string): KubernetesObject => ({
  ...object("7", image),
  metadata: { name: "web", uid: "set-1", resourceVersion: "7", managedFields: [{ manager: "kubectl" }] } as object,
});
const request = (more: Partial<AdmissionRequest>): AdmissionRequest => ({
  uid: "r",
  operation: "UPDATE",
  resource: { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" },
  object: object("7", "new"),
  oldObject: object("7", "old"),
  ...more,
});
const written = async () => {
  const { announcements } = await readNotice(cluster, "kruise-system");
  return announcements.latest.map(({ sequence, name, from }) => [sequence, name, from]);
};

describe("announcing:", () => {
  test.each([
    [
      "a creation is announced",
      { operation: "CREATE", object: object(undefined, "new"), oldObject: null },
      [[1, "web", ""]],
    ],
    ["a change is announced", {}, [[1, "web", "7"]]],
    ["a deletion is announced", { operation: "DELETE", object: null }, [[1, "web", "7"]]],
    [
      "a change of only an annotation is announced",
      {
        object: {
          metadata: { name: "web", uid: "set-1", resourceVersion: "7", generation: 3, annotations: { a: "b" } },
        },
        oldObject: { metadata: { name: "web", uid: "set-1", resourceVersion: "7", generation: 3 } },
      },
      [[1, "web", "7"]],
    ],
    ["a change of the status is announced", { subResource: "status" }, [[1, "web", "7"]]],
    ["an update without a change is not announced", { object: object("7", "old") }, []],
    ["a change of only managedFields is not announced", { object: managed("old"), oldObject: object("7", "old") }, []],
    [
      "a creation whose object has no name is announced with the request's name",
      { operation: "CREATE", name: "web", object: {}, oldObject: {} },
      [[1, "web", ""]],
    ],
    [
      "a creation with a generated name is announced without a name",
      { operation: "CREATE", object: {}, oldObject: null },
      [[1, "", ""]],
    ],
    ["an update without an old object is announced as a creation", { oldObject: null }, [[1, "web", ""]]],
    [
      "a creation without an object is announced with the request's name",
      { operation: "CREATE", name: "web", object: null, oldObject: null },
      [[1, "web", ""]],
    ],
    ["a dry run is not announced", { dryRun: true }, []],
  ] as const)("%s before the write is allowed", async (_, more, expected) => {
    expect(await admit(request(more as Partial<AdmissionRequest>))).toEqual({ kind: "allowed" });
    expect(await written()).toEqual(expected);
    expect(slept).toEqual(expected.length > 0 ? [ANNOUNCE_WAIT_MS] : []);
  });

  test("an announcement has the uid of an existing object and the time", async () => {
    await admit(request({}));
    await admit(request({ operation: "CREATE", object: {}, oldObject: null }));
    const { announcements } = await readNotice(cluster, "kruise-system");
    expect(announcements.latest.map(({ uid, at }) => [uid, at])).toEqual([
      ["set-1", 1_000],
      ["", 1_000],
    ]);
  });

  test("the announcements keep their epoch until the ConfigMap is emptied, then get a new one", async () => {
    const epoch = async () => (await readNotice(cluster, "kruise-system")).announcements.epoch;
    await admit(request({}));
    const first = await epoch();
    await admit(request({}));
    expect([first, await epoch()]).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), first]);
    stored = { metadata: { uid: "u", resourceVersion: "9" } };
    await admit(request({}));
    expect(await epoch()).not.toBe(first);
  });

  test.each([{ operation: "DELETE", object: null }, { subResource: "status" }] as const)(
    "a write that is not validated is allowed and announced: %j",
    async (more) => {
      const refusal: Admission = { kind: "denied", code: 422, reason: "Invalid", message: "no" };
      expect(await admitAs(refusal)(request(more))).toEqual({ kind: "allowed" });
      expect(await written()).toEqual([[1, "web", "7"]]);
    },
  );

  test("a refused write is not announced", async () => {
    const refusal: Admission = { kind: "denied", code: 422, reason: "Invalid", message: "no" };
    expect(await admitAs(refusal)(request({}))).toEqual(refusal);
    expect(patches).toBe(0);
  });

  test("a write waits longer than any pod webhook relies on its last read of the announcements", () => {
    expect(ANNOUNCE_WAIT_MS).toBeGreaterThanOrEqual(LEASE_MS * 1.2);
  });

  test("50 concurrent writes are announced by one patch with consecutive sequence numbers", async () => {
    await Promise.all(Array.from({ length: 50 }, () => admit(request({}))));
    expect(patches).toBe(1);
    expect((await written()).map(([sequence]) => sequence)).toEqual(
      Array.from({ length: 50 }, (_, index) => index + 1),
    );
  });

  test("a write that comes while others are announced is announced by the next patch", async () => {
    const first = Promise.resolve(admit(request({})));
    while (patches === 0) await Promise.resolve();
    await Promise.all([first, admit(request({}))]);
    expect([patches, (await written()).length]).toEqual([2, 2]);
  });

  test("only the latest announcements are kept, and the sequence numbers continue", async () => {
    await Promise.all(Array.from({ length: MAX_ANNOUNCEMENTS + 5 }, () => admit(request({}))));
    const all = await written();
    expect([all.length, all[0]?.[0], all.at(-1)?.[0]]).toEqual([MAX_ANNOUNCEMENTS, 6, MAX_ANNOUNCEMENTS + 5]);
  });
});

describe("failures of announcing:", () => {
  test.each([
    ["another webhook wrote first", new KubeError("the test failed", { code: 422, reason: "Invalid" })],
    [
      "the API server did not answer",
      new KubeError("reset", { code: 0, reason: "ConnectionReset", isOutcomeKnown: false }),
    ],
  ])("an announcement is tried again when %s", async (_, failure) => {
    failures = [failure];
    await admit(request({}));
    expect(await written()).toEqual([[1, "web", "7"]]);
    expect(patches).toBe(2);
  });

  test("a write is refused with the missing role when the ConfigMap may not be patched", async () => {
    failures = [new KubeError("forbidden", { code: 403, reason: "Forbidden" })];
    await expect(admit(request({}))).rejects.toMatchObject({
      message:
        "this write can't be announced to the pod webhooks in the ConfigMap sidecarset-announcements (infra/rbac/access.yaml permits it), try again: forbidden",
      cause: { code: 403 },
    });
    expect(patches).toBe(1);
  });

  test("a write is refused after 20 conflicts", async () => {
    failures = Array.from({ length: 100 }, () => new KubeError("conflict", { code: 409, reason: "Conflict" }));
    await expect(admit(request({}))).rejects.toMatchObject({
      message: expect.stringMatching(/in the ConfigMap sidecarset-announcements, try again: conflict$/),
    });
    expect(patches).toBe(20);
    // Each sleep is half of the longest wait, which grows with each try.
    expect(slept.slice(0, 3)).toEqual([10, 20, 30]);
  });

  test("a write is announced whether or not the writes before it succeeded", async () => {
    const refused = new KubeError("forbidden", { code: 403, reason: "Forbidden" });
    const outcomes: string[] = [];
    for (const isRefused of [true, false, true, true, false]) {
      if (isRefused) failures.push(refused);
      const admission = Promise.resolve(admit(request({})));
      outcomes.push(await admission.then(({ kind }) => kind, String));
    }
    const refusal = expect.stringContaining("can't be announced");
    expect(outcomes).toEqual([refusal, "allowed", refusal, refusal, "allowed"]);
    expect(await written()).toEqual([
      [1, "web", "7"],
      [2, "web", "7"],
    ]);
  });

  test("a write waits for every lease and is allowed when the ConfigMap does not exist", async () => {
    stored = undefined;
    expect(await admit(request({}))).toEqual({ kind: "allowed" });
    expect(slept).toEqual([ANNOUNCE_WAIT_MS]);
  });

  test("unreadable announcements are replaced by new ones", async () => {
    stored = { metadata: { uid: "u", resourceVersion: "9" }, data: { announcements: "{" } };
    await admit(request({}));
    expect(await written()).toEqual([[1, "web", "7"]]);
  });
});

describe("an API server whose answers are errors, and come slowly:", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const announced = (connect: () => Promise<Cluster>) => {
    const options = { kruiseNamespace: "kruise-system", now: () => 1_000, sleep, random: () => 0.5, connect };
    return announcing(options)(() => ({ kind: "allowed" }));
  };
  const slowly = <T>(call: () => Promise<T>) => sleep(1_200).then(call);

  test("a write is announced after a conflict that took more than a second", async () => {
    failures = [new KubeError("conflict", { code: 409, reason: "Conflict" })];
    const slow = {
      ...cluster,
      patch: (...asked: Parameters<Cluster["patch"]>) => slowly(() => cluster.patch(...asked)),
    };
    const connect = patientConnect(async () => slow as Cluster, new Breaker({ now: Date.now }));
    const outcome = Promise.resolve(announced(connect)(request({}))).then(({ kind }) => kind, String);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await outcome).toBe("allowed");
    expect(await written()).toEqual([[1, "web", "7"]]);
  });

  test("an answer that another object is missing admits no write without an announcement", async () => {
    const notThere = new KubeError('pods "gone" not found', { code: 404, reason: "NotFound" });
    const both = {
      ...cluster,
      get: ({ plural }: { plural: string }) =>
        plural === "pods" ? slowly(() => Promise.reject(notThere)) : Promise.resolve(structuredClone(stored)),
    } as unknown as Cluster;
    const connect = patientConnect(async () => both, new Breaker({ now: Date.now }));
    const { get } = await connect();
    const pod = get(PODS, { namespace: "a", name: "gone" }).catch(() => undefined);
    failures = [new KubeError("conflict", { code: 409, reason: "Conflict" })];
    await vi.advanceTimersByTimeAsync(1_195);
    const outcome = Promise.resolve(announced(connect)(request({}))).then(({ kind }) => kind, String);
    await vi.advanceTimersByTimeAsync(10_000);
    await pod;
    expect([await outcome, await written()]).toEqual(["allowed", [[1, "web", "7"]]]);
  });

  test("an answer about another object refuses no write", async () => {
    const notThere = new KubeError('pods "gone" not found', { code: 404, reason: "NotFound" });
    const both = {
      ...cluster,
      get: ({ plural }: { plural: string }) =>
        plural === "pods" ? slowly(() => Promise.reject(notThere)) : Promise.resolve(structuredClone(stored)),
    } as unknown as Cluster;
    const connect = patientConnect(async () => both, new Breaker({ now: Date.now }));
    const pod = (await connect()).get(PODS, { namespace: "a", name: "gone" }).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(1_300);
    await pod;
    const outcome = Promise.resolve(announced(connect)(request({}))).then(({ kind }) => kind, String);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await outcome).toBe("allowed");
  });
});

describe("an API server that does not answer:", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  test("one write in five seconds waits for a silent API server, for four seconds, and all are refused with that reason", async () => {
    const lines: unknown[] = [];
    const log = { info: (text: string) => lines.push(text), warn: (text: string) => lines.push(text) };
    const on = { isSilent: true };
    const answers = async () => (on.isSilent ? new Promise<Cluster>(() => undefined) : cluster);
    const connect = patientConnect(answers, new Breaker({ now: Date.now, log }));
    const options = { kruiseNamespace: "kruise-system", now: () => 1_000, sleep: async () => undefined };
    const write = announcing({ ...options, connect })(() => ({ kind: "allowed" }));
    const waits: number[] = [];
    const outcomes = new Set<string>();
    const ask = async () => {
      const begun = Date.now();
      outcomes.add(await Promise.resolve(write(request({}))).then(({ kind }) => kind, String));
      waits.push(Date.now() - begun);
    };
    for (let at = 0; at < 30_000; at += 500) {
      void ask();
      await vi.advanceTimersByTimeAsync(500);
    }
    await vi.advanceTimersByTimeAsync(4_000);
    expect([...outcomes]).toEqual([
      "Error: this write can't be announced to the pod webhooks in the ConfigMap sidecarset-announcements, try again: the API server has not answered within 4 s",
    ]);
    expect(waits.length).toBe(60);
    expect(waits.filter((ms) => ms > 0).length).toBeLessThanOrEqual(8 + (30 / 9) * 8);
    expect(Math.max(...waits)).toBe(4_000);
    on.isSilent = false;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await write(request({}))).toEqual({ kind: "allowed" });
    expect(lines).toEqual([expect.stringContaining("does not answer in time"), "the API server answers in time again"]);
  });
});
