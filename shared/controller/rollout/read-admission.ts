/** Reads what explains whether a pod was admitted with sidecars: its Namespace, and the webhooks that are registered for pods. */
import type { KubernetesObject, Namespace } from "../../api/kubernetes.ts";
import { isReplacedByFile } from "../../core/inspect/check/webhooks.ts";
import {
  type PodRegistration,
  REGISTRATION_IN_FILES,
  type Registrations,
} from "../../core/inspect/explain/registration.ts";
import { ifAllowed, isKubeError } from "../../kube/error.ts";
import { type Cluster, MUTATING_WEBHOOK_CONFIGURATIONS, NAMESPACES } from "../../kube/port.ts";
import { listAll } from "./observe-pods.ts";

/** undefined: it may not be read, or is not there. */
export async function readNamespace(cluster: Cluster, name: string): Promise<Namespace | undefined> {
  try {
    return await cluster.get<Namespace>(NAMESPACES, { name });
  } catch (error) {
    if (isKubeError(error, 403, 404)) return undefined;
    throw error;
  }
}

interface WebhookRule {
  readonly operations?: readonly string[];
  readonly resources?: readonly string[];
}

interface Webhook extends PodRegistration {
  readonly rules?: readonly WebhookRule[];
  readonly clientConfig?: {
    readonly url?: string;
    readonly caBundle?: string;
    readonly service?: { readonly name?: string; readonly namespace?: string; readonly path?: string };
  };
  readonly timeoutSeconds?: number;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly reinvocationPolicy?: string;
}

interface Configuration extends KubernetesObject {
  readonly webhooks?: readonly Webhook[];
}

/** undefined: they may not be read. */
async function readMutating(cluster: Cluster): Promise<readonly Configuration[] | undefined> {
  return (
    await ifAllowed(listAll<Configuration, Configuration>(cluster, MUTATING_WEBHOOK_CONFIGURATIONS, {}, (one) => one))
  )?.items;
}

/** Webhooks that inject sidecars into new pods, of this project or OpenKruise: both serve the same path. */
function podWebhooks(configurations: readonly Configuration[]): readonly Webhook[] {
  return configurations.flatMap(({ webhooks }) => webhooks ?? []).filter((one) => isForNewPods(one) && isInjector(one));
}

function isForNewPods({ rules = [] }: Webhook): boolean {
  return rules.some(
    ({ operations = [], resources = [] }) =>
      (operations.includes("CREATE") || operations.includes("*")) &&
      (resources.includes("pods") || resources.includes("*")),
  );
}

function isInjector({ name, clientConfig }: Webhook): boolean {
  const path = clientConfig?.url ?? clientConfig?.service?.path ?? "";
  return name === "mpod.kb.io" || path.endsWith("/mutate-pod");
}

export async function readRegistrations(cluster: Cluster): Promise<Registrations> {
  const configurations = await readMutating(cluster);
  if (configurations === undefined) return undefined;
  const webhooks = podWebhooks(configurations);
  return webhooks.length === 0 && configurations.some(isReplacedByFile) ? [REGISTRATION_IN_FILES] : webhooks;
}
