/** Makes the scenario of a world from a seed: its SidecarSets and pods, its actors with their times, and its faults. */
import type { Labels } from "../../shared/api/kubernetes.ts";
import type { UpdateStrategy } from "../../shared/api/sidecarset.ts";
import type { ApproverPlan } from "./approver.ts";
import type { BystanderPlan } from "./bystanders.ts";
import { type Chance, seededChance } from "./chance.ts";
import type { BudgetPlan } from "./disruptions.ts";
import { NETWORK_FAULTS, type NetworkFault } from "./faults.ts";
import type { HindrancePlan } from "./hindrances.ts";
import type { WorldKind } from "./kinds.ts";
import type { Behaviour } from "./kubelet.ts";
import { POD_NAMESPACES, type Release, SET_NAMES, type SetPlan, type Workload } from "./objects.ts";
import { overtakenOf, type Plan, planOf, reboundOf } from "./plans.ts";
import type { PrometheusPlan } from "./prometheus.ts";
import type { PullPlan } from "./pulls.ts";
import { widened } from "./wide-worlds.ts";
import type { WorkloadPlan } from "./workload-objects.ts";

export interface Scenario extends Plan {
  readonly seed: number;
  readonly pods: number;
  /** number of tenants' pods, whose own containers never work; absent: none */
  readonly tenantPods?: number;
  readonly sets: readonly SetPlan[];
  /** value of the feature gate StrictMaxUnavailable */
  readonly isStrict: boolean;
  /** first strategy of all SidecarSets */
  readonly strategy: UpdateStrategy;
  readonly pageSize: number;
  readonly networkFaults: readonly Exclude<NetworkFault, "403 in one namespace">[];
  readonly faultRate: number;
  readonly slowRate: number;
  readonly eventRate: number;
  readonly expireRate: number;
  readonly isForbidden: boolean;
  readonly behaviours: readonly Behaviour[];
  readonly badRate: number;
  /** share of releases that change more than an image: older pods cannot be upgraded in place */
  readonly reshapeRate: number;
  readonly noticeMs: number;
  readonly readyMs: number;
  /** the kind of world; absent: an ordinary world */
  readonly kind?: WorldKind;
  /** the first resourceVersion; absent: 1 */
  readonly firstVersion?: number;
  /** namespaces of pods; absent: two without labels */
  readonly namespaces?: readonly NamespacePlan[];
  /** true if neighbouring pods never have the same labels; absent: all pods have the same */
  readonly areLabelsVaried?: boolean;
  /** share of lists of pods that show an older state, and its greatest age; absent: lists show the present state */
  readonly lag?: { readonly rate: number; readonly ms: number };
  /** true if the garbage collector decides first and deletes later, in a second call */
  readonly isCollectedLate?: boolean;
  /** true if all processes have different, wrong clocks */
  readonly areClocksSkewed?: boolean;
  /** true if pods have creation times, so that missed sidecars can be recognized; absent: all pods are very old */
  readonly areAgesKnown?: boolean;
  /** share of evictions that a PodDisruptionBudget refuses while faults occur; absent: none */
  readonly keptRate?: number;
  /** kinds of the pods' owners, in turn: `nameOfWorkload`; absent: StatefulSets own all pods */
  readonly workloads?: readonly Workload[];
  /** true if controllers may take a minute to create the next pod; absent: two seconds */
  readonly areSuccessorsLate?: boolean;
  /** true if the webhook always answers when a pod comes back; absent: sometimes it does not */
  readonly isWebhookUp?: boolean;
  /** the approver of batches while faults occur; absent: none */
  readonly approver?: ApproverPlan;
  /** the metrics server while faults occur; absent: none */
  readonly prometheus?: PrometheusPlan;
  /** the budgets, with feature gate RespectDisruptionBudgets on; absent: no budgets are read */
  readonly disruptions?: readonly BudgetPlan[];
  /** workloads with controllers, which own all pods at the start; absent: pods have owners by their names */
  readonly restarts?: {
    readonly plans: readonly WorkloadPlan[];
    readonly lagMs: number;
    /** time of the workloads' creation; absent: the start */
    readonly furnishedMs?: number;
    /** times when the webhook is down, so that new pods lack sidecars; absent: never */
    readonly outages?: readonly { readonly fromMs: number; readonly toMs: number }[];
  };
  /** obstacles while faults occur; absent: none */
  readonly hindrances?: readonly HindrancePlan[];
  /** policies that refuse until they were judged, after all other faults have ended; absent: none */
  readonly standing?: readonly HindrancePlan[];
  /** milliseconds between a tenant's forged records, until the other judges have finished; absent: no forged records */
  readonly forgedEveryMs?: number;
  /** additional pods that finish, and pods with gates; absent: none */
  readonly bystanders?: readonly BystanderPlan[];
  /** the nodes' pulls before updates; absent: no pulls */
  readonly pulls?: PullPlan;
  /** further fields of all SidecarSets */
  readonly release?: Pick<
    Release,
    | "selector"
    | "namespaceSelector"
    | "isEvicting"
    | "replaced"
    | "gate"
    | "historyLimit"
    | "waves"
    | "checks"
    | "drain"
    | "prePull"
    | "areImagesFixed"
  >;
}

interface NamespacePlan {
  readonly name: string;
  readonly labels?: Labels;
}

export function namespacesOf({
  namespaces,
}: {
  readonly namespaces?: Scenario["namespaces"] | undefined;
}): readonly NamespacePlan[] {
  return namespaces ?? POD_NAMESPACES.map((name) => ({ name }));
}

const SENT_FAULTS = NETWORK_FAULTS.filter((fault) => fault !== "403 in one namespace");
const BEHAVIOURS = ["crash loop", "image pull error", "silent kubelet", "same imageID"] as const;

/** The most that a clock is fast in worlds where that matters. */
const MOST_FAST_MS = 40_000;

export function scenarioOf(seed: number): Scenario {
  return widened(ordinaryScenarioOf(seed));
}

/** Returns the scenario that a seed has without its kind of world. */
export function ordinaryScenarioOf(seed: number): Scenario {
  const chance = seededChance(seed, 1);
  const has = (probability: number) => chance.isLucky(probability);
  // A random stream of its own leaves the other parts of the scenario unchanged.
  const isOrdinal = seededChance(seed, 9).isLucky(0.2);
  const isRebound = seededChance(seed, 16).isLucky(0.03);
  const isOvertaken = seededChance(seed, 18).isLucky(0.06);
  const names = SET_NAMES.slice(0, chance.pick([1, 1, 1, 1, 1, 1, 1, 2, 2, 3]));
  const scenario = {
    seed,
    pods: chance.pick([1, 2, 3, 3, 3, 4, 4, 5]),
    sets: names.map((name) => ({ name, isHot: has(0.15), isOrdinal, ...ownerBudgetOf(seed) })),
    isStrict: has(0.15),
    strategy: strategyOf(chance),
    pageSize: has(0.3) ? chance.between(1, 2) : 500,
    ...planOf(chance, names),
    networkFaults: some(chance, SENT_FAULTS),
    faultRate: has(0.5) ? chance.pick([0.02, 0.05, 0.15]) : 0,
    slowRate: has(0.4) ? chance.pick([0.02, 0.1]) : 0,
    eventRate: has(0.4) ? chance.pick([0.1, 0.3]) : 0,
    expireRate: has(0.5) ? 0.3 : 0,
    isForbidden: has(0.08),
    behaviours: has(0.4) ? some(chance, BEHAVIOURS) : [],
    reshapeRate: 0.06,
    badRate: chance.pick([0.1, 0.5]),
    noticeMs: chance.pick([50, 1_000, 10_000]),
    readyMs: chance.pick([50, 2_000, 15_000]),
    ...(isRebound ? reboundScene(seed, names) : {}),
    ...(isOvertaken ? overtakenScene(seed, names) : {}),
  };
  return seed % 20 === 13 ? { ...scenario, ...tenantScene(scenario) } : scenario;
}

function reboundScene(seed: number, names: readonly string[]) {
  const chance = seededChance(seed, 17);
  const times = { noticeMs: 1_000, readyMs: 15_000 };
  return { ...reboundOf(chance, names), ...times, pods: chance.pick([4, 5]), strategy: { maxUnavailable: 2 } };
}

function overtakenScene(seed: number, names: readonly string[]) {
  const chance = seededChance(seed, 19);
  const weightPriority = [{ weight: 1, matchSelector: { matchLabels: { tier: "green" } } }];
  const strategy = { maxUnavailable: 1, priorityStrategy: { weightPriority } };
  return { ...overtakenOf(chance, names), noticeMs: 1_000, readyMs: 15_000, pageSize: 500, strategy };
}

/**
 * In every twentieth world only tenants cause trouble. No rollout may wait for their pods, stop, or be undone because
 * of them. The clocks of a pass and of a kubelet decide whether a pod was ever ready. Clocks that are more than a
 * minute fast belong to other worlds.
 */
function tenantScene({ seed, sets, passes }: Scenario): Partial<Scenario> {
  const chance = seededChance(seed, 20);
  return {
    tenantPods: chance.between(1, 3),
    sets: sets.map(({ name }) => ({ name, isHot: false, isOrdinal: false, isAmongTenants: true })),
    behaviours: [],
    isForbidden: false,
    passes: passes.map(({ jump, ...pass }) =>
      jump ? { ...pass, jump: { ...jump, byMs: Math.min(jump.byMs, MOST_FAST_MS) } } : pass,
    ),
  };
}

/** Every eighteenth world has a budget for each owner. Its own random stream leaves the other parts unchanged. */
function ownerBudgetOf(seed: number): Pick<SetPlan, "perOwner"> {
  return seed % 18 === 17 ? { perOwner: seededChance(seed, 10).pick(["1", "1", "2", "50%"]) } : {};
}

function strategyOf(chance: Chance): UpdateStrategy {
  const weightPriority = [{ weight: 1, matchSelector: { matchLabels: { tier: "green" } } }];
  return {
    maxUnavailable: chance.pick([1, 1, 1, 2, 2, "50%", 3]),
    ...(chance.isLucky(0.25) ? { partition: chance.pick([1, 2, "50%"]) } : {}),
    ...(chance.isLucky(0.25) ? { priorityStrategy: { weightPriority } } : {}),
  };
}

/** Returns at least one of the items. */
function some<T>(chance: Chance, items: readonly T[]): readonly T[] {
  const chosen = items.filter(() => chance.isLucky(0.4));
  return chosen.length > 0 ? chosen : [chance.pick(items)];
}
