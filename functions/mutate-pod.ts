/** Lambda: sidecars for new pods. */

import { readConfig } from "../shared/config.ts";
import { connect } from "../shared/kube/connect.ts";
import { createLog } from "../shared/log.ts";
import { webhookApp } from "../shared/webhook/app.ts";
import { clusterView } from "../shared/webhook/cluster-view.ts";
import { MUTATE_POD_PATH } from "../shared/webhook/paths.ts";
import { podAdmission } from "../shared/webhook/pod-admission.ts";
import { handle } from "./lambda-http.ts";

const config = readConfig();
const view = clusterView({ ...config, connect: () => connect(config.kubeconfig), now: Date.now });
const app = webhookApp({
  log: createLog(config.logLevel),
  admissions: { [MUTATE_POD_PATH]: podAdmission({ ...config, view }) },
  checkReady: view.listSidecarSets,
});

export const handler = handle(app);
