/** Judges worlds with pods whose gates stay closed: every other pod is updated, and the texts name the gated pods. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { explainSidecarSet } from "../../shared/core/inspect/explain/explain.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { isUnproven } from "./bystanders.ts";
import { hashOfPod, isPodReady, timeOf } from "./objects.ts";
import { budgetOf, partitionNow, reaches, selects } from "./permission.ts";
import { readNow } from "./read-now.ts";
import { placeOf } from "./replacements.ts";
import { windowOf, writtenByPass } from "./settle.ts";
import type { World } from "./world.ts";

/** The passes that are added to a rollout without gates: they tidy the ledger first. */
const MORE_PASSES = 4;

/**
 * Requires that every pod is updated after as many passes as a rollout takes, and a few more. An exception: gated pods
 * use the whole budget. The status must not be Ready then, and `explain` must name one of these pods.
 */
export async function judgeGated(world: World): Promise<void> {
  const { scenario, server } = world;
  const pods = server.all(PODS).length;
  const windows = scenario.sets.map(({ name }) => windowOf(world, name, pods));
  const most = Math.ceil(pods / Math.min(...windows)) + MORE_PASSES;
  for (let pass = 0; pass < most; pass++) await writtenByPass(world);
  for (const { name } of scenario.sets)
    for (const problem of await problemsOf(world, name, windowOf(world, name, pods)))
      world.violated(`${name}: after ${most} passes beside pods with gates: ${problem}`);
}

async function problemsOf(world: World, name: string, window: number): Promise<readonly string[]> {
  const { server, witness } = world;
  const set = server.peek<SidecarSet>(SIDECARSETS, { name });
  if (!set) return [];
  const { now } = witness.namespaces;
  const matched = server.all<Pod>(PODS).filter((pod) => !pod.metadata?.deletionTimestamp && selects(set, pod, now));
  const isUpdated = (pod: Pod) => hashOfPod(pod, name) === set.metadata?.annotations?.[HASH_ANNOTATION];
  const gated = matched.filter((pod) => isUpdated(pod) && isGated(pod) && !isPodReady(pod));
  const late = matched.filter((pod) => !isUpdated(pod) && reaches(set, pod, now));
  const ready = set.status?.conditions?.find(({ type }) => type === "Ready");
  if (gated.length === 0 || budgetOf(set, matched.length) === 0) return [];
  return [
    ...(ready?.status === "True" ? [`it is Ready, and ${gated.map(placeOf)} are not`] : []),
    ...(gated.length >= window || late.length <= partitionNow(set, matched.length)
      ? []
      : [`${gated.length} of ${window} places are taken, and ${late.map(placeOf)} are not updated`]),
    ...(late.length > 0 && gated.length >= window ? await namelessText(world, name, gated) : []),
  ];
}

/** True if the pod is not ready only because of its gate. Its node and its containers work. */
function isGated(pod: Pod): boolean {
  return pod.spec.schedulingGates !== undefined || isUnproven(pod);
}

/** Returns a sentence if `explain` gives no reason for any of these pods. */
async function namelessText(world: World, name: string, gated: readonly Pod[]): Promise<readonly string[]> {
  const read = await readNow(world.reader, name);
  if (!read) return [];
  const { observation, context, sidecarSets } = read;
  const facts = { ...observation, ...context, sidecarSets, lastPass: timeOf(world.scheduler.nowMs) };
  const text = explainSidecarSet(observation.sidecarSet, facts)
    .map(({ message }) => message)
    .join("; ");
  const isNamed = (pod: Pod) => text.includes(placeOf(pod)) && text.includes(reasonOf(pod));
  // A recreated pod has no conditions at first.
  if (!gated.some(hasOwnWords)) return [];
  return gated.some(isNamed) ? [] : [`explain says of none of ${gated.map(placeOf)} what it waits for: ${text}`];
}

/** Returns the reason that the scheduler or the kubelet writes into the pod's conditions. */
function reasonOf({ spec }: Pod): string {
  return spec.schedulingGates === undefined ? "ReadinessGatesNotReady" : "SchedulingGated";
}

function hasOwnWords(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ reason }) => reason === reasonOf(pod)) === true;
}
