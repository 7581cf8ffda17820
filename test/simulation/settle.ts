/**
 * Runs passes after all faults have ended. The wanted state must be reached, then nothing may be written, and a fresh
 * start must reach the same state.
 */
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { CONFIG_MAPS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { finalViolations } from "./end-state.ts";
import { evictionProblem, isGuarded } from "./evictions.ts";
import { isInjected } from "./objects.ts";
import { budgetOf } from "./permission.ts";
import { leftByRestarts, NONE_LEFT } from "./restart-rest.ts";
import type { World } from "./world.ts";

/** Longer than any wave's soak in these worlds, in seconds. */
const MOST_SOAK_SECONDS = 90;

/**
 * Runs a pass a minute until the wanted state is reached, within the expected number of passes. One more pass must then
 * write nothing.
 */
export async function settle(world: World): Promise<void> {
  const most = mostPasses(world);
  let left = unsettled(world);
  let written = -1;
  const isSilent = () => written >= 0 && written <= 2 * keptEvictions(world);
  for (let pass = 0; pass < most && (left.length > 0 || !isSilent()); pass++) {
    written = await writtenByPass(world);
    left = unsettled(world);
  }
  for (const problem of left) world.violated(`after ${most} passes: ${problem}`);
  if (left.length > 0) return;
  if (!isSilent()) written = await writtenByPass(world);
  if (!isSilent()) world.violated(`${written} writes although there was nothing to do`);
  else if (world.scenario.kind !== undefined || world.scenario.seed % 4 === 0) await startAfresh(world);
}

/** Returns the most passes until the wanted state is reached. */
export function mostPasses(world: World): number {
  const pods = world.server.all(PODS).length;
  const windows = world.scenario.sets.map(({ name }) => windowOf(world, name, pods));
  return (
    Math.ceil(pods / Math.min(...windows)) +
    3 +
    soakingPasses(world) +
    scaledDownPasses(world) +
    restartingPasses(world) +
    refusedPasses(world)
  );
}

/** Returns the passes that wait for a pod that somebody else removes: the longest removal, and ten minutes more. */
function scaledDownPasses({ scenario }: World): number {
  return scenario.release?.replaced === undefined ? 0 : 12;
}

/** Returns the passes until refused pods, and nodes that did not pull, are tried again: after ten minutes at most. */
function refusedPasses({ scenario }: World): number {
  return scenario.standing === undefined && scenario.pulls === undefined ? 0 : 12;
}

/** Returns one pass for each pod, because each pod must be deleted and created again. */
function restartingPasses({ scenario }: World): number {
  return scenario.restarts ? 2 * scenario.pods + 2 * scenario.restarts.plans.length : 0;
}

/** Returns the passes for evictions that are reserved, refused and released. */
function keptEvictions({ server, scenario }: World): number {
  const sets = scenario.sets.flatMap(({ name }) => server.peek<SidecarSet>(SIDECARSETS, { name }) ?? []);
  const kept = server.all<Pod>(PODS).filter(isGuarded);
  return sets.reduce(
    (sum, set) =>
      sum +
      kept.filter((pod) => !isInjected(pod, set.metadata?.name ?? "") && evictionProblem(set, pod) === undefined)
        .length,
    0,
  );
}

export async function writtenByPass(world: World): Promise<number> {
  const before = world.witness.passWrites;
  let isOver = false;
  const report = world.startPass({ deadlineMs: 55_000, isFollowing: true });
  void report.finally(() => {
    isOver = true;
  });
  await world.scheduler.runUntil(() => isOver);
  await world.scheduler.runFor(60_000);
  return world.witness.passWrites - before;
}

/** Returns the most passes until all waves have soaked. */
function soakingPasses({ scenario }: World): number {
  const waves = scenario.release?.waves ?? [];
  const soaking = 2 + Math.ceil(MOST_SOAK_SECONDS / 60);
  return waves.length * (scenario.prometheus ? soaking + 2 : soaking);
}

/** Returns the missing parts of the users' wanted state; empty: nothing is missing. */
export function unsettled({
  scheduler,
  server,
  witness,
  waves,
  scenario,
  restarts,
  workloads,
  pulls,
}: World): readonly string[] {
  const { now } = witness.namespaces;
  const scene = { pods: server.all<Pod>(PODS), workloads, isIn: now };
  const factsOf = (name: string) => {
    const one = restarts.find(({ set }) => set === name);
    const leftBy = (sidecarSet: SidecarSet, matched: readonly Pod[]) =>
      one ? leftByRestarts({ ...scene, sidecarSet, matched, witness: one }) : NONE_LEFT;
    return { ledger: witness.ledgerOf(name), nowMs: scheduler.nowMs, isIn: now, leftBy };
  };
  return [
    ...scenario.sets.flatMap(({ name }) => finalViolations(server, name, factsOf(name))),
    ...waves.flatMap((one) => one.restProblems(server.peek<SidecarSet>(SIDECARSETS, { name: one.set })?.status)),
    ...pulls.problems(),
    ...ledgerProblems(server.all(CONFIG_MAPS), server.all(SIDECARSETS)),
  ];
}

/** A ledger without reservations must be removed with its SidecarSet, without a finalizer. */
function ledgerProblems(ledgers: readonly ConfigMap[], sets: readonly SidecarSet[]): readonly string[] {
  const uids = new Set(sets.map(({ metadata }) => metadata?.uid));
  return ledgers.flatMap(({ metadata }) => {
    const { name, finalizers = [], ownerReferences = [] } = metadata ?? {};
    const isOwned = ownerReferences.length === 1 && uids.has(ownerReferences[0]?.uid);
    return [
      ...(finalizers.length > 0 ? [`the ledger ${name} is held by ${finalizers}`] : []),
      ...(isOwned ? [] : [`the ledger ${name} would outlive its SidecarSet`]),
    ];
  });
}

export function windowOf({ scenario, users }: World, set: string, pods: number): number {
  const stored = users.releases.stored(set);
  if (scenario.disruptions) return 1;
  if (scenario.sets.some(({ isOrdinal, perOwner }) => isOrdinal || perOwner !== undefined)) return 1;
  return Math.max(1, stored ? budgetOf(stored, pods) : 1);
}

/** A pass without memory must reach the same state. Waves are an exception: a passed wave stays passed. */
async function startAfresh(world: World): Promise<void> {
  const { server, scenario } = world;
  // A finished rollout stays finished, even if a pod that never works comes back.
  const isKnown = (type: string) => OF_NOW.has(type) && !(type === "Progressing" && scenario.tenantPods !== undefined);
  // A fresh start also sees later events: pods of late owners, and changes by kubelets.
  if (world.owners.coming > 0) {
    await world.scheduler.runUntil(() => world.owners.coming === 0);
    await writtenByPass(world);
  }
  await writtenByPass(world);
  const before = server.all<SidecarSet>(SIDECARSETS);
  for (const set of before) server.put("user", SIDECARSETS, forgetful(set, scenario));
  for (const ledger of server.all(CONFIG_MAPS)) server.remove("user", CONFIG_MAPS, ledger);
  for (let pass = 0; pass <= soakingPasses(world); pass++) await writtenByPass(world);
  for (const set of before) {
    const { name = "" } = set.metadata ?? {};
    const [was, is] = [set, server.peek<SidecarSet>(SIDECARSETS, { name })].map((one) => saidOf(one, isKnown));
    if (was !== is) world.violated(`${name} says ${was}, after a fresh start ${is}`);
  }
}

/**
 * Returns a SidecarSet with only those parts of its status that cannot be computed: passed waves, and the start of the
 * selection.
 */
function forgetful({ status = {}, ...set }: SidecarSet, { kind }: World["scenario"]): SidecarSet {
  const { waves, ledgerNamespace } = status;
  const selection = kind === "missedRestarts" ? status.selection : undefined;
  // Without these fields the status looks like one from an older definition of the CRD.
  const remembered = { waves, selection, conditions: [], ledgerNamespace, observedAnnotations: {} };
  return (waves || selection ? { ...set, status: remembered } : set) as SidecarSet;
}

/**
 * Conditions about the present. The other conditions are about the past, or about facts that a pass ignores in a paused
 * SidecarSet.
 */
const OF_NOW: ReadonlySet<string> = new Set(["Progressing", "Blocked", "Degraded", "Ready", "Reconciling", "Stalled"]);

function saidOf(set: SidecarSet | undefined, isKnown: (type: string) => boolean): string {
  const { conditions = [], selection: _, waves: __, notifications: ___, ...counts } = set?.status ?? {};
  const told = conditions.filter(({ type }) => isKnown(type));
  const sentences = told.map(({ type, status, reason, message }) => `${type}=${status} ${reason} ${message}`);
  const inOrder = (_: string, value: unknown) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return JSON.stringify([counts, sentences.sort()], inOrder);
}
