/** Judges writes of the pod webhook's registration: only the condition and the time of its last use may change. */
import { isDeepStrictEqual } from "node:util";
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { NEEDS_WEBHOOK_CONDITION, POD_WEBHOOK, RELIED_ON_ANNOTATION } from "../../../shared/api/names.ts";

interface Webhook {
  readonly name: string;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
}

export interface Registered extends KubernetesObject {
  readonly webhooks?: readonly Webhook[];
}

/** Returns the first part that changed; undefined: none did. */
export function lostBy(before: Registered, after: Registered): string | undefined {
  const [kept, found] = [partsOf(before), partsOf(after)];
  return Object.keys(kept).find((part) => !isDeepStrictEqual(kept[part], found[part]));
}

function partsOf({ metadata = {}, webhooks = [], ...rest }: Registered): Readonly<Record<string, unknown>> {
  const { [RELIED_ON_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {};
  const own = webhooks.find(({ name }) => name === POD_WEBHOOK);
  const { matchConditions = [], ...webhook } = own ?? { name: "" };
  const isOurs = (condition: { readonly name: string }) => condition.name === NEEDS_WEBHOOK_CONDITION;
  const { name, uid, labels } = metadata;
  return {
    identity: { name, uid, ...rest },
    labels,
    annotations,
    "the other webhooks": webhooks.filter((one) => one !== own),
    "the order of webhooks": webhooks.map((one) => one.name),
    "the pod webhook": webhook,
    "conditions of others": matchConditions.filter((one) => !isOurs(one)),
    "the number of our conditions": matchConditions.filter(isOurs).length <= 1,
  };
}

/** Returns the conditions that decide which pods an API server sends. */
export function conditionsIn({ webhooks = [] }: Registered): readonly string[] {
  const own = webhooks.find(({ name }) => name === POD_WEBHOOK);
  return (own?.matchConditions ?? []).map(({ expression }) => expression);
}
