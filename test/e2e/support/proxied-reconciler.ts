/** Runs our reconciler as `serve` does, with a fault proxy in front of the API server. The webhooks use no proxy. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tickUntilAborted } from "../../../functions/server/ticks.ts";
import { KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import type { PassReport } from "../../../shared/controller/rollout/report.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { connect } from "../../../shared/kube/connect.ts";
import { createLog } from "../../../shared/log.ts";
import type { RawTarget } from "../../contract/raw.ts";
import { asServiceAccount, writeKubeconfig } from "./clients.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { type Functions, startFunctions } from "./functions.ts";

export interface ProxiedReconciler extends Functions {
  readonly proxy: FaultProxy;
  /** returns the token in the kubeconfig */
  readonly token: () => string;
  /** Puts a new token into the kubeconfig, as a rotation of credentials does. */
  renewToken(): Promise<void>;
}

const TICK_MS = 1_000;

export async function startProxiedReconciler(admin: RawTarget): Promise<ProxiedReconciler> {
  const functions = await startFunctions(admin, { hasTicks: false });
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-proxied-"));
  const proxy = await startFaultProxy(admin);
  const file = join(folder, "kubeconfig");
  let token = "";
  const renewToken = async () => {
    const target = await asServiceAccount(admin, KRUISE_NAMESPACE, "sidecarset-reconciler");
    await writeKubeconfig(file, proxy.route(target));
    token = target.token;
  };
  await renewToken();
  const reports: PassReport[] = [];
  const errors: string[] = [];
  const end = new AbortController();
  const ticks = tickUntilAborted({
    connect: () => connect(file),
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    tickMs: TICK_MS,
    log: createLog("error", (line) => void errors.push(line)),
    onReport: (report) => reports.push(report),
    signal: end.signal,
  });
  const close = async () => {
    end.abort();
    await ticks;
    await functions.close();
    await proxy.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { reports, errors, proxy, token: () => token, renewToken, close };
}
