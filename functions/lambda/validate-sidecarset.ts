/**
 * Lambda that refuses SidecarSets and Advanced StatefulSets that are invalid or conflict with others, and admits
 * ContainerRecreateRequests. If there is a queue of rollouts, it announces changed SidecarSets, and pods that become
 * ready.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ANNOUNCE_SIDECARSET_PATH } from "../../shared/api/names.ts";
import { connect } from "../../shared/kube/connect.ts";
import { readAwsAccess, readCluster, readConfig, readQueue } from "../../shared/settings/config.ts";
import { announcing } from "../../shared/webhook/handlers/announce.ts";
import { hints, recentNames } from "../../shared/webhook/handlers/hints.ts";
import {
  containerRecreateAdmission,
  sidecarSetValidation,
  statefulSetValidation,
} from "../../shared/webhook/handlers/validation.ts";
import type { Admit } from "../../shared/webhook/review/app.ts";
import {
  MUTATE_RECREATE_REQUEST_PATH,
  OLDER_MUTATE_RECREATE_REQUEST_PATH,
  OLDER_VALIDATE_SIDECARSET_PATH,
  POD_STATUS_PATH,
  VALIDATE_SIDECARSET_PATH,
  VALIDATE_STATEFUL_SET_PATH,
} from "../../shared/webhook/server/paths.ts";
import { clusterView } from "../../shared/webhook/view/cluster-view.ts";
import { Breaker, patientConnect } from "../../shared/webhook/view/fresh.ts";
import { lambdaWebhook } from "./http.ts";

export const handler = lambdaWebhook((env, log) => {
  const [config, cluster, queue] = [readConfig(env), readCluster(env), readQueue(env)];
  // The objects are always read again, because conflicts depend on the present state.
  const site = { ...config, freshnessMs: 0, connect: () => connect(cluster), now: Date.now, log };
  const view = clusterView(site);
  const options = { ...site, connect: patientConnect(site.connect, new Breaker(site)) };
  const { ofSidecarSets, ofPods } = hints({
    log,
    now: Date.now,
    // Without a queue there are no announcements, so no name is looked up.
    ...(queue === undefined ? {} : { sidecarSetNames: recentNames(options) }),
    send: async (work) => {
      if (queue === undefined) return;
      const { sendWork } = await import("../../shared/aws/send-work.ts");
      await sendWork(queue, work, readAwsAccess(), env?.["CLUSTER"]);
    },
  });
  const validation = sidecarSetValidation({ ...config, view });
  const widened: Admit = async (request) => {
    const { widening } = await import("../../shared/webhook/handlers/widen-registration.ts");
    return widening({ ...options, sleep })(validation)(request);
  };
  const judged = config.isKeepingRegistration ? widened : validation;
  const validate = ofSidecarSets(judged);
  const recreate = containerRecreateAdmission(options);
  return {
    admissions: {
      [ANNOUNCE_SIDECARSET_PATH]: ofSidecarSets(announcing({ ...options, sleep })(judged)),
      [VALIDATE_SIDECARSET_PATH]: validate,
      [OLDER_VALIDATE_SIDECARSET_PATH]: validate,
      [POD_STATUS_PATH]: ofPods,
      [MUTATE_RECREATE_REQUEST_PATH]: recreate,
      [OLDER_MUTATE_RECREATE_REQUEST_PATH]: recreate,
      [VALIDATE_STATEFUL_SET_PATH]: statefulSetValidation(options),
    },
    checkReady: view.listSidecarSets,
  };
});
