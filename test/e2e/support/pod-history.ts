/** Records every state of the pods in a namespace: a watch skips no resourceVersion. */
import type { ApiObject } from "../../../infra/local/storage/json.ts";
import { type Cluster, PODS } from "../../../shared/kube/port.ts";
import { follow, sequenceOf } from "./follow.ts";
import { until } from "./until.ts";

interface PodVersion {
  readonly sequence: number;
  readonly group: string;
  readonly resource: string;
  readonly object: ApiObject;
  readonly isRemoved: boolean;
}

export interface PodHistory {
  /** Returns the states so far, oldest first. */
  versions(): Promise<readonly PodVersion[]>;
  close(): Promise<void>;
}

export function recordPods(cluster: Cluster, namespace: string): PodHistory {
  const seen: PodVersion[] = [];
  const end = new AbortController();
  const newest = () => seen.at(-1)?.sequence ?? 0;
  const see = (object: ApiObject, isRemoved: boolean) => {
    const sequence = sequenceOf(object);
    if (sequence > newest()) seen.push({ sequence, group: "", resource: "pods", object, isRemoved });
  };
  const following = follow({ cluster, resource: PODS, namespace, signal: end.signal, see });
  return {
    async versions() {
      const { items } = await cluster.list<ApiObject>(PODS, { namespace });
      const last = Math.max(0, ...items.map(sequenceOf));
      await until("the watch has seen all pods", async () => last <= newest());
      return seen;
    },
    async close() {
      end.abort();
      await following;
    },
  };
}
