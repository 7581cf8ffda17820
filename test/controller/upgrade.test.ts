/**
 * Tests what docs/upgrade.md promises about two versions at once: newer functions with the older definition, then the
 * newer definition.
 */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  allReady,
  deploy,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
/** Fields that version 0.2.0 added to the status. */
const ADDED = ["ledgerNamespace", "observedAnnotations"];

let old: TestCluster;
beforeAll(async () => {
  old = await startTestCluster();
  await define((status) => {
    for (const field of ADDED) delete status[field];
  });
});
afterAll(() => old?.close());

async function define(change: (status: Record<string, unknown>) => void): Promise<void> {
  const definition = parse(await readFile("infra/crd/sidecarsets.yaml", "utf8"));
  const { versions } = definition.spec;
  for (const { schema } of versions) change(schema.openAPIV3Schema.properties.status.properties);
  const key = { name: "sidecarsets.apps.kruise.io" };
  await old.cluster.patch(DEFINITIONS, key, { type: "merge", body: { spec: { versions } } });
}

async function pass() {
  const options = { kruiseNamespace: KRUISE_NAMESPACE, deadlineMs: 20_000, settings: DEFAULT_ROLLOUT_SETTINGS };
  const { sidecarSets, problems } = await runPass(old.cluster, { ...options, follow: true });
  expect(problems).toEqual([]);
  return sidecarSets[0];
}

test("a rollout completes under the older definition, and with the newer definition the status has the added fields", async () => {
  await deploy(old.cluster, "fleet", 6, { type: "RollingUpdate", maxUnavailable: 2 });
  await allReady(old.cluster, "fleet");
  await release(old.cluster, "fleet", 2);
  expect(await pass()).toMatchObject({ stop: "settled", state: "Ready", tally: { problems: [] } });
  expect(versionsOf(await readPods(old.cluster, "fleet"))).toEqual(Array(6).fill("2"));
  const before = (await readSet(old.cluster, "fleet")).status;
  for (const field of ADDED) expect(before).not.toHaveProperty(field);
  expect(before?.conditions?.find(({ type }) => type === "Ready")).toMatchObject({ status: "True" });

  // Older versions do not know this field of a newer version, and keep it.
  await define((status) => Object.assign(status, { fromTheFuture: { type: "string" } }));
  // A pass of 0.1.0 removes fields that it does not know.
  const body = { status: { fromTheFuture: "kept", ledgerNamespace: null, observedAnnotations: null } };
  await old.cluster.patch(SIDECARSETS, { name: "fleet" }, { type: "merge", body }, { subresource: "status" });
  await release(old.cluster, "fleet", 3);
  expect(await pass()).toMatchObject({ stop: "settled", state: "Ready", tally: { problems: [] } });
  expect(versionsOf(await readPods(old.cluster, "fleet"))).toEqual(Array(6).fill("3"));
  const { status } = await readSet(old.cluster, "fleet");
  expect(status).toMatchObject({ fromTheFuture: "kept", ledgerNamespace: KRUISE_NAMESPACE, observedAnnotations: {} });
  expect(status?.conditions?.length).toBeGreaterThan(5);
});
