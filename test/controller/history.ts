/** Finds forbidden writes of passes in the whole history of the cluster. */
import type { RecordedWrite } from "../../infra/local/storage/store.ts";
import type { ConfigMap, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import {
  EMPTY_LEDGER,
  isGenerationObservable,
  type Ledger,
  ledgerName,
  parseLedger,
} from "../../shared/core/ledger.ts";
import { isReady, isRunning } from "./fixture.ts";

/** A generation may be shown as observed only if the ledger names it and has no reservations of another generation. */
export function ledgerViolations(history: readonly RecordedWrite[], set: string): readonly string[] {
  let ledger: Ledger = EMPTY_LEDGER;
  return history.flatMap((write) => {
    const { resource, subresource, name, object } = write;
    if (resource === "configmaps" && name === ledgerName(set))
      ledger = parseLedger((object as unknown as ConfigMap).data) ?? EMPTY_LEDGER;
    if (resource === "pods" && object.metadata.labels?.["app"] === set) return podViolations(write, ledger);
    return resource === "sidecarsets" && subresource === "status" && name === set
      ? statusViolations(write, ledger)
      : [];
  });
}

/** A patch of a pod is the product's if it changes neither the status nor the labels. */
function podViolations({ verb, subresource, name, object, previous }: RecordedWrite, ledger: Ledger): string[] {
  if (subresource !== "" || verb !== "patch" || !previous) return [];
  const { uid, resourceVersion, labels } = previous.metadata;
  if (JSON.stringify(labels) !== JSON.stringify(object.metadata.labels)) return [];
  const isReserved = ledger.reservations.some((pod) => pod.uid === uid && pod.resourceVersion === resourceVersion);
  return isReserved ? [] : [`${name} was written to at ${resourceVersion} without a reservation`];
}

function statusViolations({ object, previous }: RecordedWrite, ledger: Ledger): string[] {
  const observed = (set: unknown) => (set as SidecarSet | undefined)?.status?.observedGeneration ?? 0;
  const [before, generation] = [observed(previous), observed(object)];
  const subject = { uid: object.metadata.uid ?? "", generation, revision: "" };
  if (generation < before) return [`observedGeneration went back from ${before} to ${generation}`];
  if (generation === before || isGenerationObservable(ledger, subject)) return [];
  return [`generation ${generation} was shown as observed too early`];
}

/** Returns the most pods of a SidecarSet that were not ready at once, after all had been ready. */
export function mostUnavailable(history: readonly RecordedWrite[], set: string, since: number): number {
  const down = new Set<string>();
  let most = 0;
  for (const { resource, object, isRemoved, name, sequence } of history) {
    const pod = object as unknown as Pod;
    if (resource !== "pods" || pod.metadata?.labels?.["app"] !== set) continue;
    if (isRemoved || (isReady(pod) && isRunning(pod))) down.delete(name);
    else down.add(name);
    if (sequence > since) most = Math.max(most, down.size);
  }
  return most;
}
