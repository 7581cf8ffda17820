/** Makes the worlds of each kind wider: many pods, percentages, several namespaces, an order of upgrades. */
import type { LabelSelector } from "../../shared/api/kubernetes.ts";
import type { UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { GATE } from "./approver.ts";
import type { BystanderKind, BystanderPlan } from "./bystanders.ts";
import { type Chance, seededChance } from "./chance.ts";
import type { BudgetPlan } from "./disruptions.ts";
import type { Fault } from "./faults.ts";
import type { HindrancePlan } from "./hindrances.ts";
import { kindOf, type WorldKind } from "./kinds.ts";
import { VALUES_SET, type Workload } from "./objects.ts";
import { FROZEN_MS, type PassPlan, TROUBLE_MS } from "./plans.ts";
import type { CheckPlan } from "./prometheus.ts";
import type { PullPlan } from "./pulls.ts";
import type { Scenario } from "./scenario.ts";
import { TENANT_NAMESPACE } from "./tenant.ts";
import type { WavePlan } from "./wave-witness.ts";
import type { Strategy, WorkloadKind, WorkloadPlan } from "./workload-objects.ts";

/** Changes to the plain scenario of the same seed. */
type Widening = (chance: Chance, base: Scenario) => Partial<Scenario>;

const STREAM = 30;

export function widened(base: Scenario): Scenario {
  const kind = kindOf(base.seed);
  if (!kind) return base;
  const chance = seededChance(base.seed, STREAM);
  const firstVersion = chance.pick([1, 1, 960, 9_950, 99_940]);
  const wide = { ...base, kind, firstVersion, ...WIDENINGS[kind](chance, base) };
  if (isFixed(wide)) return withFixedImages(wide);
  return isMixed(wide) ? { ...wide, bystanders: finishing(base.seed) } : wide;
}

/** Kinds that also have pods which finish, in every eighth world. The other worlds stay the same. */
const MIXED: readonly WorldKind[] = ["evictions", "replacements"];

function isMixed({ seed, kind }: Scenario): boolean {
  return MIXED.some((one) => one === kind) && Math.floor(seed / 50) % 8 === 6;
}

/** Kinds where Kubernetes forbids changes of images in every eighth world. The other worlds stay the same. */
const FIXED: readonly WorldKind[] = ["refusals", "replacements", "restarts"];

function isFixed({ seed, kind }: Scenario): boolean {
  return FIXED.some((one) => one === kind) && Math.floor(seed / 50) % 8 === 3;
}

/**
 * Makes fixed images the only reason to replace a pod. In every third world a policy refuses instead, and no pod is
 * replaced.
 */
function withFixedImages({ standing: _, hindrances: __, ...wide }: Scenario): Scenario {
  const calm = { ...wide, isForbidden: false, reshapeRate: 0, tenantPods: 0 };
  const refusal: HindrancePlan = { kind: "policy", call: "PATCH pods", code: 422 };
  if (Math.floor(wide.seed / 400) % 3 === 2) return { ...calm, hindrances: [refusal] };
  return { ...calm, release: { ...wide.release, areImagesFixed: true } };
}

function finishing(seed: number): readonly BystanderPlan[] {
  const chance = seededChance(seed, 52);
  return Array.from({ length: chance.between(1, 6) }, () => ({
    kind: chance.pick(["task", "evicted", "missed"]),
    atMs: chance.below(TROUBLE_MS),
    isFailed: chance.isLucky(0.5),
  }));
}

const WIDENINGS: Readonly<Record<WorldKind, Widening>> = {
  crowd,
  shares,
  namespaces,
  order,
  policies,
  busy,
  proxy,
  lagging,
  collected,
  hands,
  clocks,
  evictions,
  approvals,
  nodes,
  history,
  selections,
  replacements,
  waves,
  metrics,
  disruptions,
  restarts,
  waveChecks,
  missedRestarts,
  greedy,
  refusals,
  bystanders,
  meetings,
  values,
  drains,
  pulls,
};

const BYSTANDERS: readonly BystanderKind[] = ["task", "unscheduled", "unproven"];

/** Adds pods that finish, and pods whose gates open late or only after they were judged. */
function bystanders(chance: Chance): Partial<Scenario> {
  const plans = Array.from({ length: chance.between(1, 4) }, (): BystanderPlan => {
    const kind = chance.pick(BYSTANDERS);
    const isInTime = kind === "task" || chance.isLucky(0.6);
    return { kind, ...(isInTime ? { atMs: chance.below(TROUBLE_MS) } : {}), isFailed: chance.isLucky(0.5) };
  });
  return { bystanders: plans };
}

/** Features of a rollout that may occur together in one world. */
const MEETING = [
  "waves",
  "metrics",
  "approvals",
  "disruptions",
  "replacements",
  "evictions",
  "nodes",
  "history",
] as const satisfies readonly WorldKind[];

/** Combinations that contain every pair of these features, so every pair occurs within a thousand seeds. */
const MEETINGS: readonly (readonly (typeof MEETING)[number][])[] = [
  ["waves", "metrics", "approvals"],
  ["waves", "disruptions", "replacements"],
  ["waves", "evictions", "nodes"],
  ["metrics", "disruptions", "evictions"],
  ["metrics", "replacements", "nodes"],
  ["approvals", "disruptions", "nodes"],
  ["approvals", "replacements", "evictions"],
  ["waves", "metrics", "history"],
  ["approvals", "disruptions", "history"],
  ["replacements", "evictions", "history"],
  ["waves", "nodes", "history"],
];

/** Makes a world with three features together. */
function meetings(chance: Chance, base: Scenario): Partial<Scenario> {
  const met = MEETINGS[Math.floor(base.seed / 50) % MEETINGS.length] ?? [];
  const sets = base.sets.map(({ isAmongTenants: _, ...set }) => set);
  let scene: Partial<Scenario> = { sets, tenantPods: 0 };
  for (const kind of met) {
    const own = WIDENINGS[kind](chance, { ...base, ...scene });
    scene = { ...scene, ...own, release: { ...scene.release, ...own.release } };
  }
  // Waves that users change may name either check.
  const checks = scene.release?.checks && scene.release.waves ? { checks: bothChecks(chance) } : {};
  return { ...scene, release: { ...scene.release, ...checks } };
}

/** Makes a world with large batches and lists of many pages. */
function crowd(chance: Chance, base: Scenario): Partial<Scenario> {
  const [set = { name: "mesh", isHot: false, isOrdinal: false }] = base.sets;
  const partition = chance.pick([0, 0, 0, 7, "10%", "50%", "99%"]);
  return {
    pods: chance.between(40, 200),
    sets: [{ ...set, isOrdinal: false }],
    areLabelsVaried: true,
    strategy: {
      maxUnavailable: chance.pick(["10%", "25%", "33%", 32, 50, "100%", 200]),
      partition,
    },
    pageSize: chance.pick([7, 50, 500]),
    faultRate: Math.min(base.faultRate, 0.02),
    slowRate: Math.min(base.slowRate, 0.02),
    noticeMs: chance.pick([50, 1_000]),
    readyMs: chance.pick([50, 2_000]),
  };
}

const SHARES = [0, 1, 3, 1_000, "0%", "1%", "9%", "10%", "34%", "50%", "66%", "99%", "100%"] as const;

/** Returns a partition and a budget in any form that users may write. */
export function anyShares(chance: Chance): UpdateStrategy {
  return { maxUnavailable: chance.pick(SHARES), partition: chance.pick([...SHARES, 0, 0, 0]) };
}

function shares(chance: Chance, base: Scenario): Partial<Scenario> {
  const strategy = { ...base.strategy, ...anyShares(chance) };
  return { pods: chance.between(1, 12), strategy, strikes: also(base, chance, "shares changed", chance.between(0, 3)) };
}

const TEAMS = ["red", "green", "blue"] as const;
const NAMESPACE_SELECTORS: readonly LabelSelector[] = [
  { matchLabels: { team: "red" } },
  { matchExpressions: [{ key: "team", operator: "In", values: ["red", "green"] }] },
  { matchExpressions: [{ key: "team", operator: "NotIn", values: ["blue"] }] },
  { matchExpressions: [{ key: "team", operator: "Exists" }] },
  { matchExpressions: [{ key: "frozen", operator: "DoesNotExist" }] },
  { matchLabels: { stage: "prod" }, matchExpressions: [{ key: "team", operator: "NotIn", values: ["red"] }] },
];
const SELECTORS: readonly LabelSelector[] = [
  { matchLabels: { app: "web" } },
  { matchExpressions: [{ key: "app", operator: "In", values: ["web", "api"] }] },
  { matchLabels: { app: "web" }, matchExpressions: [{ key: "tier", operator: "NotIn", values: ["red"] }] },
  { matchExpressions: [{ key: "tier", operator: "Exists" }] },
];

/** Returns new labels for a namespace; sometimes they equal the earlier ones. */
export function anyNamespaceLabels(chance: Chance): Readonly<Record<string, string>> {
  return {
    ...(chance.isLucky(0.8) ? { team: chance.pick(TEAMS) } : {}),
    ...(chance.isLucky(0.5) ? { stage: "prod" } : {}),
    ...(chance.isLucky(0.2) ? { frozen: "" } : {}),
  };
}

function namespaces(chance: Chance, base: Scenario): Partial<Scenario> {
  const names = ["bakery", "shop", "forge", "mill", "office", "store"].slice(0, chance.between(3, 6));
  return {
    pods: chance.between(4, 14),
    namespaces: names.map((name) => ({ name, labels: anyNamespaceLabels(chance) })),
    areLabelsVaried: true,
    // Owners' budgets have no effect here.
    sets: base.sets.map(({ perOwner: _, ...set }) => set),
    release: { selector: chance.pick(SELECTORS), namespaceSelector: chance.pick(NAMESPACE_SELECTORS) },
    strikes: also(base, chance, "namespace relabelled", chance.between(1, 4)),
  };
}

function order(chance: Chance, base: Scenario): Partial<Scenario> {
  const scatterStrategy = chance.pick([
    [],
    [{ key: "zone", value: "a" }],
    [{ key: "zone", value: "*" }],
    [
      { key: "tier", value: "green" },
      { key: "zone", value: "b" },
    ],
  ]);
  const weightPriority = [
    { weight: 50, matchSelector: { matchLabels: { tier: "green" } } },
    { weight: 30, matchSelector: { matchExpressions: [{ key: "zone", operator: "In", values: ["a", "b"] }] } },
    { weight: 1, matchSelector: { matchExpressions: [{ key: "tier", operator: "Exists" }] } },
  ];
  const priorityStrategy = chance.pick([{}, { weightPriority }, { orderPriority: [{ orderedKey: "rank" }] }]);
  return {
    pods: chance.between(6, 30),
    areLabelsVaried: true,
    sets: base.sets.map(({ perOwner: _, ...set }) => ({ ...set, isOrdinal: false })),
    noticeMs: chance.pick([50, 1_000]),
    readyMs: chance.pick([50, 2_000]),
    strategy: {
      maxUnavailable: chance.pick([1, 2, 5, "20%"]),
      ...(chance.isLucky(0.4) ? { partition: chance.pick([2, 5, "30%"]) } : {}),
      scatterStrategy,
      priorityStrategy,
    },
  };
}

const REFUSED = [
  "CREATE configmaps",
  "PATCH configmaps",
  "PATCH sidecarsets/status",
  "CREATE controllerrevisions",
  "PATCH controllerrevisions",
  "PATCH pods",
  "PATCH pods",
  "PATCH pods/status",
  "CREATE leases",
  "PATCH leases",
] as const;

function policies(chance: Chance): Partial<Scenario> {
  const plan = (): HindrancePlan => {
    const call = chance.pick(REFUSED);
    const code = chance.pick([403, 422] as const);
    const namespace = call.startsWith("PATCH pods") && chance.isLucky(0.5) ? { namespace: "bakery" } : {};
    return { kind: "policy", call, code, ...namespace };
  };
  return {
    pods: chance.between(2, 8),
    isForbidden: false,
    hindrances: Array.from({ length: chance.pick([1, 1, 2]) }, plan),
  };
}

const REFUSING = [403, 404, 422, 422, 500] as const;
/** Codes that refuse every write of a pod and of its status. */
const REFUSING_ALL = [403, 422] as const;

/**
 * Makes a world with a tenant whose pods, or one of them, refuse writes. Meanwhile passes write to all pods, mostly one
 * at a time.
 */
function greedy(chance: Chance, base: Scenario): Partial<Scenario> {
  const one = chance.isLucky(0.4) ? { name: "web-2" } : {};
  const calls = refusedCalls(chance);
  const code = chance.pick(calls.length > 1 ? REFUSING_ALL : REFUSING);
  const standing = calls.map(
    (call): HindrancePlan => ({ kind: "policy", call, code, namespace: TENANT_NAMESPACE, ...one }),
  );
  const namespaces = ["bakery", "shop", TENANT_NAMESPACE].map((name) => ({ name }));
  const others = { ...unhindered(chance, base), namespaces };
  return { ...others, hindrances: standing, standing, ...tenantActs(base, others) };
}

/** Plans the tenant's behaviour with its own random stream. In more than half of these worlds it is not a refusal. */
function tenantActs(base: Scenario, { sets = [] }: Partial<Scenario>): Partial<Scenario> {
  const chance = seededChance(base.seed, 51);
  const act = OF_TENANTS[base.seed % 50] ?? "refuses";
  const nothing = { hindrances: [], standing: [] };
  switch (act) {
    case "refuses":
      return {};
    case "webhook":
      return refusedBy({ by: act, code: chance.pick([409, 500]), waitMs: chance.pick([0, 10_000]) });
    case "size":
      return refusedBy({ by: act, code: chance.pick([413, 422, 500]) });
    case "forges":
      return { ...nothing, forgedEveryMs: chance.pick([5_000, 20_000]) };
    case "fills":
      return { ...nothing, tenantPods: 3, behaviours: [], sets: sets.map((set) => ({ ...set, isAmongTenants: true })) };
    case "budgets": {
      const budget = { namespace: TENANT_NAMESPACE, name: TENANT_NAMESPACE, selector: {}, maxUnavailable: 0 };
      const passes = base.passes.map(withoutJump).map((pass) => ({ ...pass, ...inTime(chance, pass) }));
      return { ...nothing, disruptions: [budget], behaviours: [], passes };
    }
    default:
      return act satisfies never;
  }
}

/** The tenant's behaviour by seed modulo 50. In all other worlds the tenant refuses writes. */
const OF_TENANTS: Readonly<Record<number, "refuses" | "webhook" | "size" | "forges" | "fills" | "budgets">> = {
  4: "forges",
  8: "forges",
  12: "budgets",
  16: "webhook",
  34: "fills",
  43: "size",
  46: "budgets",
};

/**
 * Refuses every write to the tenant's pods: by a webhook of its namespace, or because its pods are at an object's size
 * limit.
 */
function refusedBy(how: Pick<Extract<HindrancePlan, { kind: "policy" }>, "by" | "code" | "waitMs">): Partial<Scenario> {
  const standing: HindrancePlan[] = [{ kind: "policy", call: "PATCH pods", namespace: TENANT_NAMESPACE, ...how }];
  return { hindrances: standing, standing };
}

/** Makes a world where every pod refuses writes, or the pods of one namespace, or one pod. */
function refusals(chance: Chance, base: Scenario): Partial<Scenario> {
  const calls = refusedCalls(chance);
  const code = chance.pick(calls.length > 1 ? REFUSING_ALL : REFUSING);
  const namespace = chance.pick(["bakery", "shop"]);
  const where = chance.pick([{}, { namespace }, { namespace: "bakery", name: "web-0" }]);
  const standing = calls.map((call): HindrancePlan => ({ kind: "policy", call, code, ...where }));
  return { ...unhindered(chance, base), hindrances: standing, standing };
}

/** Returns the refused calls. In every fourth world the status of these pods is refused too. */
function refusedCalls(chance: Chance): readonly string[] {
  return chance.isLucky(0.25) ? ["PATCH pods", "PATCH pods/status"] : ["PATCH pods"];
}

/** Only the budget holds pods back, so the right number of updates is known. */
function unhindered(chance: Chance, base: Scenario): Partial<Scenario> {
  const kept: readonly Fault[] = ["partition raised", "budget changed"];
  return {
    pods: chance.between(3, 9),
    sets: base.sets.map(({ name }) => ({ name, isHot: false, isOrdinal: false })),
    strategy: { maxUnavailable: chance.pick([1, 1, 1, 2, "50%"]) },
    isForbidden: false,
    tenantPods: 0,
    strikes: base.strikes.filter(({ fault }) => !kept.includes(fault)),
  };
}

function busy(chance: Chance): Partial<Scenario> {
  const plan: HindrancePlan = { kind: "busy", rate: chance.pick([0.05, 0.2]), seconds: chance.pick([1, 3, 5, 10, 30]) };
  const strategy = { maxUnavailable: chance.pick([3, 10, "50%"]) };
  return { pods: chance.between(4, 30), strategy, hindrances: [plan], noticeMs: 1_000, readyMs: 2_000 };
}

function proxy(chance: Chance): Partial<Scenario> {
  return { hindrances: [{ kind: "proxy", rate: chance.pick([0.02, 0.1, 0.2]), code: chance.pick([404, 404, 502]) }] };
}

function lagging(chance: Chance, base: Scenario): Partial<Scenario> {
  const lag = { rate: chance.pick([0.2, 0.5, 0.9]), ms: chance.pick([500, 5_000, 30_000]) };
  return { lag, pods: chance.between(3, 8), passes: [...base.passes, ...morePasses(chance, base)] };
}

function collected(chance: Chance, base: Scenario): Partial<Scenario> {
  const strikes = also(base, chance, "SidecarSet deleted and recreated", chance.between(1, 3));
  return { isCollectedLate: true, strikes, passes: [...base.passes, ...morePasses(chance, base)] };
}

function hands(chance: Chance, base: Scenario): Partial<Scenario> {
  const strikes = also(base, chance, "ledger deleted by hand", chance.between(2, 8));
  return { strikes, passes: [...base.passes, ...morePasses(chance, base)] };
}

function clocks(chance: Chance, base: Scenario): Partial<Scenario> {
  return { areClocksSkewed: true, passes: [...base.passes, ...morePasses(chance, base)] };
}

/** Makes a world where pods come without their sidecars, and are evicted during rollouts. */
function evictions(chance: Chance, base: Scenario): Partial<Scenario> {
  return {
    areAgesKnown: true,
    keptRate: chance.pick([0, 0, 0.3]),
    release: { isEvicting: true },
    pods: chance.between(2, 6),
    strikes: also(base, chance, "pod made without sidecars", chance.between(2, 6)),
    passes: [...base.passes, ...morePasses(chance, base).map((pass) => ({ ...pass, ...cutOff(chance) }))],
    ...(chance.isLucky(0.3)
      ? { faultRate: 0.15, networkFaults: ["timeout, applied", "504", "reset after sending"] }
      : {}),
  };
}

/** Makes a world where every batch needs an approval, which may come late or never. */
function approvals(chance: Chance, base: Scenario): Partial<Scenario> {
  return {
    approver: {
      noRate: chance.pick([0, 0.3, 0.7]),
      slowRate: chance.pick([0, 0.3]),
      deafRate: chance.pick([0, 0.2]),
    },
    release: { gate: GATE },
    pods: chance.between(2, 8),
    passes: [...base.passes.map(withoutJump), ...morePasses(chance, base)],
  };
}

/** Makes a world where nodes disappear with their pods during rollouts. */
function nodes(chance: Chance, base: Scenario): Partial<Scenario> {
  return {
    isStrict: chance.isLucky(0.5),
    pods: chance.between(3, 10),
    strategy: { ...base.strategy, maxUnavailable: chance.pick([1, 2, 3, "40%"]) },
    strikes: also(base, chance, "node lost", chance.between(1, 3)),
    passes: [...base.passes, ...morePasses(chance, base)],
  };
}

/**
 * Makes a world where most releases change only values. Containers crash at any time, and a tenant writes other values
 * to its pods.
 */
function values(chance: Chance, base: Scenario): Partial<Scenario> {
  const crashing = also(base, chance, "container crashed", chance.between(2, 9));
  const forged = also({ ...base, strikes: [] }, chance, "values forged", chance.pick([0, 0, 1, 2]));
  const released = also({ ...base, strikes: [] }, chance, "spec changed", chance.between(2, 9));
  const back = also({ ...base, strikes: [] }, chance, "spec rolled back", chance.between(0, 3));
  return {
    sets: [{ name: VALUES_SET, isHot: false, isOrdinal: false }],
    tenantPods: 0,
    // In these worlds an imageID can show another spelling of the image.
    behaviours: base.behaviours.filter((behaviour) => behaviour !== "same imageID"),
    isStrict: chance.isLucky(0.5),
    pods: chance.between(1, 6),
    strikes: [...crashing, ...forged, ...released, ...back],
    noticeMs: chance.pick([50, 10_000, 20_000]),
    passes: [...base.passes, ...morePasses(chance, base)].map((pass) => ({ ...pass, sidecarSet: undefined })),
  };
}

const DRAINS = ["1s", "5s", "20s", "1m"] as const;
/** Features that occur together with drains, in half of their worlds. */
const BESIDE_DRAINS = ["approvals", "metrics", "disruptions", "waves", "nodes", "history", "values"] as const;

/**
 * Makes a world where pods leave endpoints before their sidecars restart. Half of these worlds have another feature
 * too.
 */
function drains(chance: Chance, base: Scenario): Partial<Scenario> {
  const drain = chance.pick(DRAINS);
  const strategy = { ...base.strategy, maxUnavailable: chance.pick([1, 1, 2, 3, "50%"]) };
  const strikes = also(base, chance, "spec changed", chance.between(1, 5));
  const pods = chance.between(2, 7);
  const alone = { strategy, strikes, pods, passes: [...base.passes, ...morePasses(chance, base)] };
  if (chance.isLucky(0.5)) return { ...alone, release: { drain } };
  const kind = chance.pick(BESIDE_DRAINS);
  const calm = { sets: base.sets.map(({ isAmongTenants: _, ...set }) => set), tenantPods: 0 };
  const own = kind === "waves" ? {} : calm;
  const beside = WIDENINGS[kind](chance, { ...base, ...alone, ...own });
  return { ...alone, ...own, ...beside, release: { ...beside.release, drain } };
}

/** Features that occur together with pulls, in turn; undefined: none. */
const BESIDE_PULLS = [
  "waves",
  "metrics",
  "approvals",
  "disruptions",
  "replacements",
  "evictions",
  "nodes",
  "history",
  "drains",
  "ordinals",
  "hot",
  "owners",
  "partition",
  undefined,
] as const;

/** Makes a world where nodes pull images before pods are updated. Most of these worlds have another feature too. */
function pulls(chance: Chance, base: Scenario): Partial<Scenario> {
  const own = pullsAlone(chance, base);
  const other = BESIDE_PULLS[Math.floor(base.seed / 50) % BESIDE_PULLS.length];
  const beside = besidePulls(other, chance, { ...base, ...own });
  return { ...own, ...beside, release: { ...own.release, ...beside.release } };
}

function besidePulls(other: (typeof BESIDE_PULLS)[number], chance: Chance, base: Scenario): Partial<Scenario> {
  const withSets = (more: Partial<Scenario["sets"][number]>) => ({
    sets: base.sets.map((set) => ({ ...set, ...more })),
  });
  switch (other) {
    case undefined:
      return {};
    case "hot":
      return withSets({ isHot: true });
    case "ordinals":
      return withSets({ isOrdinal: true });
    case "owners":
      return withSets({ perOwner: chance.pick(["1", "2"]) });
    case "partition":
      return { strategy: { ...base.strategy, partition: chance.pick([1, 2, "34%"]) } };
    case "drains":
      return { release: { drain: chance.pick(DRAINS) } };
    default:
      return WIDENINGS[other](chance, base);
  }
}

/** Makes a world with pulls and no other feature. Mostly one node cannot pull, reports nothing, or has no room. */
function pullsAlone(chance: Chance, base: Scenario): Partial<Scenario> {
  const atOnce = chance.pick([1, 1, 2, 3, 10]);
  const plan: PullPlan = {
    nodes: chance.between(2, 5),
    atOnce,
    slowMs: chance.pick([500, 5_000, 20_000]),
    first: chance.pick(["pulls", "cannot pull", "says nothing", "has no room"]),
  };
  const strikes = also(base, chance, "spec changed", chance.between(0, 3));
  const forbidden: HindrancePlan = { kind: "policy", call: "CREATE pods", code: 403 };
  const passes = [...base.passes, ...morePasses(chance, base)].map((pass) => ({ ...pass, ...inTime(chance, pass) }));
  return {
    ...unhindered(chance, { ...base, strikes }),
    sets: base.sets.map(({ name }) => ({ name, isHot: false, isOrdinal: false })),
    pulls: plan,
    passes,
    hindrances: chance.isLucky(0.2) ? [forbidden] : [],
    release: { prePull: atOnce },
  };
}

/** Makes a world with many releases and rollbacks, where few revisions are kept. */
function history(chance: Chance, base: Scenario): Partial<Scenario> {
  const forth = also(base, chance, "spec changed", chance.between(3, 9));
  const strikes = [...forth, ...also({ ...base, strikes: [] }, chance, "spec rolled back", chance.between(1, 5))];
  const release = { historyLimit: chance.pick([0, 1, 2, 3]) };
  return { release, strikes, pods: chance.between(2, 6), passes: [...base.passes, ...morePasses(chance, base)] };
}

/** Makes a world where selectors become wider and narrower, and pods that lack sidecars are evicted. */
function selections(chance: Chance, base: Scenario): Partial<Scenario> {
  const evicting = evictions(chance, base);
  const wider = also({ ...base, strikes: evicting.strikes ?? [] }, chance, "selection changed", chance.between(1, 4));
  return {
    ...evicting,
    sets: base.sets.map(({ perOwner: _, ...set }) => ({ ...set, isOrdinal: false })),
    areLabelsVaried: true,
    release: { ...evicting.release, selector: anySelector(chance) },
    strikes: wider,
  };
}

const WORKLOADS: readonly (readonly Workload[])[] = [
  ["web"],
  ["cast"],
  ["cast", "web"],
  ["cast", "job"],
  ["web", "ward"],
];

/** Returns the text of the annotation. One of 22 texts cannot be parsed, and some also name Jobs. */
function wordsOf(isMissedToo: boolean, nth: number): string {
  const words = ["NotUpgradable", ...(nth % 2 === 0 ? [] : ["Jobs"]), ...(isMissedToo ? ["Missed"] : [])];
  return [...words, ...(nth % 11 === 7 ? ["NotReady"] : [])].join(", ");
}

/** Makes a world with releases that need new pods, and others that update pods in place. */
function replacements(chance: Chance, base: Scenario): Partial<Scenario> {
  // Because of pods that never work, pods that missed their sidecars would wait.
  const isMissedToo = base.tenantPods === undefined && chance.isLucky(0.3);
  const strikes = also(base, chance, "spec changed", chance.between(1, 4));
  const bare = isMissedToo ? chance.between(0, 2) : 0;
  const nth = Math.floor(base.seed / 50);
  const workloads = WORKLOADS[nth % WORKLOADS.length] ?? ["web"];
  const made = also({ ...base, strikes }, chance, "pod made without sidecars", bare);
  const wanted = also(
    { ...base, strikes: made },
    chance,
    "injection held",
    isMissedToo || nth % 2 === 0 ? 0 : chance.between(1, 3),
  );
  return {
    workloads,
    areSuccessorsLate: nth % 3 === 1,
    areClocksSkewed: nth % 5 === 3,
    areAgesKnown: true,
    reshapeRate: chance.pick([0.3, 0.6, 1]),
    isWebhookUp: !isMissedToo,
    keptRate: chance.pick([0, 0, 0.3]),
    release: { replaced: wordsOf(isMissedToo, nth) },
    // Owners' budgets are judged where pods are not replaced, and ordinals where all pods have them.
    sets: base.sets.map(({ perOwner: _, ...set }) => ({
      ...set,
      isOrdinal: set.isOrdinal && workloads.length === 1 && workloads[0] === "web",
    })),
    pods: chance.between(2, 8),
    // The number of a controller's pods does not show a pod that was recreated without an eviction.
    strikes: workloads.includes("cast")
      ? wanted.filter(({ fault }) => fault !== "pod recreated under its name")
      : wanted,
    passes: [...base.passes, ...morePasses(chance, base).map((pass) => ({ ...pass, ...cutOff(chance) }))],
  };
}

const STRATEGIES: Readonly<Record<WorkloadKind, readonly Strategy[]>> = {
  Deployment: [
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } },
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2, maxSurge: "50%" } },
    { type: "Recreate" },
  ],
  StatefulSet: [
    { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
    { type: "RollingUpdate" },
    { type: "RollingUpdate", rollingUpdate: { partition: 1 } },
    { type: "OnDelete" },
  ],
  DaemonSet: [
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "50%" } },
    { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
    { type: "OnDelete" },
  ],
};

function anyWorkload(chance: Chance, index: number, namespaces: readonly string[]): WorkloadPlan {
  const kind = chance.pick(["Deployment", "Deployment", "StatefulSet", "DaemonSet"] as const);
  const isNamesake = kind === "Deployment" && chance.isLucky(0.1);
  return {
    kind,
    namespace: chance.pick(namespaces),
    name: `${kind.toLowerCase()}-${index}`,
    replicas: isNamesake ? 0 : chance.between(1, 3),
    strategy: chance.pick(chance.isLucky(0.5) ? STRATEGIES[kind].slice(0, 2) : STRATEGIES[kind]),
    isParallel: kind === "StatefulSet" && chance.isLucky(0.3),
    isAnnotated: chance.isLucky(0.6),
    isNamesake,
  };
}

const RESTARTERS = ["deployments", "deployments", "statefulsets", "daemonsets"] as const;

/** Returns an API server's refusal to read workloads, or to restart them. */
function inTheWayOfRestarts(chance: Chance): readonly HindrancePlan[] {
  const plan = (verb: string): HindrancePlan => ({
    kind: "policy",
    call: `${verb} ${chance.pick(RESTARTERS)}`,
    code: verb === "GET" ? 403 : chance.pick([403, 422] as const),
  });
  return [plan("PATCH"), ...(chance.isLucky(0.3) ? [plan("GET")] : [])];
}

/**
 * Makes a world with releases that only new pods can have. The workloads' own rolling updates create these pods. Some
 * worlds have waves or approvals.
 */
function restarts(chance: Chance, base: Scenario): Partial<Scenario> {
  const nth = Math.floor(base.seed / 50);
  const areWaves = nth % 4 === 1;
  const isAsked = nth % 4 === 3;
  const names = areWaves ? ["bakery", "shop", "forge"] : ["bakery", "shop"];
  const plans = Array.from({ length: chance.between(2, 4) }, (_, index) => anyWorkload(chance, index, names));
  const pods = plans.reduce((sum, { replicas, isNamesake }) => sum + (isNamesake ? 2 : replicas), 0);
  const kept = base.strikes.filter(({ fault }) => fault !== "pod recreated under its name");
  const released = also({ ...base, strikes: kept }, chance, "spec changed", chance.between(1, 4));
  const changed = also({ ...base, strikes: released }, chance, "workload changed", chance.between(0, 3));
  const asked = also(
    { ...base, strikes: changed },
    chance,
    "restarts changed",
    nth % 3 === 0 ? chance.between(1, 3) : 0,
  );
  const passes = areWaves ? manyPasses(chance, base) : morePasses(chance, base);
  return {
    restarts: { plans, lagMs: chance.pick([50, 1_000, 5_000]) },
    ...(areWaves ? { namespaces: names.map((name) => ({ name, labels: anyNamespaceLabels(chance) })) } : {}),
    ...(isAsked ? { approver: { noRate: chance.pick([0, 0.3]), slowRate: 0.2, deafRate: chance.pick([0, 0.2]) } } : {}),
    ...(chance.isLucky(0.2) ? { hindrances: inTheWayOfRestarts(chance) } : {}),
    areAgesKnown: true,
    areClocksSkewed: nth % 5 === 3,
    isWebhookUp: true,
    isForbidden: false,
    reshapeRate: chance.pick([0.4, 0.8, 1]),
    release: {
      replaced: `NotUpgradable, Restart${chance.pick(["", "", "=2", "=3"])}`,
      ...(areWaves ? { waves: anyWaves(chance, base.seed) } : {}),
      ...(isAsked ? { gate: GATE } : {}),
    },
    sets: base.sets.map(({ perOwner: _, isAmongTenants: __, ...set }) => ({ ...set, isOrdinal: false })),
    strategy: { ...base.strategy, maxUnavailable: chance.pick([1, 2, 2, 3, "50%", "100%"]) },
    tenantPods: 0,
    pods,
    noticeMs: chance.pick([50, 1_000]),
    readyMs: chance.pick([50, 2_000, 5_000]),
    strikes: asked,
    passes: [...base.passes.map(withoutJump), ...passes.map((pass) => ({ ...pass, ...cutOff(chance) }))],
  };
}

/** The start time of workloads whose pods partly lack sidecars. */
const FURNISHED_MS = 3_000;

/**
 * Makes a world where restarts of workloads give pods their missed sidecars. While the webhook is down new pods miss
 * them again.
 */
function missedRestarts(chance: Chance, base: Scenario): Partial<Scenario> {
  const widened = restarts(chance, base);
  const { restarts: own = { plans: [], lagMs: 50 } } = widened;
  const plans = own.plans.map((plan) => {
    const isSpared = chance.isLucky(0.15);
    const bare = chance.pick(["all", "all", "some", "none"] as const);
    return { ...plan, ...(isSpared ? { name: `spared-${plan.name}` } : {}), ...(bare === "none" ? {} : { bare }) };
  });
  const words = chance.pick(["Missed", "Missed", "NotUpgradable, Missed"]);
  const strikes = also(
    { ...base, strikes: widened.strikes ?? [] },
    chance,
    "pod made without sidecars",
    chance.pick([0, 0, 0, 1]),
  );
  const later = (pass: PassPlan) => ({ ...pass, startMs: pass.startMs + FURNISHED_MS + 500 });
  return {
    ...widened,
    restarts: { ...own, plans, furnishedMs: FURNISHED_MS, outages: anyOutages(chance) },
    reshapeRate: words === "Missed" ? chance.pick([0, 0, 0.3]) : chance.pick([0.3, 0.8]),
    release: { ...widened.release, replaced: `${words}, Restart${chance.pick(["", "", "=2", "=3"])}` },
    strikes,
    passes: (widened.passes ?? []).map(later),
  };
}

/** Returns the webhook's outages; half of these worlds have none. */
function anyOutages(chance: Chance) {
  const untilMs = chance.pick([0, 0, 0, 0, 10_000, 30_000, TROUBLE_MS]);
  const fromMs = chance.below(TROUBLE_MS);
  return [
    { fromMs: 0, toMs: untilMs },
    ...(chance.isLucky(0.2) ? [{ fromMs, toMs: fromMs + chance.between(5_000, 40_000) }] : []),
  ];
}

/** Makes a world where teams follow each other. Namespaces without a team come last. */
function waves(chance: Chance, base: Scenario): Partial<Scenario> {
  const names = ["bakery", "shop", "forge", "mill", "office"].slice(0, chance.between(2, 5));
  const strikes = also(base, chance, "waves changed", chance.between(0, 3));
  const isMoving = chance.isLucky(0.3);
  return {
    pods: chance.between(3, 9),
    namespaces: names.map((name) => ({ name, labels: anyNamespaceLabels(chance) })),
    sets: base.sets.map(({ perOwner: _, ...set }) => ({ ...set, isOrdinal: false })),
    strategy: { ...base.strategy, maxUnavailable: chance.pick([1, 2, 3, "50%"]) },
    noticeMs: chance.pick([50, 1_000]),
    readyMs: chance.pick([50, 2_000, 5_000]),
    release: { waves: anyWaves(chance, base.seed) },
    areClocksSkewed: base.seed % 4 === 2,
    strikes: isMoving ? also({ ...base, strikes }, chance, "namespace relabelled", chance.between(1, 3)) : strikes,
    passes: [...base.passes.map(withoutJump), ...manyPasses(chance, base)],
  };
}

/** Makes a world where each batch needs good metrics. Prometheus reports good values, bad ones, or none. */
function metrics(chance: Chance, base: Scenario): Partial<Scenario> {
  return {
    prometheus: {
      badRate: chance.pick([0, 0.2, 0.5, 0.7]),
      nothingRate: chance.pick([0, 0.2, 0.4]),
      deafRate: chance.pick([0, 0.2]),
    },
    release: { checks: anyChecks(chance) },
    pods: chance.between(2, 8),
    sets: base.sets.map(({ perOwner: _, isAmongTenants: __, ...set }) => ({ ...set, isOrdinal: false })),
    tenantPods: 0,
    strikes: also(base, chance, "checks changed", chance.between(0, 3)),
    passes: [...base.passes.map(withoutJump), ...manyPasses(chance, base)],
  };
}

/** Makes a world where each wave must pass its own metric checks. */
function waveChecks(chance: Chance, base: Scenario): Partial<Scenario> {
  const inWaves = waves(chance, base);
  const changed = also(
    { ...base, strikes: inWaves.strikes ?? [] },
    chance,
    "checks changed",
    chance.pick([0, 0, 1, 2]),
  );
  return {
    ...metrics(chance, base),
    ...inWaves,
    prometheus: {
      badRate: chance.pick([0, 0.1, 0.3, 0.5]),
      nothingRate: chance.pick([0, 0.2]),
      deafRate: chance.pick([0, 0.1]),
    },
    sets: base.sets.map(({ perOwner: _, isAmongTenants: __, ...set }) => ({ ...set, isOrdinal: false })),
    tenantPods: 0,
    release: { checks: bothChecks(chance), waves: anyCheckedWaves(chance, base.seed) },
    strikes: changed,
  };
}

/** Returns waves, some with their own checks, or with none. */
export function anyCheckedWaves(chance: Chance, seed: number): readonly WavePlan[] {
  return anyWaves(chance, seed).map((wave) => {
    const named = chance.pick([{}, {}, { checks: ["errors"] }, { checks: ["restarts"] }, { checks: [] }]);
    return { ...wave, soakSeconds: Math.min(wave.soakSeconds ?? 0, 15), ...named };
  });
}

const CHECKED = ["errors", "restarts"] as const;

export function anyChecks(chance: Chance): readonly CheckPlan[] {
  return bothChecks(chance).slice(0, chance.pick([1, 1, 2]));
}

export function bothChecks(chance: Chance): readonly CheckPlan[] {
  return CHECKED.map((name) => ({
    name,
    query: `${name}{sidecarset="$(NAME)"}`,
    max: chance.between(1, 8),
    failuresAllowed: chance.pick([0, 0, 1, 2]),
    intervalSeconds: chance.pick([1, 1, 2, 3, 5, 10, 25]),
  }));
}

/**
 * Makes a world where owners limit how many of their pods may be down. Other worlds have calls or nodes that stay
 * silent for more than two minutes, and clocks that are wrong by as much. No judge could know of these here.
 */
function disruptions(chance: Chance, base: Scenario): Partial<Scenario> {
  const budgets = ["bakery", "shop"].flatMap((namespace): readonly BudgetPlan[] => {
    const budget = { namespace, name: namespace, selector: {}, maxUnavailable: chance.pick([0, 1, 1, 2]) };
    const second = { ...budget, name: `${namespace}-blue`, selector: { matchLabels: { tier: "blue" } } };
    return chance.isLucky(0.4) ? [budget, { ...second, maxUnavailable: chance.pick([1, 2]) }] : [budget];
  });
  const strikes = also(base, chance, "disruption budget changed", chance.between(1, 6));
  const passes = [...base.passes, ...morePasses(chance, base)];
  return {
    disruptions: budgets,
    pods: chance.between(3, 8),
    areLabelsVaried: chance.isLucky(0.5),
    sets: base.sets.map(({ perOwner: _, isAmongTenants: __, ...set }) => ({ ...set, isHot: false })),
    tenantPods: 0,
    behaviours: [],
    strategy: { ...base.strategy, maxUnavailable: chance.pick([1, 2, 3, "50%", "100%"]) },
    strikes,
    passes: passes.map(withoutJump).map((pass) => ({ ...pass, ...inTime(chance, pass) })),
  };
}

function inTime(chance: Chance, { blow }: PassPlan): Pick<PassPlan, "blow"> {
  if (!blow) return chance.isLucky(0.3) ? { blow: { ...killed(chance), atCall: chance.below(40) } } : {};
  return blow.kind.startsWith("freeze")
    ? { blow: killed(chance) }
    : { blow: { ...blow, lateMs: chance.below(LATE_MS) } };
}

const LATE_MS = 30_000;

function killed(chance: Chance): NonNullable<PassPlan["blow"]> {
  const kind = chance.pick(["killBefore", "killAfter", "killLate"] as const);
  return {
    atCall: chance.below(3),
    ofPods: chance.isLucky(0.5),
    lateMs: chance.below(LATE_MS),
    frozenMs: FROZEN_MS,
    kind,
  };
}

const withoutJump = ({ jump: _, ...pass }: PassPlan): PassPlan => pass;

/** Returns waves in an order that stays the same in this world, because the product knows a passed wave by its name. */
export function anyWaves(chance: Chance, seed: number): readonly WavePlan[] {
  const teams = [...TEAMS.slice(seed % 3), ...TEAMS.slice(0, seed % 3)].slice(0, 1 + (seed % 7 === 0 ? 1 : 2));
  return teams.map((team) => ({
    name: team,
    namespaceSelector: { matchLabels: { team } },
    ...(chance.isLucky(0.6) ? { soakSeconds: chance.pick([1, 5, 15, 40, 90]) } : {}),
    ...(chance.isLucky(0.1) ? { paused: true } : {}),
  }));
}

/** Returns passes at regular times. One of them notices that a wave has soaked. */
function manyPasses(chance: Chance, { sets }: Scenario): Scenario["passes"] {
  const everyMs = chance.pick([5_000, 10_000, 20_000]);
  return Array.from({ length: Math.floor(TROUBLE_MS / everyMs) }, (_, index) => ({
    startMs: everyMs * (index + 1) - chance.below(3_000),
    deadlineMs: chance.pick([8_000, 25_000]),
    isFollowing: chance.isLucky(0.7),
    ...(chance.isLucky(0.6) ? { sidecarSet: chance.pick(sets).name } : {}),
  }));
}

/** Returns a selector as in the worlds of namespaces. */
export function anySelector(chance: Chance): LabelSelector {
  return chance.pick(SELECTORS);
}

/** Ends a pass near a moment when it takes pods down. */
function cutOff(chance: Chance): Pick<PassPlan, "blow"> {
  if (!chance.isLucky(0.4)) return {};
  const kind = chance.pick(["killLate", "killLate", "freezeBefore"] as const);
  const lateMs = chance.between(1_000, TROUBLE_MS);
  return { blow: { atCall: chance.below(2), ofPods: true, lateMs, frozenMs: FROZEN_MS, kind } };
}

/** Returns passes that start while others work, for one SidecarSet or for all. */
function morePasses(chance: Chance, { sets }: Scenario): Scenario["passes"] {
  return Array.from({ length: chance.between(1, 3) }, () => ({
    startMs: chance.below(TROUBLE_MS),
    deadlineMs: chance.pick([8_000, 25_000, 50_000]),
    isFollowing: chance.isLucky(0.7),
    ...(chance.isLucky(0.6) ? { sidecarSet: chance.pick(sets).name } : {}),
  }));
}

/** Returns the scenario's strikes and `count` more of this fault. */
function also({ strikes }: Scenario, chance: Chance, fault: Fault, count: number): Scenario["strikes"] {
  const own = Array.from({ length: count }, () => ({ atMs: chance.below(TROUBLE_MS), fault }));
  return [...strikes, ...own];
}
