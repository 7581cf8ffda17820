/**
 * Reads the facts of a report: the SidecarSets alone, one of them with its pods, revisions, ledger and Events, or one
 * of its pods.
 */
import type { Pod } from "../../api/kubernetes.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { explainPod } from "../../core/inspect/explain/explain.ts";
import type { ReportContent, SetDetail } from "../../core/inspect/report/content.ts";
import type { PodExplanation } from "../../core/inspect/report/page.ts";
import { idleness, reportOnSidecarSet } from "../../core/inspect/report/report.ts";
import { type EventObject, setRows } from "../../core/inspect/report/rows.ts";
import { ifAllowed, ifThere } from "../../kube/error.ts";
import { type Cluster, EVENTS, type ObjectKey, PODS, SIDECARSETS } from "../../kube/port.ts";
import { timestamp } from "../loop/clock.ts";
import { announcedSettings, type LeaseState, readLease } from "../loop/lease.ts";
import { listAll } from "./observe-pods.ts";
import {
  type ReadContext,
  readNamespace,
  readObservation,
  readRegistrations,
  withStatusRefusals,
} from "./read-observation.ts";

export interface ReadReportContext extends ReadContext {
  /** the cluster's name on the page, "" for none; `settings`: for passes that have not published theirs */
  readonly clusterName: string;
}

/** All SidecarSets, from their status; it reads no pod. Throws KubeError. */
export async function readOverview(context: ReadReportContext): Promise<ReportContent> {
  const { cluster, clusterName, clock } = context;
  const { items } = await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, (one) => one);
  const at = timestamp(clock);
  const idle = idleness(lastPassOf(await readPassLease(context)), at);
  return { at, cluster: clusterName, idle, sets: setRows(await withStatusRefusals(context, items)), details: [] };
}

/**
 * One SidecarSet with its pods; undefined: it does not exist. Events and the last pass are left out if the caller may
 * not read them. @throws KubeError and Error, as readObservation
 */
export async function readDetail(context: ReadReportContext, name: string): Promise<SetDetail | undefined> {
  const { cluster } = context;
  const lease = await readPassLease(context);
  const settings = (lease && announcedSettings(lease)) ?? context.settings;
  const read = await readObservation({ ...context, settings }, name);
  if (!read) return undefined;
  const events = await ifAllowed(readEvents(cluster, name));
  const { observation } = read;
  const missed = new Set(read.missed?.map(({ metadata }) => metadata?.uid ?? ""));
  return reportOnSidecarSet({ observation, events, missed, lastPass: lastPassOf(lease) }, read.context);
}

function readPassLease({ cluster, clock, kruiseNamespace }: ReadReportContext): Promise<LeaseState | undefined> {
  return ifAllowed(readLease({ cluster, clock, namespace: kruiseNamespace, over: new Set() }));
}

function lastPassOf(lease: LeaseState | undefined): string | undefined {
  return lease?.stored?.spec?.renewTime;
}

/** The explanation; undefined: the SidecarSet or pod does not exist. @throws KubeError and Error, as readObservation */
export async function readPodExplanation(
  context: ReadReportContext,
  name: string,
  pod: ObjectKey,
): Promise<(PodExplanation & { readonly at: string }) | undefined> {
  const { cluster } = context;
  const lease = await readPassLease(context);
  const settings = (lease && announcedSettings(lease)) ?? context.settings;
  const [object, read] = [await podIfThere(cluster, pod), await readObservation({ ...context, settings }, name)];
  if (!(object && read)) return undefined;
  const { sidecarSet, ...observed } = read.observation;
  const { namespace = "" } = pod;
  const facts = {
    ...observed,
    ...read.context,
    lastPass: lastPassOf(lease),
    sidecarSets: (await listAll<SidecarSet, SidecarSet>(cluster, SIDECARSETS, {}, (one) => one)).items,
    namespace: await readNamespace(cluster, namespace),
    registrations: await readRegistrations(cluster),
  };
  const steps = explainPod(object, sidecarSet, facts);
  return { at: read.context.now, sidecarSet: name, namespace, name: pod.name, steps };
}

function podIfThere(cluster: Cluster, key: ObjectKey): Promise<Pod | undefined> {
  return ifThere(cluster.get<Pod>(PODS, key));
}

async function readEvents(cluster: Cluster, name: string): Promise<readonly EventObject[]> {
  const fieldSelector = `involvedObject.kind=SidecarSet,involvedObject.name=${name}`;
  // Events of objects without a namespace are in "default". A tenant may write any Event into another namespace.
  const options = { namespace: "default", fieldSelector };
  return (await listAll<EventObject, EventObject>(cluster, EVENTS, options, (event) => event)).items;
}
