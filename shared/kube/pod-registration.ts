/** The registration's condition for calls of the webhook: read, and changed if nobody else did meanwhile. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import {
  FORMER_WEBHOOK_CONFIGURATION,
  NEEDS_WEBHOOK_CONDITION,
  POD_WEBHOOK,
  RELIED_ON_ANNOTATION,
  WEBHOOK_CONFIGURATION,
} from "../api/names.ts";
import { ifThere, isKubeError, type KubeError } from "./error.ts";
import { type Cluster, type JsonPatchOperation, MUTATING_WEBHOOK_CONFIGURATIONS } from "./port.ts";

interface MatchCondition {
  readonly name: string;
  /** CEL */
  readonly expression: string;
}

interface Configuration extends KubernetesObject {
  readonly webhooks?: readonly { readonly name: string; readonly matchConditions?: readonly MatchCondition[] }[];
}

export interface PodRegistration {
  /** CEL; undefined: the webhook is called for every pod */
  readonly condition: string | undefined;
  /** RFC3339, as the one who relied on it wrote it */
  readonly reliedOnAt: string | undefined;
  readonly stored: Configuration;
}

/** The registration under the current name, else the former one. Undefined: none with a pod webhook. */
export async function readPodRegistration(cluster: Cluster): Promise<PodRegistration | undefined> {
  const current = () => readNamed(cluster, WEBHOOK_CONFIGURATION);
  // Reads once more: it may have been renamed between the first two reads.
  return (await current()) ?? (await readFormerRegistration(cluster)) ?? (await current());
}

/** The same, under the former name alone. */
export function readFormerRegistration(cluster: Cluster): Promise<PodRegistration | undefined> {
  return readNamed(cluster, FORMER_WEBHOOK_CONFIGURATION);
}

async function readNamed(cluster: Cluster, name: string): Promise<PodRegistration | undefined> {
  const stored = await readStored(cluster, name);
  const webhook = stored?.webhooks?.find(({ name }) => name === POD_WEBHOOK);
  const condition = webhook?.matchConditions?.find(({ name }) => name === NEEDS_WEBHOOK_CONDITION)?.expression;
  const reliedOnAt = stored?.metadata?.annotations?.[RELIED_ON_ANNOTATION];
  return stored && webhook ? { condition, reliedOnAt, stored } : undefined;
}

function readStored(cluster: Cluster, name: string): Promise<Configuration | undefined> {
  return ifThere(cluster.get<Configuration>(MUTATING_WEBHOOK_CONFIGURATIONS, { name }));
}

/**
 * undefined: it is written. Otherwise the registration has changed, and the write may be lost: read again.
 * @throws KubeError for all other trouble
 */
export async function writePodRegistration(
  cluster: Cluster,
  { stored }: PodRegistration,
  { condition, reliedOnAt }: Pick<PodRegistration, "condition" | "reliedOnAt">,
): Promise<KubeError | undefined> {
  const { metadata, webhooks = [] } = stored;
  const index = webhooks.findIndex(({ name }) => name === POD_WEBHOOK);
  const others = webhooks[index]?.matchConditions?.filter(({ name }) => name !== NEEDS_WEBHOOK_CONDITION) ?? [];
  const own = condition === undefined ? [] : [{ name: NEEDS_WEBHOOK_CONDITION, expression: condition }];
  const relied = reliedOnAt === undefined ? {} : { [RELIED_ON_ANNOTATION]: reliedOnAt };
  return patchAsRead(cluster, stored, [
    { op: "add", path: "/metadata/annotations", value: { ...metadata?.annotations, ...relied } },
    { op: "add", path: `/webhooks/${index}/matchConditions`, value: [...others, ...own] },
  ]);
}

/** Empties the registration, so that API servers stop asking. Otherwise like `writePodRegistration`. */
export function emptyPodRegistration(cluster: Cluster, { stored }: PodRegistration): Promise<KubeError | undefined> {
  return patchAsRead(cluster, stored, [{ op: "add", path: "/webhooks", value: [] }]);
}

async function patchAsRead(
  cluster: Cluster,
  { metadata }: Configuration,
  changes: readonly JsonPatchOperation[],
): Promise<KubeError | undefined> {
  const operations: readonly JsonPatchOperation[] = [
    { op: "test", path: "/metadata/resourceVersion", value: metadata?.resourceVersion },
    ...changes,
  ];
  try {
    const key = { name: metadata?.name ?? "" };
    await cluster.patch<Configuration>(MUTATING_WEBHOOK_CONFIGURATIONS, key, { type: "json", operations });
    return undefined;
  } catch (error) {
    if (isKubeError(error) && (!error.isOutcomeKnown || (await hasMoved(cluster, metadata, error)))) return error;
    throw error;
  }
}

/** 422 means a failed test of a JSON patch, or a policy's refusal. */
async function hasMoved(cluster: Cluster, read: Configuration["metadata"], error: KubeError): Promise<boolean> {
  if (!isKubeError(error, 422)) return isKubeError(error, 404, 409);
  const now = await readStored(cluster, read?.name ?? "");
  return now?.metadata?.resourceVersion !== read?.resourceVersion;
}
