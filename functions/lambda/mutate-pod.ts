/** Lambda: sidecars for new pods. */
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { connect } from "../../shared/kube/connect.ts";
import { readCluster, readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { checkPods } from "../../shared/webhook/handlers/pods-ready.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { within } from "../../shared/webhook/server/http.ts";
import { MUTATE_POD_PATH } from "../../shared/webhook/server/paths.ts";
import { clusterView } from "../../shared/webhook/view/cluster-view.ts";
import type { HttpHandler } from "./body.ts";
import { lambdaWebhook } from "./http.ts";

/**
 * Time limit of a ping when the API server hangs. At the function's timeout Lambda would end the environment, count an
 * error and try twice more.
 */
const WARM_MS = 3_000;

/** Calls that read what the first pod of a cluster needs. */
const warm: (() => unknown)[] = [];

const answer = lambdaWebhook((env, log) => {
  const config = readConfig(env);
  const cluster = readCluster(env);
  const view = clusterView({ ...config, isAnnounced: true, log, connect: () => connect(cluster), now: Date.now });
  warm.push(() => view.listSidecarSets());
  return {
    admissions: { [MUTATE_POD_PATH]: podAdmission({ ...config, view }) },
    checkReady: () => checkPods({ ...config, view }, { podAdmission, webhookApp, indexSidecarSets }),
  };
});

/**
 * Answers pods, and the ping of the schedule that keeps an environment warm. No caller of a URL can send that event,
 * and nobody reads its result.
 */
export const handler: HttpHandler = async (event) => {
  if (Object(event).keepWarm !== true) return answer(event);
  await within(WARM_MS, () => Promise.allSettled(warm.map(async (read) => read()))).catch(() => undefined);
  return { statusCode: 204 };
};
