/** Reads disruption budgets, only with the gate RespectDisruptionBudgets. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import type { RolloutSettings } from "../../core/rollout/rollout-settings.ts";
import {
  type BudgetKind,
  type DisruptionBudget,
  disruptionBudgetOf,
  keysOfBudgets,
} from "../../core/rollout/rules/disruption-budgets/disruption-budget.ts";
import type { Also } from "../../core/rollout/upgrade/project-pod.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, DISRUPTION_BUDGETS, type Resource, UNAVAILABLE_BUDGETS } from "../../kube/port.ts";
import type { Clock } from "../loop/clock.ts";
import { mapLimited } from "../loop/concurrency-limit.ts";
import { listAll } from "./observe-pods.ts";

/** Milliseconds for which read budgets are reused, for any SidecarSet. A write to a changed budget fails. */
const GOOD_FOR_MS = 500;
/** Factor from the time of reading to the time of reuse: 20 MB of a tenant's budgets take a second to read. */
const SPARED = 10;
/** Longest reuse. A write fails only for a known budget, so pods of a new one go down unseen until then. */
const MOST_MS = 10_000;

export const ROLE = "apply infra/rbac/optional/disruption-budgets.yaml, or switch the gate off";

export const RESOURCES: Readonly<Record<BudgetKind, Resource>> = {
  PodDisruptionBudget: DISRUPTION_BUDGETS,
  PodUnavailableBudget: UNAVAILABLE_BUDGETS,
};

interface Read {
  readonly atMs: number;
  goodForMs: number;
  readonly budgets: Promise<readonly DisruptionBudget[]>;
}

/** the last reading of each pass */
const lastRead = new WeakMap<Cluster, Read>();

interface Reader {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly settings: RolloutSettings;
}

/** All budgets of the cluster; none without the gate. @throws Error that names the missing role, and KubeError */
export async function readDisruptionBudgets(context: Reader): Promise<readonly DisruptionBudget[]> {
  if (!context.settings.RespectDisruptionBudgets) return [];
  const { cluster, clock } = context;
  const last = lastRead.get(cluster);
  if (last && isFresh(last, clock)) return await last.budgets;
  const read: Read = { atMs: clock.now(), goodForMs: GOOD_FOR_MS, budgets: listBoth(cluster) };
  lastRead.set(cluster, read);
  const budgets = await read.budgets;
  const tookMs = clock.now() - read.atMs;
  read.goodForMs = Math.max(GOOD_FOR_MS, Math.min(SPARED * tookMs, tookMs + MOST_MS));
  return budgets;
}

function isFresh({ atMs, goodForMs }: Read, clock: Clock): boolean {
  return clock.now() - atMs < goodForMs;
}

async function listBoth(cluster: Cluster): Promise<readonly DisruptionBudget[]> {
  const lists = await mapLimited(["PodDisruptionBudget", "PodUnavailableBudget"] as const, 1, (kind) =>
    listBudgets(cluster, kind),
  );
  return lists.flat();
}

async function listBudgets(cluster: Cluster, kind: BudgetKind): Promise<readonly DisruptionBudget[]> {
  const resource = RESOURCES[kind];
  try {
    const keep = (object: KubernetesObject) => disruptionBudgetOf(kind, object);
    return (await listAll(cluster, resource, {}, keep)).items;
  } catch (error) {
    if (kind === "PodUnavailableBudget" && isKubeError(error, 404)) return [];
    if (!isKubeError(error, 403)) throw error;
    throw new Error(`${resource.plural} may not be listed, which gate RespectDisruptionBudgets needs: ${ROLE}`, {
      cause: error,
    });
  }
}

/** Label keys to keep of pods, by namespace; undefined: no budget is read. */
export function budgetLabelsOf({ settings }: Reader, budgets: readonly DisruptionBudget[]): Also["budgetLabels"] {
  if (!settings.RespectDisruptionBudgets) return undefined;
  const byNamespace = Map.groupBy(budgets, ({ namespace }) => namespace);
  return new Map([...byNamespace].map(([namespace, own]) => [namespace, new Set(keysOfBudgets(own))]));
}

/** Forgets the reading after a write that other reads should see. */
export function forgetDisruptionBudgets(cluster: Cluster): void {
  lastRead.delete(cluster);
}
