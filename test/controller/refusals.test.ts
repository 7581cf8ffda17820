/** What a policy refuses is told as what it is: nobody else wrote, and no name was taken. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { runPass } from "../../shared/controller/pass.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import {
  deploy,
  fastClock,
  KRUISE_NAMESPACE,
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

/** `what`: "CREATE configmaps", "PATCH sidecarsets/status" */
function under(what: string, code: 403 | 409 | 422): Cluster {
  const refuse = (call: string) => {
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
  const options = { deadlineMs: 120_000, kruiseNamespace: KRUISE_NAMESPACE, follow: true, clock: fastClock(20) };
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
])("%s, %i", async (call, code, what) => {
  const name = `${call.toLowerCase().replace(/[^a-z]/g, "")}-${code}`;
  await deploy(test.cluster, name, 1, {});
  await release(test.cluster, name, 2);
  const report = await pass(under(call, code), name);
  expect(report).toMatchObject({ stop: "failed", why: `${what.replace("NAME", name)}: ${POLICY}` });
  expect(report?.tally.restarts).toBe(0);
});

it.each([403, 422] as const)("a ledger that is there and may not be written, %i", async (code) => {
  const name = `ledger-${code}`;
  await deploy(test.cluster, name, 1, {});
  await pass(test.cluster, name);
  await release(test.cluster, name, 2);
  const report = await pass(under("PATCH configmaps", code), name);
  const why = `the ledger kruise-system/sidecarset-ledger-${name} is not written: ${POLICY}`;
  expect(report).toMatchObject({ stop: "failed", why, tally: { restarts: 0 } });
});

it("of a pod's condition: the pod is upgraded, and the refusal told", async () => {
  await deploy(test.cluster, "condition", 1, {});
  await release(test.cluster, "condition", 2);
  const report = await pass(under("PATCH pods/status", 422), "condition");
  expect(report?.tally.problems).toMatchObject([{ name: "condition-0", message: POLICY }]);
  expect(versionsOf(await readPods(test.cluster, "condition"))).toEqual(["2"]);
});

it("of an old ControllerRevision's end: told once", async () => {
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
