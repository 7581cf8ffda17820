/** Reads what a pass would decide on, for those who write nothing: the dry run, the command line, the page. */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { restartsAtOnce } from "../../core/pod/replaced.ts";
import type { DecideContext, Observation } from "../../core/rollout/decide.ts";
import type { RolloutSettings } from "../../core/rollout/rollout-settings.ts";
import type { Cluster } from "../../kube/port.ts";
import type { Clock } from "../loop/clock.ts";
import { decideContext, decideOn, decideUntilKnown, keptOf, observe, surroundingsOf } from "./observe.ts";
import { newTally } from "./report.ts";
import { readAsked } from "./workloads.ts";

export interface ReadContext {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly kruiseNamespace: string;
  readonly settings: RolloutSettings;
}

export interface ReadObservation {
  readonly observation: Observation & { readonly pods: readonly Pod[] };
  readonly context: DecideContext;
  /** pods that were made without the sidecars; undefined: it could not be found out */
  readonly missed: readonly Pod[] | undefined;
}

/**
 * undefined: there is no such SidecarSet. `changed`: as if it were stored in its place.
 * @throws KubeError, and an Error that says what these rights do not let be read: nothing is guessed
 */
export async function readObservation(
  context: ReadContext,
  name: string,
  changed?: SidecarSet,
): Promise<ReadObservation | undefined> {
  // Readers also get the workload of each pod; passes leave it out to save memory.
  const asReader = { endsAtMs: Number.POSITIVE_INFINITY, keepsWorkloads: true };
  const reading = { ...context, ...asReader, tally: newTally(), recorded: new Set<string>() };
  const snapshot = await observe(reading, name, changed);
  if (!snapshot) return undefined;
  const kept = await keptOf(reading, snapshot);
  if (restartsAtOnce(snapshot.sidecarSet) > 0)
    await decideUntilKnown(() => decideOn(reading, snapshot, kept), [readAsked(reading, snapshot)]);
  return {
    observation: { ...surroundingsOf(reading, snapshot, kept), pods: [...snapshot.observed.view.pods] },
    context: decideContext(context, snapshot.sidecarSet),
    missed: snapshot.missed,
  };
}
