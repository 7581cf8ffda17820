/** Lambda: sidecars for new pods. */
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { connect } from "../../shared/kube/connect.ts";
import { readCluster, readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { checkPods } from "../../shared/webhook/handlers/pods-ready.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { MUTATE_POD_PATH } from "../../shared/webhook/server/paths.ts";
import { clusterView } from "../../shared/webhook/view/cluster-view.ts";
import { lambdaWebhook } from "./http.ts";

export const handler = lambdaWebhook((env, log) => {
  const config = readConfig(env);
  const cluster = readCluster(env);
  const view = clusterView({ ...config, isAnnounced: true, log, connect: () => connect(cluster), now: Date.now });
  return {
    admissions: { [MUTATE_POD_PATH]: podAdmission({ ...config, view }) },
    checkReady: () => checkPods({ ...config, view }, { podAdmission, webhookApp, indexSidecarSets }),
  };
});
