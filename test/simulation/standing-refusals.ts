/**
 * Judges worlds where policies keep refusing writes to some pods: every other pod is updated, and the status names the
 * refusals.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { explainPod } from "../../shared/core/inspect/explain/explain.ts";
import { planRollout } from "../../shared/core/rollout/plan/plan.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { judged } from "../support/hold-places.ts";
import { type HindrancePlan, refusesPod } from "./hindrances.ts";
import { isStoppedIn } from "./in-vain.ts";
import { hashOfPod, isTenantPod } from "./objects.ts";
import { budgetOf, partitionNow, reaches, selects } from "./permission.ts";
import { readNow } from "./read-now.ts";
import { isReplacing, placeOf, successionProblem } from "./replacements.ts";
import { leftByRestarts } from "./restart-rest.ts";
import { windowOf, writtenByPass } from "./settle.ts";
import { TENANT_NAMESPACE } from "./tenant.ts";
import type { World } from "./world.ts";

/**
 * The passes that are added to a rollout without refusals: they tidy the ledger, try refused pods, and report the
 * refusal twice.
 */
const MORE_PASSES = 4;

/** The pods of one SidecarSet that should have its newest release and do not have it. */
interface Late {
  readonly refusing: readonly Pod[];
  readonly others: readonly Pod[];
  /**
   * true if writes to the status are refused too: the pass that follows a killed one cannot fence its pods, and
   * reserves their places
   */
  readonly mayHoldOthers: boolean;
}

/**
 * Requires that every pod is updated whose writes nobody refuses. A rollout's passes and a few more must be enough. The
 * status must not be Ready while pods lack the release. It must be Blocked when no other pod is left, and it must name
 * a pod or the policy.
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

/**
 * The passes that are added to replacements: each pod first refuses its image, and a missing replacement is awaited for
 * ten minutes.
 */
const MORE_PASSES_FIXED = 16;

/**
 * Judges a world where Kubernetes forbids changes of images. Pods are replaced, or their workloads restarted, if an
 * annotation demands it. All other pods stay, and every text says why.
 */
export async function judgeFixed(world: World): Promise<void> {
  const { scenario, server } = world;
  const pods = server.all(PODS).length;
  const windows = scenario.sets.map(({ name }) => windowOf(world, name, pods));
  const restarting = scenario.restarts ? 2 * pods + 2 * scenario.restarts.plans.length : 0;
  const most = Math.ceil(pods / Math.min(...windows)) + restarting + MORE_PASSES_FIXED;
  for (let pass = 0; pass < most; pass++) await writtenByPass(world);
  for (const { name } of scenario.sets) {
    const set = server.peek<SidecarSet>(SIDECARSETS, { name });
    if (!set || budgetOf(set, pods) === 0) continue;
    for (const problem of await fixedProblems(world, set))
      world.violated(`${name}: after ${most} passes in which no image may change: ${problem}`);
  }
}

async function fixedProblems(world: World, set: SidecarSet): Promise<readonly string[]> {
  const { server, witness, workloads, restarts } = world;
  const { now: isIn } = witness.namespaces;
  const alive = server.all<Pod>(PODS).filter(({ metadata }) => !metadata?.deletionTimestamp);
  const matched = alive.filter((pod) => selects(set, pod, isIn));
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION];
  const late = matched.filter((pod) => hashOfPod(pod, set.metadata?.name ?? "") !== hash);
  const own = restarts.find((one) => one.set === set.metadata?.name);
  const left = own && leftByRestarts({ sidecarSet: set, matched, pods: alive, workloads, isIn, witness: own });
  const isStopped = isStoppedIn(set, matched, alive);
  const isLeft = (pod: Pod) =>
    left?.pods.has(pod) === true || isStopped(pod) || successionProblem(set, pod) !== undefined;
  const open = late.filter((pod) => !isLeft(pod));
  const kept = partitionNow(set, matched.length);
  return [
    ...(open.length > kept ? [`${open.map(placeOf)} are not replaced, the partition keeps ${kept}`] : []),
    ...(left?.problems ?? []),
    ...(isReplacing(set) || !isAtWork(set) || late.length <= kept ? [] : await untold(world, set)),
  ];
}

function isAtWork({ spec }: SidecarSet): boolean {
  const { paused, type, selector } = spec.updateStrategy ?? {};
  return !paused && type !== "NotUpdate" && selector === undefined;
}

const WORDS =
  "Kubernetes lets no image change: the annotation sidecarset.kruise.io/replace with NotUpgradable has pods replaced";

/** Returns the texts that do not say why no pod is updated, and how to help. */
async function untold({ reader }: World, set: SidecarSet): Promise<readonly string[]> {
  const read = await readNow(reader, set.metadata?.name ?? "");
  if (!read) return [];
  const { observation, context } = read;
  const { facts } = judged(read, read.sidecarSets);
  const blocked = set.status?.conditions?.find(({ type }) => type === "Blocked");
  const { steps, after } = planRollout(observation, { ...context, readyAfterSeconds: 5 });
  const traced = Array.from(observation.pods, (pod) => explainPod(pod, observation.sidecarSet, facts)).flat();
  const places = {
    Blocked: blocked?.status === "True" && blocked.reason === "Refused" ? blocked.message : "",
    plan: steps.length > 0 ? "steps" : (after.trouble?.text ?? ""),
    explain: traced.map(({ message }) => message).join("\n"),
  };
  return Object.entries(places).flatMap(([place, text]) => (text?.includes(WORDS) ? [] : [`${place} says "${text}"`]));
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

/** True for pods of a misbehaving tenant, about which the product promises nothing. */
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
