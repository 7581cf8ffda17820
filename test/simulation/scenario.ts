/** Makes of a seed the fate of a world: SidecarSets and pods, actors and times, and faults. */
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
  /** gate StrictMaxUnavailable */
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
  /** absent: an ordinary one */
  readonly kind?: WorldKind;
  /** the first resourceVersion; absent: 1 */
  readonly firstVersion?: number;
  /** namespaces of pods; absent: two without labels */
  readonly namespaces?: readonly NamespacePlan[];
  /** no two pods in a row have the same labels; absent: all have */
  readonly areLabelsVaried?: boolean;
  /** lists of pods may show an older state; absent: the present one */
  readonly lag?: { readonly rate: number; readonly ms: number };
  /** the garbage collector decides first and deletes later, in a call of its own */
  readonly isCollectedLate?: boolean;
  /** all processes have different and wrong clocks */
  readonly areClocksSkewed?: boolean;
  /** pods have creation times, so that missed sidecars can be recognized; absent: all are very old */
  readonly areAgesKnown?: boolean;
  /** share of evictions that a PodDisruptionBudget refuses while there is trouble; absent: none */
  readonly keptRate?: number;
  /** owners of pods, in turn: `nameOfWorkload`; absent: StatefulSets own all */
  readonly workloads?: readonly Workload[];
  /** the next pod of a controller may be a minute late; absent: two seconds */
  readonly areSuccessorsLate?: boolean;
  /** the webhook is never away when a pod comes back; absent: at times */
  readonly isWebhookUp?: boolean;
  /** the approver of batches while there is trouble; absent: none */
  readonly approver?: ApproverPlan;
  /** the metrics server while there is trouble; absent: none */
  readonly prometheus?: PrometheusPlan;
  /** gate RespectDisruptionBudgets, and its budgets; absent: no budgets are read */
  readonly disruptions?: readonly BudgetPlan[];
  /** workloads with controllers, whose pods all pods are at first; absent: pods have owners by their names */
  readonly restarts?: {
    readonly plans: readonly WorkloadPlan[];
    readonly lagMs: number;
    /** time of their creation; absent: from the start */
    readonly furnishedMs?: number;
    /** while the webhook is down, so that their pods come without sidecars; absent: never */
    readonly outages?: readonly { readonly fromMs: number; readonly toMs: number }[];
  };
  /** obstacles while there is trouble; absent: none */
  readonly hindrances?: readonly HindrancePlan[];
  /** policies that keep refusing after all other faults are over, until this was judged; absent: none */
  readonly standing?: readonly HindrancePlan[];
  /**
   * milliseconds between a tenant's forged records, while there is trouble and until others were judged; absent: none
   */
  readonly forgedEveryMs?: number;
  /** further pods that finish, and pods with gates; absent: none */
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

/** The largest advance of a clock in worlds where it matters. */
const MOST_FAST_MS = 40_000;

export function scenarioOf(seed: number): Scenario {
  return widened(ordinaryScenarioOf(seed));
}

/** The scenario of a seed as if it had no kind. */
export function ordinaryScenarioOf(seed: number): Scenario {
  const chance = seededChance(seed, 1);
  const has = (probability: number) => chance.isLucky(probability);
  // Drawn from its own stream, so that the other parts stay.
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
 * Worlds where only tenants cause trouble, every twentieth: no rollout waits for their pods, stops, or is taken back
 * because of them. Pods that were never ready are recognized by the clocks of a pass and of a kubelet, so clocks that
 * are more than a minute fast are for other worlds.
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

/** A budget of owners in every eighteenth world. It draws from its own stream, so the other parts stay. */
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

/** At least one of the items. */
function some<T>(chance: Chance, items: readonly T[]): readonly T[] {
  const chosen = items.filter(() => chance.isLucky(0.4));
  return chosen.length > 0 ? chosen : [chance.pick(items)];
}
