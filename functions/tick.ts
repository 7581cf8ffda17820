/** One scheduled pass by hand, against the cluster of a kubeconfig. */
import { readCluster, readConfig } from "../shared/config.ts";
import { runPass } from "../shared/controller/pass.ts";
import type { PassReport } from "../shared/controller/report.ts";
import { connect } from "../shared/kube/connect.ts";

export interface TickOptions {
  /** path of a kubeconfig file; absent: the cluster of the environment's settings */
  readonly kubeconfig?: string;
  readonly deadlineMs: number;
  readonly dryRun: boolean;
  /** only this one */
  readonly sidecarSet?: string;
}

/** What went wrong in a pass, one sentence each; none: it did what there was to do. Of a cluster that can't be reached, the last word. */
export function troubleOf({ problems, sidecarSets }: PassReport): readonly string[] {
  const failed = sidecarSets.filter(({ stop }) => stop === "failed" || stop === "gone");
  return [...problems.slice(-1), ...failed.map(({ name, why }) => `SidecarSet ${name}: ${why}`)];
}

/** @throws KubeError or ConfigError when there is no way to the cluster */
export async function runTick({ kubeconfig, ...options }: TickOptions): Promise<PassReport> {
  const { kruiseNamespace, featureGates, isKeepingRegistration } = readConfig();
  return runPass(await connect(kubeconfig ?? readCluster()), {
    kruiseNamespace,
    follow: true,
    isEndingJobs: featureGates.SidecarTerminator,
    isKeepingRegistration,
    ...options,
  });
}
