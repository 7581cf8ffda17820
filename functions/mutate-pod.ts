/** Lambda: sidecars for new pods. */
import { readCluster, readConfig } from "../shared/config.ts";
import { connect } from "../shared/kube/connect.ts";
import { clusterView } from "../shared/webhook/cluster-view.ts";
import { MUTATE_POD_PATH } from "../shared/webhook/paths.ts";
import { podAdmission } from "../shared/webhook/pod-admission.ts";
import { lambdaWebhook } from "./lambda-http.ts";

const config = readConfig();
const cluster = readCluster();
const view = clusterView({ ...config, isAnnounced: true, connect: () => connect(cluster), now: Date.now });

export const handler = lambdaWebhook({
  admissions: { [MUTATE_POD_PATH]: podAdmission({ ...config, view }) },
  checkReady: view.listSidecarSets,
});
