/** Every webhook in one app, for a process that serves them all. */
import { setTimeout as sleep } from "node:timers/promises";
import { ANNOUNCE_SIDECARSET_PATH } from "../../api/names.ts";
import { indexSidecarSets } from "../../core/injection/match/sidecarset-index.ts";
import { mutateSidecarSet } from "../../core/sidecarset/mutate.ts";
import { mutateStatefulSet } from "../../core/statefulset/mutate.ts";
import type { Log } from "../../log.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import { webhookApp } from "../review/app.ts";
import type { Authenticate } from "../server/authenticate.ts";
import {
  CONVERT_PATH,
  MUTATE_POD_PATH,
  MUTATE_RECREATE_REQUEST_PATH,
  MUTATE_SIDECARSET_PATH,
  MUTATE_STATEFUL_SET_PATH,
  OLDER_MUTATE_RECREATE_REQUEST_PATH,
  OLDER_MUTATE_SIDECARSET_PATH,
  OLDER_VALIDATE_SIDECARSET_PATH,
  POD_STATUS_PATH,
  VALIDATE_SIDECARSET_PATH,
  VALIDATE_STATEFUL_SET_PATH,
} from "../server/paths.ts";
import { type ClusterView, clusterView, type LiveView, type ViewOptions } from "../view/cluster-view.ts";
import { Breaker, patientConnect } from "../view/fresh.ts";
import { announcing } from "./announce.ts";
import { hints, recentNames, type Send } from "./hints.ts";
import { podAdmission } from "./pod-admission.ts";
import { decideSample } from "./sample-decision.ts";
import { answerConversions, convertSidecarSets } from "./sidecarset-conversion.ts";
import { containerRecreateAdmission, sidecarSetValidation, statefulSetValidation } from "./validation.ts";
import { widening } from "./widen-registration.ts";

export interface WebhooksOptions extends ViewOptions {
  readonly featureGates: FeatureGates;
  readonly log: Log;
  readonly isKnown: Authenticate;
  /** Receives changed SidecarSets, and pods that become ready or fail; absent: nobody does. */
  readonly send?: Send;
  /** the view for admissions of pods; absent: a new one */
  readonly view?: ClusterView;
  /** The pod webhook's registration is kept up to date with the SidecarSets. */
  readonly isKeepingRegistration?: boolean;
}

/** The cluster view for admissions of pods. */
export function podsView(options: ViewOptions): LiveView {
  return clusterView({ ...options, isAnnounced: true });
}

/**
 * Ready when the cluster can be read and a sample pod is decided correctly. The port belongs to the cluster's own
 * network, so anybody may ask for readiness.
 */
export function allWebhooks(options: WebhooksOptions) {
  const { view = podsView(options) } = options;
  const { featureGates, kruiseNamespace, log, isKnown, now, send = async () => undefined } = options;
  // Conflicts are searched in the current state.
  const present = clusterView({ ...options, freshnessMs: 0 });
  const connect = patientConnect(options.connect, new Breaker(options));
  const { ofSidecarSets, ofPods } = hints({ send, log, now, sidecarSetNames: recentNames(options) });
  const validation = sidecarSetValidation({ view: present, featureGates, kruiseNamespace });
  const widened = options.isKeepingRegistration ? widening({ now, connect, sleep })(validation) : validation;
  const validate = ofSidecarSets(widened);
  const recreate = containerRecreateAdmission({ connect, featureGates });
  return webhookApp({
    log,
    isKnown,
    admissions: {
      [MUTATE_POD_PATH]: podAdmission({ view, featureGates, kruiseNamespace }),
      [MUTATE_SIDECARSET_PATH]: mutateSidecarSet,
      [OLDER_MUTATE_SIDECARSET_PATH]: mutateSidecarSet,
      [ANNOUNCE_SIDECARSET_PATH]: ofSidecarSets(announcing({ now, kruiseNamespace, connect, sleep })(widened)),
      [VALIDATE_SIDECARSET_PATH]: validate,
      [OLDER_VALIDATE_SIDECARSET_PATH]: validate,
      [POD_STATUS_PATH]: ofPods,
      [MUTATE_RECREATE_REQUEST_PATH]: recreate,
      [OLDER_MUTATE_RECREATE_REQUEST_PATH]: recreate,
      [MUTATE_STATEFUL_SET_PATH]: (request) => mutateStatefulSet(request, featureGates),
      [VALIDATE_STATEFUL_SET_PATH]: statefulSetValidation({ connect, featureGates }),
    },
    conversions: { [CONVERT_PATH]: answerConversions(convertSidecarSets) },
    // No SidecarSets: to read an older version, the API server may need this webhook's conversion first.
    checkReady: async () => {
      await view.getNamespace("default");
      await decideSample(options, { podAdmission, webhookApp, indexSidecarSets });
    },
    isReadinessOpen: true,
  });
}
