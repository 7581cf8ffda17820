/** Sets up the tests' API servers: a control plane for each worker, or the given cluster. */
import type { TestProject } from "vitest/node";
import { installedResource } from "../../../shared/install/manifests.ts";
import { PODS } from "../../../shared/kube/port.ts";
import type { RawTarget } from "../../contract/raw.ts";
import { type NodePrograms, startRealNode } from "../node/real-node.ts";
import type { OwnControlPlane } from "./access.ts";
import { clusterOf } from "./clients.ts";
import { startControlPlane } from "./control-plane.ts";
import { startKubelet } from "./kubelet.ts";
import { findPrograms, type Programs } from "./programs.ts";
import { offerRestarts } from "./restarts.ts";
import { until } from "./until.ts";

interface Begun {
  readonly plane: OwnControlPlane;
  close(): Promise<void>;
}

async function begin(programs: Programs, nodePrograms: NodePrograms | undefined): Promise<Begun> {
  const controlPlane = await startControlPlane(programs, nodePrograms !== undefined);
  const { settings } = controlPlane;
  const node = nodePrograms && (await startRealNode(settings, nodePrograms));
  const kubelet = node ?? (await startKubelet(settings));
  const { restartUrl, close } = await offerRestarts(controlPlane, node);
  return {
    plane: { ...controlPlane.settings, restartUrl },
    async close() {
      close();
      await kubelet.close();
      await controlPlane.close();
    },
  };
}

/** Adds nodes to a cluster without any, and removes them after their pods. */
async function withNodes(target: RawTarget) {
  const kubelet = await startKubelet(target);
  const cluster = clusterOf(target);
  const nodes = installedResource({ apiVersion: "v1", kind: "Node" });
  return async () => {
    await until("the tests' pods are gone", async () => (await cluster.list(PODS, {})).items.length === 0);
    await kubelet.close();
    for (const { metadata } of (await cluster.list(nodes, {})).items)
      await cluster.delete(nodes, { name: metadata?.name ?? "" });
  };
}

export default async function setup(project: TestProject) {
  const { givenCluster, nodePrograms } = project.getProvidedContext();
  if (givenCluster !== undefined) return givenCluster.isWithoutNodes ? withNodes(givenCluster) : undefined;
  const programs = await findPrograms(process.env);
  const begun = await Promise.all(
    Array.from({ length: project.config.maxWorkers }, () => begin(programs, nodePrograms)),
  );
  project.provide(
    "controlPlanes",
    begun.map(({ plane }) => plane),
  );
  return async () => {
    for (const { close } of begun) await close();
  };
}
