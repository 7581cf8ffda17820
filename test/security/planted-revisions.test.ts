/**
 * Tests a foreign ControllerRevision that is newer than the SidecarSet's own revisions: no rollout may return to it.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { ControllerRevision, KubernetesObject, OwnerReference } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { planUndo } from "../../shared/core/rollout/rules/halt/standstill.ts";
import { newRevision } from "../../shared/core/sidecarset/revision/recorded-revision.ts";
import { installation, installedResource } from "../../shared/install/manifests.ts";
import { connect } from "../../shared/kube/connect.ts";
import { type Cluster, CONTROLLER_REVISIONS, SIDECARSETS } from "../../shared/kube/port.ts";
import { runHere } from "../cli/run-cli.ts";
import { NOW } from "../support/rollout-fixture.ts";

const NAMESPACE = "kruise-system";
const PLANTED = "evil:1";
const OWNER = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", name: "logs", controller: true };

/** Owner references that an attacker may write: with the right uid only the flag `controller` is missing. */
const OWNERS: Readonly<Record<string, (uid: string) => readonly OwnerReference[]>> = {
  "no owner": () => [],
  "another uid": () => [{ ...OWNER, uid: "00000000-0000-0000-0000-000000000000" }],
  "an empty uid": () => [{ ...OWNER, uid: "" }],
  "the right uid without controller: true": (uid) => [{ ...OWNER, uid, controller: false }],
  "another uid first": (uid) => [
    { ...OWNER, uid: "00000000-0000-0000-0000-000000000000" },
    { ...OWNER, uid, controller: false },
  ],
};

let folder: string;
let local: LocalCluster;
let cluster: Cluster;
let kubeconfig: string;
let stored: SidecarSet;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "planted-"));
  local = await startLocalCluster();
  kubeconfig = join(folder, "kubeconfig");
  await writeFile(kubeconfig, local.kubeconfig());
  cluster = await connect(kubeconfig);
  const isNeeded = ({ kind }: KubernetesObject) => kind === "CustomResourceDefinition" || kind === "Namespace";
  const objects = installation({ url: "https://127.0.0.1:9" }, { podFailurePolicy: "Fail" });
  for (const one of objects.filter(isNeeded)) await cluster.create(installedResource(one), one);
  stored = await cluster.create<SidecarSet>(SIDECARSETS, sidecarSet("agent:2"));
});
afterAll(async () => {
  await local?.close();
  await rm(folder, { recursive: true, force: true });
});

function sidecarSet(image: string): SidecarSet {
  const annotations = { "kruise.io/sidecarset-hash": image, "sidecarset.kruise.io/undo-on-halt": "true" };
  const spec = { selector: { matchLabels: { app: "web" } }, containers: [{ name: "agent", image }] };
  return { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name: "logs", annotations }, spec };
}

/** Returns a revision as a pass records it, with other owners. */
function planted(revision: number, owners: readonly OwnerReference[]): ControllerRevision {
  const evil = {
    ...sidecarSet(PLANTED),
    metadata: { ...stored.metadata, annotations: sidecarSet(PLANTED).metadata?.annotations ?? {} },
  };
  const made = newRevision(evil, { revision, collisionCount: 0, namespace: NAMESPACE });
  return { ...made, metadata: { ...made.metadata, name: `logs-planted-${revision}`, ownerReferences: owners } };
}

describe.each(Object.entries(OWNERS))("a planted revision with %s:", (_, ownersOf) => {
  test.each([
    ["history", ["history", "logs", "-o", "json"]],
    ["undo", ["undo", "logs", "--dry-run"]],
    ["undo --to-revision", ["undo", "logs", "--to-revision", "99", "--dry-run"]],
    ["abort", ["abort", "logs", "--dry-run"]],
  ])("the command %s ignores a planted revision", async (_command, args) => {
    const revision = planted(99, ownersOf(stored.metadata?.uid ?? ""));
    await cluster.create(CONTROLLER_REVISIONS, revision);
    const { stdout, stderr } = await runHere([...args, "--kubeconfig", kubeconfig]);
    // The garbage collector may have been faster.
    await cluster
      .delete(CONTROLLER_REVISIONS, { namespace: NAMESPACE, name: "logs-planted-99" })
      .catch(() => undefined);
    expect(stdout + stderr).not.toBe("");
    expect(stdout + stderr).not.toContain(PLANTED);
    const now = await cluster.get<SidecarSet>(SIDECARSETS, { name: "logs" });
    expect(now.spec.containers?.map(({ image }) => image)).toEqual(["agent:2"]);
  });

  test("a stopped rollout is not undone to a planted revision", () => {
    const revisions = [planted(99, ownersOf(stored.metadata?.uid ?? ""))];
    const undo = planUndo(stored, { halt: "pods fail", revisions, pods: [], now: NOW });
    expect(undo).toBe("it is not undone, since no other revision is kept");
  });
});

test("a stopped rollout is undone to a revision that the SidecarSet controls", () => {
  const revisions = [planted(99, [{ ...OWNER, uid: stored.metadata?.uid ?? "" }])];
  expect(planUndo(stored, { halt: "pods fail", revisions, pods: [], now: NOW })).toMatchObject({ revision: 99 });
});
