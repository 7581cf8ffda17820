/**
 * Records when each container of a namespace was first seen ready, and when each key of a barrier was first seen open.
 */
import { onTestFinished } from "vitest";
import type { ApiObject } from "../../../infra/local/storage/json.ts";
import type { ConfigMap, Pod } from "../../../shared/api/kubernetes.ts";
import { type Cluster, CONFIG_MAPS, PODS } from "../../../shared/kube/port.ts";
import { follow } from "./follow.ts";

/** Returns the milliseconds from a ready container to the key that it opens; NaN until both were seen. */
export type StepMs = (ready: string, key: string) => number;

/** Watches until the test ends. */
export function recordLaunch(cluster: Cluster, namespace: string): StepMs {
  const end = new AbortController();
  const firstMs = new Map<string, number>();
  const note = (what: string) => void firstMs.set(what, firstMs.get(what) ?? performance.now());
  const seePod = (object: ApiObject) => {
    const { status } = object as unknown as Pod;
    for (const { name, ready } of status?.containerStatuses ?? []) if (ready) note(name);
  };
  const seeMap = (object: ApiObject) => {
    for (const key of Object.keys((object as unknown as ConfigMap).data ?? {})) note(key);
  };
  const place = { cluster, namespace, signal: end.signal };
  const following = [
    follow({ ...place, resource: PODS, see: seePod }),
    follow({ ...place, resource: CONFIG_MAPS, see: seeMap }),
  ];
  onTestFinished(async () => {
    end.abort();
    await Promise.all(following);
  });
  return (ready, key) => (firstMs.get(key) ?? Number.NaN) - (firstMs.get(ready) ?? Number.NaN);
}
