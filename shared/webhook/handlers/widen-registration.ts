/**
 * Adds a new SidecarSet's pods to the pod webhook's narrow registration before the SidecarSet is stored. Only a pass
 * narrows the condition again, minutes later.
 */
import type { AdmissionRequest } from "../../api/admission.ts";
import { SIDECARSET_V1BETA1 } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { callCondition, widenedBySidecarSet } from "../../core/injection/match/call-condition.ts";
import { convertSidecarSet } from "../../core/sidecarset/convert.ts";
import { readPodRegistration, writePodRegistration } from "../../kube/pod-registration.ts";
import type { Cluster } from "../../kube/port.ts";
import type { Admit } from "../review/app.ts";

export interface WideningOptions {
  readonly connect: () => Promise<Cluster>;
  /** epoch milliseconds */
  readonly now: () => number;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
}

/** Limit of attempts: passes and other admissions write it too. */
const MAX_ATTEMPTS = 5;
/** API servers learn of a new registration by a watch; it may have been wide enough only for a moment. */
const SPREAD_MS = 1_000;

/** The same decision, after the registration covers what it allows. Rejects when that fails. */
export function widening(options: WideningOptions): (admit: Admit) => Admit {
  return (admit) => async (request) => {
    const admission = await admit(request);
    const sidecarSet = admission.kind === "allowed" ? newlySelecting(request) : undefined;
    if (sidecarSet !== undefined) await widen(options, sidecarSet);
    return admission;
  };
}

/** Undefined: every pod that it selects is one that it selected before. */
function newlySelecting({ operation, dryRun, object, oldObject }: AdmissionRequest): SidecarSet | undefined {
  if (dryRun || (operation !== "CREATE" && operation !== "UPDATE")) return undefined;
  const sidecarSet = asStored(object);
  if (sidecarSet === undefined || operation === "CREATE") return sidecarSet;
  const older = asStored(oldObject);
  return older && callCondition([older]) === callCondition([sidecarSet]) ? undefined : sidecarSet;
}

function asStored(object: AdmissionRequest["object"]): SidecarSet | undefined {
  const converted = object ? convertSidecarSet(object, SIDECARSET_V1BETA1) : undefined;
  return converted?.kind === "Decoded" ? (converted.value as SidecarSet) : undefined;
}

/** Writes even if it is wide enough: a pass that looked before may be about to narrow it. */
async function widen({ connect, now, sleep }: WideningOptions, sidecarSet: SidecarSet): Promise<void> {
  const cluster = await connect();
  let trouble: Error | undefined;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const registration = await readPodRegistration(cluster);
    if (registration === undefined) return;
    const condition = widenedBySidecarSet(registration.condition, sidecarSet);
    const reliedOnAt = new Date(now()).toISOString();
    trouble = await writePodRegistration(cluster, registration, { condition, reliedOnAt });
    if (trouble !== undefined) continue;
    return void (await sleep(SPREAD_MS));
  }
  throw new Error(
    `the condition of the pod webhook's registration can't be widened for the pods of this SidecarSet: ${trouble?.message}`,
    { cause: trouble },
  );
}
