/** Tests that random edits, with passes between them, lead to the same state as a fresh start with the last edit. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Campaign, campaignOf, emptyCampaign, merged } from "./campaign.ts";
import { type Chance, seededChance } from "./chance.ts";
import type { Fault } from "./faults.ts";
import { hashOfPod, isInjected, isWorking } from "./objects.ts";
import { ordinaryScenarioOf, type Scenario } from "./scenario.ts";
import { World } from "./world.ts";

const EDITS: readonly Fault[] = [
  "spec changed",
  "spec rolled back",
  "paused",
  "partition raised",
  "budget changed",
  "selector changed",
  "SidecarSet deleted and recreated",
  "pod created",
  "pod deleted",
  "pod recreated under its name",
];
const MOST_EDITS = 6;
/** Milliseconds after which a deleted pod is gone. */
const BETWEEN_MS = 20_000;

/** Runs the sequences `from` … `to` - 1. */
export async function runEdits(from: number, to: number): Promise<Campaign> {
  let campaign = emptyCampaign();
  for (let seed = from; seed < to; seed++) {
    const scenario = calmScenario(seed);
    const chance = seededChance(seed, 9);
    const edited = new World(scenario);
    await edit(edited, chance);
    const fresh = new World({ ...scenario, pods: 0 });
    startAfresh(fresh, edited);
    await edited.settle();
    await fresh.settle();
    const [is, should] = [outcomeOf(edited), outcomeOf(fresh)];
    const differs = is === should ? [] : [`ends with ${is}, a fresh start with ${should}`];
    const violations = [...edited.violations, ...fresh.violations, ...differs];
    campaign = merged(campaign, campaignOf({ ...edited.result(), violations }));
  }
  return campaign;
}

function calmScenario(seed: number): Scenario {
  const none = {
    faultRate: 0,
    slowRate: 0,
    eventRate: 0,
    expireRate: 0,
    isForbidden: false,
    behaviours: [],
    reshapeRate: 0,
    // A partition holds back pods by readiness, which depends on the schedule. The number of working pods depends on it
    // too.
    tenantPods: 0,
  };
  return { ...ordinaryScenarioOf(seed), ...none, passes: [], strikes: [] };
}

async function edit(world: World, chance: Chance): Promise<void> {
  for (let left = chance.between(1, MOST_EDITS); left > 0; left--) {
    world.users.strike(chance.pick(EDITS));
    // The next edit may come before this pass ends.
    if (chance.isLucky(0.6)) {
      const deadlineMs = chance.pick([8_000, 30_000]);
      const sidecarSet = chance.pick(world.scenario.sets).name;
      void world.startPass({ deadlineMs, isFollowing: chance.isLucky(0.6), sidecarSet });
    }
    await world.scheduler.runFor(chance.isLucky(0.5) ? chance.below(500) : BETWEEN_MS);
  }
  await world.scheduler.runFor(2 * BETWEEN_MS);
  for (const { name } of world.scenario.sets) {
    // A pause interrupts hot upgrades halfway. A fresh start has no such pods.
    world.users.releases.apply(name, { strategy: { paused: false, type: "RollingUpdate" } });
    world.users.releases.releaseNext(name);
  }
}

/**
 * Starts with the same pods, as they were first injected, and the last release. A pod that was created while a
 * SidecarSet was deleted lacks its sidecars.
 */
function startAfresh(fresh: World, edited: World): void {
  for (const before of edited.server.all<Pod>(PODS)) {
    const { namespace = "", name = "", labels } = before.metadata ?? {};
    fresh.users.createPod(namespace, name, (set) => isInjected(before, set));
    const pod = fresh.server.peek<Pod>(PODS, { namespace, name });
    if (pod && labels) fresh.server.put("user", PODS, { ...pod, metadata: { ...pod.metadata, labels } } as Pod);
  }
  for (const { name } of fresh.scenario.sets) fresh.users.releases.apply(name, edited.users.releases.of(name));
}

function outcomeOf(world: World): string {
  return JSON.stringify(world.scenario.sets.map(({ name }) => outcomeOfSet(world, name)));
}

/** A partition may hold back any pods; only their number must agree. */
function outcomeOfSet({ server, witness }: World, name: string) {
  const set = server.peek<SidecarSet>(SIDECARSETS, { name });
  const pods = server.all<Pod>(PODS);
  const { observedGeneration, matchedPods, updatedPods, readyPods, updatedReadyPods } = set?.status ?? {};
  const hash = set?.metadata?.annotations?.[HASH_ANNOTATION];
  return {
    spec: set?.spec,
    status: { matchedPods, updatedPods, readyPods, updatedReadyPods },
    isObserved: observedGeneration === set?.metadata?.generation,
    updated: pods.filter((pod) => hashOfPod(pod, name) === hash && isWorking(pod)).length,
    reservations: witness.ledgerOf(name).reservations.length,
  };
}
