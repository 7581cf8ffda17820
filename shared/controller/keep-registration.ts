/** Keeps the condition under which API servers call the pod webhook up to date with the SidecarSets. */
import type { SidecarSet } from "../api/sidecarset.ts";
import { callCondition, widenedBy } from "../core/match/call-condition.ts";
import { isKubeError } from "../kube/error.ts";
import { type PodRegistration, readPodRegistration, writePodRegistration } from "../kube/pod-registration.ts";
import { SIDECARSETS } from "../kube/port.ts";
import { listAll } from "./observe.ts";
import type { RegistrationReport } from "./report.ts";
import { messageOf, note, type Service } from "./serve.ts";

/**
 * A SidecarSet that was admitted is stored within a minute or never; what was widened for it stays meanwhile, and as
 * much longer as clocks may differ.
 */
const RELIED_MS = 5 * 60_000;

/** Undefined where there is no registration of ours. Trouble stands in the service's problems. */
export async function keepRegistration(service: Service): Promise<RegistrationReport | undefined> {
  try {
    return await keep(service);
  } catch (error) {
    const hint = isKubeError(error, 403) ? " (infra/rbac/optional/webhook-configuration.yaml permits it)" : "";
    note(service, `the registration of the pod webhook is not kept up to date: ${messageOf(error)}${hint}`);
    return undefined;
  }
}

/**
 * The registration is read first: a SidecarSet that is not in the list is admitted after that, which moves the
 * registration's version, or was admitted a moment before, which it says.
 */
async function keep({ cluster, clock, isDryRun }: Service): Promise<RegistrationReport | undefined> {
  const registration = await readPodRegistration(cluster);
  if (registration === undefined) return undefined;
  const { items } = await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, selectorsOf);
  const wanted = callCondition(items);
  const condition = isReliedOn(registration, clock.epochMs()) ? widenedBy(registration.condition, wanted) : wanted;
  const asks = condition === undefined ? "about every pod" : "about pods that SidecarSets match";
  const isChanged = condition !== registration.condition;
  if (isDryRun || !isChanged) return { asks, isChanged: isChanged && !isDryRun, ...planned(isDryRun && isChanged) };
  const conflict = await writePodRegistration(cluster, registration, { ...registration, condition });
  return { asks, isChanged: conflict === undefined };
}

function planned(isPlanned: boolean) {
  return isPlanned ? { planned: ["write the condition of the pod webhook's registration"] } : {};
}

function selectorsOf({ metadata, spec: { selector, namespaceSelector } }: SidecarSet): SidecarSet {
  const spec = { ...(selector ? { selector } : {}), ...(namespaceSelector ? { namespaceSelector } : {}) };
  return { metadata: { name: metadata?.name ?? "" }, spec };
}

/** A time that nobody can read is no reason to take anything out. */
function isReliedOn({ reliedOnAt }: PodRegistration, now: number): boolean {
  return reliedOnAt !== undefined && !(now - Date.parse(reliedOnAt) >= RELIED_MS);
}
