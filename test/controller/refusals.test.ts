/** Tests that a pass reports a policy's refusal as a refusal, not as a conflict or a taken name. */

import { afterAll, beforeAll, expect, it } from "vitest";
import type { ControllerRevision } from "../../shared/api/kubernetes.ts";
import { HASH_WITHOUT_IMAGE_ANNOTATION } from "../../shared/api/names.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { type Cluster, CONTROLLER_REVISIONS, PODS } from "../../shared/kube/port.ts";
import {
  deploy,
  fastClock,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

const POLICY = "ValidatingAdmissionPolicy 'hands-off' denied request: not on a Friday";

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(() => test?.close());

/** Refuses a call. `what`: such as "CREATE configmaps" or "PATCH sidecarsets/status". */
function under(what: string, code: 403 | 409 | 422, hear: (call: string) => unknown = () => undefined): Cluster {
  const refuse = (call: string) => {
    hear(call);
    const reason = { 403: "Forbidden", 409: "Conflict", 422: "Invalid" }[code];
    if (call === what) throw new KubeError(POLICY, { code, reason });
  };
  const { cluster } = test;
  return {
    ...cluster,
    async create(resource, object, options) {
      refuse(`CREATE ${resource.plural}`);
      return cluster.create(resource, object, options);
    },
    async patch(resource, key, patch, options) {
      refuse(`PATCH ${resource.plural}${options?.subresource ? `/${options.subresource}` : ""}`);
      return cluster.patch(resource, key, patch, options);
    },
    async delete(resource, key, options) {
      refuse(`DELETE ${resource.plural}`);
      return cluster.delete(resource, key, options);
    },
  };
}

const pass = async (cluster: Cluster, name: string) => {
  const options = {
    deadlineMs: 120_000,
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    clock: fastClock(20),
  };
  return (await runPass(cluster, { ...options, sidecarSet: name })).sidecarSets[0];
};

it.each<[string, 403 | 409 | 422, string]>([
  ["CREATE configmaps", 422, "the ledger kruise-system/sidecarset-ledger-NAME is not written"],
  ["CREATE configmaps", 403, "the ledger kruise-system/sidecarset-ledger-NAME is not written"],
  ["PATCH sidecarsets/status", 422, "the status is not written"],
  ["PATCH sidecarsets/status", 409, "the status is not written"],
  ["PATCH sidecarsets/status", 403, "the status is not written"],
  ["CREATE controllerrevisions", 422, "no ControllerRevision is written"],
  ["CREATE controllerrevisions", 403, "no ControllerRevision is written"],
])("a rollout fails with the policy's message when %s is refused with %i", async (call, code, what) => {
  const name = `${call.toLowerCase().replace(/[^a-z]/g, "")}-${code}`;
  await deploy(test.cluster, name, 1, {});
  await release(test.cluster, name, 2);
  const report = await pass(under(call, code), name);
  expect(report).toMatchObject({ stop: "failed", why: `${what.replace("NAME", name)}: ${POLICY}` });
  expect(report?.tally.restarts).toBe(0);
});

it.each([403, 422] as const)(
  "a rollout fails with the policy's message when patching its ledger is refused with %i",
  async (code) => {
    const name = `ledger-${code}`;
    await deploy(test.cluster, name, 1, {});
    await pass(test.cluster, name);
    await release(test.cluster, name, 2);
    const report = await pass(under("PATCH configmaps", code), name);
    const why = `the ledger kruise-system/sidecarset-ledger-${name} is not written: ${POLICY}`;
    expect(report).toMatchObject({ stop: "failed", why, tally: { restarts: 0 } });
  },
);

it("a pod is upgraded and the refusal is reported when a policy refuses its condition", async () => {
  await deploy(test.cluster, "condition", 1, {});
  await release(test.cluster, "condition", 2);
  const report = await pass(under("PATCH pods/status", 422), "condition");
  expect(report?.tally.problems).toMatchObject([{ name: "condition-0", message: POLICY }]);
  expect(versionsOf(await readPods(test.cluster, "condition"))).toEqual(["2"]);
});

it("a refused pod write and a later refused condition are each reported once", async () => {
  await deploy(test.cluster, "both", 1, {});
  await release(test.cluster, "both", 2);
  const ofCondition = under("PATCH pods/status", 403);
  let refusals = 0;
  const patch: Cluster["patch"] = (resource, key, patch, options) => {
    if (resource.plural === "pods" && !options?.subresource && refusals++ < 3)
      return Promise.reject(new KubeError("not yet", { code: 403, reason: "Forbidden" }));
    return ofCondition.patch(resource, key, patch, options);
  };
  const report = await pass({ ...ofCondition, patch }, "both");
  expect(report?.tally.problems.map(({ message }) => message)).toEqual(["not yet", POLICY]);
  expect(versionsOf(await readPods(test.cluster, "both"))).toEqual(["2"]);
});

it("a refused deletion of an old ControllerRevision is reported once", async () => {
  const under422 = under("DELETE controllerrevisions", 422);
  await deploy(test.cluster, "history", 1, {});
  for (let version = 2; version <= 13; version++) {
    await release(test.cluster, "history", version);
    await pass(under422, "history");
  }
  await release(test.cluster, "history", 14);
  const report = await pass(under422, "history");
  expect(report?.tally.problems).toMatchObject([{ message: `the ControllerRevision is not deleted: ${POLICY}` }]);
});

it("a pass says once that it may not mark a ControllerRevision as ready", async () => {
  await deploy(test.cluster, "marked", 1, {});
  await release(test.cluster, "marked", 2);
  const report = await pass(under("PATCH controllerrevisions", 403), "marked");
  const message = `the ControllerRevision is not marked as ready, and undo may take it for one that never was: ${POLICY}`;
  expect(report?.tally.problems.map((problem) => problem.message)).toEqual([message]);
  expect(versionsOf(await readPods(test.cluster, "marked"))).toEqual(["2"]);
});

it("an old ControllerRevision that has just changed is kept without a problem, and the next pass deletes it", async () => {
  const { cluster } = test;
  let asked = 0;
  const late: Cluster = {
    ...cluster,
    delete: async (resource, key, options) => {
      const body = { metadata: { labels: { back: `in-use-${asked++}` } } };
      if (resource === CONTROLLER_REVISIONS) await cluster.patch(resource, key, { type: "merge", body });
      return await cluster.delete(resource, key, options);
    },
  };
  await deploy(cluster, "renumbered", 1, {});
  for (let version = 2; version <= 12; version++) {
    await release(cluster, "renumbered", version);
    expect((await pass(late, "renumbered"))?.tally.problems).toEqual([]);
  }
  const left = () => cluster.list<ControllerRevision>(CONTROLLER_REVISIONS, { labelSelector: "back" });
  expect(asked).toBeGreaterThan(0);
  expect((await left()).items).not.toHaveLength(0);
  await pass(cluster, "renumbered");
  expect((await left()).items).toEqual([]);
});

it("a forbidden pod condition is tried only once per pod in a pass of many rounds", async () => {
  const name = "rounds";
  await deploy(test.cluster, name, 6, {});
  // Half of the pods cannot be upgraded in place. Every round must write this into their conditions.
  const record = JSON.stringify({ [name]: { hash: "other", sidecarSetName: name, sidecarList: ["proxy"] } });
  const body = { metadata: { annotations: { [HASH_WITHOUT_IMAGE_ANNOTATION]: record } } };
  for (const index of [0, 1, 2])
    await test.cluster.patch(PODS, { namespace: NAMESPACE, name: `${name}-${index}` }, { type: "merge", body });
  await release(test.cluster, name, 2, { maxUnavailable: 1 });
  const calls: string[] = [];
  const hear = (call: string) => calls.push(call);
  const report = await pass(under("PATCH pods/status", 403, hear), name);
  expect(report?.tally).toMatchObject({ upgraded: 3 });
  expect(report?.tally.problems).toHaveLength(6);
  expect(calls.filter((call) => call === "PATCH pods/status")).toHaveLength(6);
});

it.each([403, 422] as const)(
  "a pass tries a pod patch that is refused with %i four times, after growing waits, and then ends",
  async (code) => {
    const name = `patient-${code}`;
    await deploy(test.cluster, name, 2, {});
    await release(test.cluster, name, 2, { maxUnavailable: 2 });
    const calls: string[] = [];
    const hear = (call: string) => calls.push(call);
    const report = await pass(under("PATCH pods", code, hear), name);
    expect(report).toMatchObject({ stop: "refused", tally: { upgraded: 0 } });
    expect(report?.tally.problems.map(({ message }) => message)).toEqual([POLICY, POLICY]);
    const tries = calls.filter((call) => call === "PATCH pods").length / 2;
    // The tries are after 1, 2 and 4 seconds; then the pass ends.
    expect(tries).toBe(4);
  },
);
