/** Policies that go on refusing writes to some pods: what becomes of everybody else's pods, and what the status says of it. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type HindrancePlan, refusesPod } from "./hindrances.ts";
import { hashOfPod, isTenantPod } from "./objects.ts";
import { budgetOf, reaches, selects } from "./permission.ts";
import { windowOf, writtenByPass } from "./settle.ts";
import { TENANT_NAMESPACE } from "./tenant.ts";
import type { World } from "./world.ts";

/** More passes than a rollout without refusals needs: passes tidy the ledger, try pods in vain, and tell it twice. */
const MORE_PASSES = 4;

/** The pods of one SidecarSet that have not its newest release, though they should. */
interface Late {
  readonly refusing: readonly Pod[];
  readonly others: readonly Pod[];
  /** writes to the status are refused too: who takes over from a killed pass cannot fence its pods, and keeps their places */
  readonly mayHoldOthers: boolean;
}

/**
 * In as many passes as a rollout takes, and a few more, every pod is updated whose writes nobody refuses. The status is
 * not Ready while pods lack the release, it is Blocked where no other pod is left, and it names a pod or the policy.
 */
export async function judgeStanding(world: World, plans: readonly HindrancePlan[]): Promise<void> {
  const { scenario, server } = world;
  const pods = server.all(PODS).length;
  const windows = scenario.sets.map(({ name }) => windowOf(world, name, pods));
  const most = Math.ceil(pods / Math.min(...windows)) + MORE_PASSES;
  for (let pass = 0; pass < most; pass++) await writtenByPass(world);
  for (const { name } of scenario.sets) {
    const set = server.peek<SidecarSet>(SIDECARSETS, { name });
    if (!set || budgetOf(set, pods) === 0) continue;
    for (const problem of problemsOf(set, lateOf(world, set, plans)))
      world.violated(`${name}: after ${most} passes beside pods that refuse writes: ${problem}`);
  }
}

function lateOf({ server, witness }: World, set: SidecarSet, plans: readonly HindrancePlan[]): Late {
  const { now } = witness.namespaces;
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION];
  const isLate = (pod: Pod) =>
    !pod.metadata?.deletionTimestamp &&
    selects(set, pod, now) &&
    reaches(set, pod, now) &&
    hashOfPod(pod, set.metadata?.name ?? "") !== hash;
  const late = server.all<Pod>(PODS).filter(isLate);
  const isRefusing = (pod: Pod) => refusesPod(plans, pod);
  const others = late.filter((pod) => !(isRefusing(pod) || isOfTenant(pod)));
  return { refusing: late.filter(isRefusing), others, mayHoldOthers: plans.some(isOfStatus) };
}

/** Nobody promises anything about pods of a tenant who does such things. */
function isOfTenant(pod: Pod): boolean {
  return pod.metadata?.namespace === TENANT_NAMESPACE || isTenantPod(pod);
}

function isOfStatus(plan: HindrancePlan): boolean {
  return plan.kind === "policy" && plan.call === "PATCH pods/status";
}

function problemsOf(set: SidecarSet, { refusing, others, mayHoldOthers }: Late): readonly string[] {
  const conditions = set.status?.conditions ?? [];
  const isTrue = (type: string) => conditions.some((one) => one.type === type && one.status === "True");
  const text = conditions.map(({ message }) => message).join("; ");
  const isNamed = text.includes("denied the request") || refusing.some((pod) => text.includes(placeOf(pod)));
  const isAllRefusing = refusing.length > 0 && others.length === 0 && !mayHoldOthers;
  return [
    ...(mayHoldOthers ? [] : others.map((pod) => `${placeOf(pod)} is not updated`)),
    ...(refusing.length > 0 && isTrue("Ready") ? [`it is Ready, and ${refusing.map(placeOf)} are not updated`] : []),
    ...(isAllRefusing && !isNamed ? [`no condition names a pod of ${refusing.map(placeOf)}, or why: ${text}`] : []),
    ...(isAllRefusing && !isTrue("Stalled") ? [`it is not Stalled, and nothing moves: ${text}`] : []),
  ];
}

function placeOf({ metadata }: Pod): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}
