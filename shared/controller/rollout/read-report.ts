/** Reads what a report is made from: the SidecarSets alone, or one of them with its pods, revisions, ledger and Events. */

import type { SidecarSet } from "../../api/sidecarset.ts";
import type { ReportContent, SetDetail } from "../../core/inspect/report/content.ts";
import type { EventObject } from "../../core/inspect/report/event-line.ts";
import { listSidecarSets, reportOnSidecarSet } from "../../core/inspect/report/report.ts";
import { isKubeError } from "../../kube/error.ts";
import { type Cluster, EVENTS, SIDECARSETS } from "../../kube/port.ts";
import { timestamp } from "../loop/clock.ts";
import { announcedSettings, readLease } from "../loop/lease.ts";
import { listAll } from "./observe.ts";
import { type ReadContext, readObservation } from "./read-observation.ts";

export interface ReadReportContext extends ReadContext {
  /** what the page calls it; "" for nothing. `settings` are taken for those of passes that have not said theirs */
  readonly clusterName: string;
}

/** All SidecarSets from their status, no pod is read. Throws KubeError. */
export async function readOverview(context: ReadReportContext): Promise<ReportContent> {
  const { cluster, clusterName, clock } = context;
  const { items } = await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, (one) => one);
  return { at: timestamp(clock), cluster: clusterName, sets: listSidecarSets(items), details: [] };
}

/**
 * One with its pods; undefined: there is none of that name. Events, and when a pass ran, are left out where these rights
 * do not let them be read.
 * @throws KubeError and Error, as readObservation
 */
export async function readDetail(context: ReadReportContext, name: string): Promise<SetDetail | undefined> {
  const { cluster, clock, kruiseNamespace } = context;
  const lease = await ifAllowed(readLease({ cluster, clock, namespace: kruiseNamespace, over: new Set() }));
  const settings = (lease && announcedSettings(lease)) ?? context.settings;
  const read = await readObservation({ ...context, settings }, name);
  if (!read) return undefined;
  const events = await ifAllowed(readEvents(cluster, name));
  const { observation } = read;
  const missed = new Set(read.missed?.map(({ metadata }) => metadata?.uid ?? ""));
  const lastPass = lease?.stored?.spec?.renewTime;
  return reportOnSidecarSet({ observation, events, missed, lastPass }, read.context);
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
