/** One scheduled pass by hand, against the cluster of a kubeconfig. */
import { readConfig } from "../shared/config.ts";
import { runPass } from "../shared/controller/pass.ts";
import type { PassReport } from "../shared/controller/report.ts";
import { connect } from "../shared/kube/connect.ts";

export interface TickOptions {
  /** path of a kubeconfig file */
  readonly kubeconfig: string;
  readonly deadlineMs: number;
  readonly dryRun: boolean;
  /** only this one */
  readonly sidecarSet?: string;
}

/** @throws KubeError or ConfigError when there is no way to the cluster */
export async function runTick({ kubeconfig, ...options }: TickOptions): Promise<PassReport> {
  const { kruiseNamespace } = readConfig();
  return runPass(await connect(kubeconfig), { kruiseNamespace, follow: true, ...options });
}
