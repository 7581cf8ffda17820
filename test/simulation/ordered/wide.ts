/** Every tenth world is wide: many ordinals, several of them reserved, budgets in percent, and obstacles. */
import { type Chance, seededChance } from "../chance.ts";
import type { HindrancePlan } from "../hindrances.ts";
import { type SetScenario, type Strike, TROUBLE_MS } from "./scenario.ts";

const STREAM = 30;
const SHARES = [1, 2, 5, "1%", "20%", "34%", "50%", "99%", "100%"] as const;
const STRIKES_OF_WIDE: readonly Strike[] = ["budget in percent", "ordinals reserved", "set relabelled", "scaled down"];

export function widenedSet(base: SetScenario): SetScenario {
  if (base.seed % 10 !== 7) return base;
  const chance = seededChance(base.seed, STREAM);
  const scale = base.isMonotonic || chance.isLucky(0.5) ? undefined : chance.pick(SHARES);
  const more = Array.from({ length: chance.between(2, 5) }, () => ({
    atMs: chance.below(TROUBLE_MS),
    strike: chance.pick(STRIKES_OF_WIDE),
  }));
  const hindrances = chance.isLucky(0.5) ? [hindranceOf(chance)] : [];
  return {
    ...base,
    replicas: chance.between(5, 16),
    reserved: anyReserved(chance),
    maxUnavailable: base.isMonotonic ? 1 : chance.pick(SHARES),
    scaleMaxUnavailable: scale,
    strikes: [...base.strikes, ...more],
    hindrances,
    // Many pods must become ready, one after the other, before the world ends.
    readyMs: Math.min(base.readyMs, 1_000),
    goneMs: Math.min(base.goneMs, 1_000),
  };
}

/** Some reserved ordinals, below and among the ordinals in use. */
export function anyReserved(chance: Chance): readonly number[] {
  return Array.from({ length: 8 }, (_, ordinal) => ordinal).filter(() => chance.isLucky(0.25));
}

export function anyShare(chance: Chance): SetScenario["maxUnavailable"] {
  return chance.pick(SHARES);
}

function hindranceOf(chance: Chance): HindrancePlan {
  const rate = chance.pick([0.02, 0.1]);
  return chance.pick<() => HindrancePlan>([
    () => ({ kind: "busy", rate, seconds: chance.pick([1, 3, 10]) }),
    () => ({ kind: "proxy", rate, code: chance.pick([404, 502]) }),
    () => ({ kind: "policy", call: chance.pick(REFUSED), code: chance.pick([403, 422]) }),
  ])();
}

const REFUSED = [
  "CREATE configmaps",
  "PATCH configmaps",
  "PATCH statefulsets/status",
  "CREATE controllerrevisions",
  "CREATE pods",
  "DELETE pods",
  "PATCH pods",
  "CREATE persistentvolumeclaims",
  "PATCH persistentvolumeclaims",
  "CREATE leases",
] as const;
