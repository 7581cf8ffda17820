/** Reads disruption budgets: only with gate RespectDisruptionBudgets. */
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

/** Milliseconds for which budgets are reused, for any SidecarSet: a write to a changed budget fails. */
const GOOD_FOR_MS = 500;
/** Reuse lasts this many times as long as the reading, which 20 MB of a tenant's budgets extend by a second. */
const SPARED = 10;
/** Longest reuse: a write fails only for a budget that the pass knows, so pods of a new one go down unseen until then. */
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

/** of each pass */
const lastRead = new WeakMap<Cluster, Read>();

interface Reader {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly settings: RolloutSettings;
}

/** All of the cluster; none without the gate. @throws Error that says which role is missing, and KubeError */
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

/** Namespace → label keys to keep of its pods; undefined: no budget is asked. */
export function budgetLabelsOf({ settings }: Reader, budgets: readonly DisruptionBudget[]): Also["budgetLabels"] {
  if (!settings.RespectDisruptionBudgets) return undefined;
  const byNamespace = Map.groupBy(budgets, ({ namespace }) => namespace);
  return new Map([...byNamespace].map(([namespace, own]) => [namespace, new Set(keysOfBudgets(own))]));
}

/** Something has been written that other looks should see. */
export function forgetDisruptionBudgets(cluster: Cluster): void {
  lastRead.delete(cluster);
}
