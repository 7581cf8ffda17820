/** Reads what a report is made from: the SidecarSets alone, or one of them with its pods, revisions, ledger and Events. */

import type { SidecarSet } from "../api/sidecarset.ts";
import type { ReportContent, SetDetail } from "../core/report/content.ts";
import type { EventObject } from "../core/report/event-line.ts";
import { listSidecarSets, reportOnSidecarSet } from "../core/report.ts";
import { isKubeError } from "../kube/error.ts";
import { type Cluster, EVENTS, SIDECARSETS } from "../kube/port.ts";
import { type Clock, timestamp } from "./clock.ts";
import { findMissed } from "./find-missed.ts";
import { readLease } from "./lease.ts";
import { readLedger } from "./ledger-store.ts";
import { listAll, listRevisions, observePods, readSidecarSet } from "./observe.ts";

export interface ReadReportContext {
  readonly cluster: Cluster;
  /** what the page calls it; "" for nothing */
  readonly clusterName: string;
  readonly clock: Clock;
  readonly kruiseNamespace: string;
  /** gate StrictMaxUnavailable */
  readonly isBudgetStrict: boolean;
}

/** All SidecarSets from their status, no pod is read. Throws KubeError. */
export async function readOverview(context: ReadReportContext): Promise<ReportContent> {
  const { cluster, clusterName, clock } = context;
  const { items } = await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, (one) => one);
  return { at: timestamp(clock), cluster: clusterName, sets: listSidecarSets(items), details: [] };
}

/**
 * One with its pods; undefined: there is none of that name. What these rights do not let be read beside it is left out.
 * Throws KubeError.
 */
export async function readDetail(context: ReadReportContext, name: string): Promise<SetDetail | undefined> {
  const { cluster, clock, kruiseNamespace, isBudgetStrict: isStrict } = context;
  const stored = await ifAllowed(readLedger(cluster, kruiseNamespace, name));
  const sidecarSet = await readSidecarSet(cluster, name);
  if (!sidecarSet) return undefined;
  const [observed, revisions = [], events, lease] = await Promise.all([
    observePods(cluster, sidecarSet),
    ifAllowed(listRevisions(cluster, kruiseNamespace, name)),
    ifAllowed(readEvents(cluster, name)),
    ifAllowed(readLease({ cluster, clock, namespace: kruiseNamespace, over: new Set() })),
  ]);
  const { pods } = observed.view;
  const missed = new Set((await findMissed(context, sidecarSet, pods))?.map(({ metadata }) => metadata?.uid ?? ""));
  const reserved = new Set(stored?.ledger.reservations.map(({ uid }) => uid));
  const observation = { sidecarSet, pods, revisions, taken: [], reserved };
  const lastPass = lease?.stored?.spec?.renewTime;
  return reportOnSidecarSet(
    { observation, events, missed, lastPass },
    { now: timestamp(clock), kruiseNamespace, isStrict },
  );
}

async function readEvents(cluster: Cluster, name: string): Promise<readonly EventObject[]> {
  const fieldSelector = `involvedObject.kind=SidecarSet,involvedObject.name=${name}`;
  return (await listAll<EventObject, EventObject>(cluster, EVENTS, { fieldSelector }, (event) => event)).items;
}

async function ifAllowed<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isKubeError(error, 403)) return undefined;
    throw error;
  }
}
