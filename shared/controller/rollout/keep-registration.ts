/** Updates the registration's condition for calls of the pod webhook from the SidecarSets. */

import { FORMER_WEBHOOK_CONFIGURATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { callCondition, widenedBy } from "../../core/injection/match/call-condition.ts";
import { isKubeError, type KubeError } from "../../kube/error.ts";
import {
  emptyPodRegistration,
  type PodRegistration,
  readFormerRegistration,
  readPodRegistration,
  writePodRegistration,
} from "../../kube/pod-registration.ts";
import { type Cluster, SIDECARSETS } from "../../kube/port.ts";
import { errorMessage, note } from "../loop/clock.ts";
import { listAll } from "./observe-pods.ts";
import type { RegistrationReport } from "./report.ts";
import type { Service } from "./service.ts";

/**
 * Milliseconds for which the wider registration stays, with a margin for differing clocks. An admitted SidecarSet is
 * stored within a minute or never.
 */
const RELIED_MS = 5 * 60_000;

export type RegistrationService = Pick<Service, "cluster" | "clock" | "isDryRun" | "settings" | "problems">;

/** Updates the condition; undefined: there is no registration of this project. Problems go into the service's list. */
export async function keepRegistration(service: RegistrationService): Promise<RegistrationReport | undefined> {
  try {
    return await keep(service);
  } catch (error) {
    const hint = isKubeError(error, 403) ? " (infra/rbac/optional/webhook-configuration.yaml permits it)" : "";
    note(service, `the registration of the pod webhook is not kept up to date: ${errorMessage(error)}${hint}`);
    return undefined;
  }
}

/**
 * Updates the registration, which is read first. A SidecarSet that the list lacks was admitted later, which changes the
 * registration's version, or just before, which the registration records.
 */
async function keep({
  cluster,
  clock,
  isDryRun,
  settings,
}: RegistrationService): Promise<RegistrationReport | undefined> {
  const former = await readFormerRegistration(cluster);
  const registration = await readPodRegistration(cluster);
  if (registration === undefined) return undefined;
  const { items } = await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, selectorsOf);
  // Every pod gets the readiness gate then.
  const wanted = settings.KruisePodReadinessGate ? undefined : callCondition(items);
  const now = clock.epochMs();
  const condition = isReliedOn(registration, now) ? widenedBy(registration.condition, wanted) : wanted;
  const asks = condition === undefined ? "about every pod" : "about pods that SidecarSets match";
  const replaced = former && nameOf(former) !== nameOf(registration) && !isReliedOn(former, now) ? former : undefined;
  const step = stepOf(cluster, registration, condition, replaced);
  if (isDryRun && step) return { asks, isChanged: false, planned: [step.what] };
  return { asks, isChanged: step !== undefined && (await step.write()) === undefined };
}

interface Step {
  readonly what: string;
  /** writes the step; undefined: it is done */
  readonly write: () => Promise<KubeError | undefined>;
}

/** The next step. The former registration stays until the new one is known to cover every pod that it must. */
function stepOf(
  cluster: Cluster,
  registration: PodRegistration,
  condition: string | undefined,
  replaced: PodRegistration | undefined,
): Step | undefined {
  if (condition !== registration.condition)
    return {
      what: "write the condition of the pod webhook's registration",
      write: () => writePodRegistration(cluster, registration, { ...registration, condition }),
    };
  if (replaced === undefined) return undefined;
  return {
    what: `empty the registration of the former name, ${FORMER_WEBHOOK_CONFIGURATION}`,
    write: () => emptyPodRegistration(cluster, replaced),
  };
}

function nameOf({ stored }: PodRegistration): string | undefined {
  return stored.metadata?.name;
}

function selectorsOf({ metadata, spec: { selector, namespaceSelector } }: SidecarSet): SidecarSet {
  const spec = { ...(selector ? { selector } : {}), ...(namespaceSelector ? { namespaceSelector } : {}) };
  return { metadata: { name: metadata?.name ?? "" }, spec };
}

/** True if the time is recent. An unreadable time is no reason to remove anything. */
function isReliedOn({ reliedOnAt }: PodRegistration, now: number): boolean {
  return reliedOnAt !== undefined && !(now - Date.parse(reliedOnAt) >= RELIED_MS);
}
