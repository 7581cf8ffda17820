/** The webhooks as functions/server serves them (all in one), and as functions/lambda does (only the ones for pods). */
import { KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import type { Work } from "../../../shared/core/rollout/queue/work.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { DEFAULT_FEATURE_GATES } from "../../../shared/settings/feature-gates.ts";
import { allWebhooks } from "../../../shared/webhook/handlers/all-webhooks.ts";
import { podAdmission } from "../../../shared/webhook/handlers/pod-admission.ts";
import { webhookApp } from "../../../shared/webhook/review/app.ts";
import type { Answerer } from "../../../shared/webhook/server/http.ts";
import { MUTATE_POD_PATH } from "../../../shared/webhook/server/paths.ts";
import { clusterView } from "../../../shared/webhook/view/cluster-view.ts";
import type { Gates } from "./pod-judge.ts";

export type Role = "serve" | "pods" | "dry" | "pass";

export interface ToldWork {
  readonly process: string;
  readonly work: Work;
}

export interface AppOptions {
  readonly cluster: Cluster;
  readonly now: () => number;
  readonly steady: () => number;
  readonly gates: Gates;
  readonly isKeepingRegistration: boolean;
  readonly send: (work: Work) => unknown;
}

const nothing = () => undefined;
const LOG = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export function appOf(role: Role, { cluster, now, steady, gates, isKeepingRegistration, send }: AppOptions): Answerer {
  const featureGates = { ...DEFAULT_FEATURE_GATES, SidecarSetPatchPodMetadataDefaultsAllowed: true, ...gates };
  const options = {
    connect: async () => cluster,
    kruiseNamespace: KRUISE_NAMESPACE,
    freshnessMs: 0,
    featureGates,
    log: LOG,
    isKnown: () => true,
    now,
    steady,
  };
  if (role === "pods") {
    const view = clusterView({ ...options, isAnnounced: true });
    return webhookApp({ ...options, admissions: { [MUTATE_POD_PATH]: podAdmission({ ...options, view }) } });
  }
  return allWebhooks({ ...options, isKeepingRegistration, send: async (work) => void work.forEach(send) });
}
