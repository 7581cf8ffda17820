/** The product's reconciler, with its shipped role, in a cluster that OpenKruise left behind. */

import type { ConfigMap, KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { SIDECARSET_V1ALPHA1, SIDECARSET_V1BETA1 } from "../../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import { type Clock, systemClock } from "../../../shared/controller/loop/clock.ts";
import { runPass } from "../../../shared/controller/pass.ts";
import type { PassReport } from "../../../shared/controller/rollout/report.ts";
import { ledgerName } from "../../../shared/core/ledger.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { convertSidecarSet } from "../../../shared/core/sidecarset/convert.ts";
import { type Cluster, CONTROLLER_REVISIONS, PODS, type Resource, SIDECARSETS } from "../../../shared/kube/port.ts";
import type { RawTarget } from "../../contract/raw.ts";
import { withoutNoise } from "../../runner/clean.ts";
import { ReconcileCluster, type RecordedEvent } from "../../runner/suites/reconcile-cluster.ts";
import { asServiceAccount, clusterOf } from "./clients.ts";
import { objectsOf } from "./reference-sequence.ts";
import type { Settings } from "./settings.ts";
import { removeStored, storeObjects } from "./stored-objects.ts";

const KRUISE_NAMESPACE = "kruise-system";
const NODES: Resource = { group: "", version: "v1", plural: "nodes", namespaced: false };

/** The writes of one pass, as the API server accepted them. */
export interface Written {
  readonly report: PassReport;
  /** the SidecarSet's status before any pod was written to; absent: it did not change */
  readonly status?: SidecarSetStatus;
  readonly events: readonly RecordedEvent[];
  /** patches of pods and of their conditions */
  readonly podWrites: number;
}

/** Wraps the reconciler's cluster, so that a test may add faults. */
type Through = (cluster: Cluster) => Cluster;

export class TakenOver {
  readonly admin: Cluster;
  readonly #reconciler: Cluster;
  readonly #etcdUrl: string;

  private constructor(etcdUrl: string, admin: Cluster, reconciler: Cluster) {
    this.#etcdUrl = etcdUrl;
    this.admin = admin;
    this.#reconciler = reconciler;
  }

  /** Connects to a cluster in which the objects are installed. */
  static async connect(settings: Settings & RawTarget): Promise<TakenOver> {
    const account = await asServiceAccount(settings, KRUISE_NAMESPACE, "sidecarset-reconciler");
    return new TakenOver(settings.etcdUrl, clusterOf(settings), clusterOf(account, "sidecarset-serverless"));
  }

  /** Adds the node that pods are bound to, or they would be collected. No kubelet runs for it. */
  async addNode(name: string): Promise<void> {
    await this.admin.create(NODES, { metadata: { name } });
  }

  async removeNode(name: string): Promise<void> {
    await this.admin.delete(NODES, { name });
  }

  /** Stores the model. SidecarSets are stored as v1alpha1 if `isOlder`. */
  load(model: ReconcileCluster, isOlder = false): Promise<void> {
    return this.#store(objectsOf(model), isOlder);
  }

  #store(objects: readonly KubernetesObject[], isOlder: boolean): Promise<void> {
    const stored = objects.map((object) => (isOlder && object.kind === "SidecarSet" ? older(object) : object));
    return storeObjects(this.#etcdUrl, stored);
  }

  /** Changes objects in etcd directly, past every webhook. */
  async change(seen: ReconcileCluster, change: (model: ReconcileCluster) => void, isOlder = false): Promise<void> {
    const before = objectsOf(seen);
    change(seen);
    const after = objectsOf(seen);
    const names = new Set(after.map(nameOf));
    await this.#store(
      after.filter((object) => !before.includes(object)),
      isOlder,
    );
    await removeStored(
      this.#etcdUrl,
      before.filter((object) => !names.has(nameOf(object))),
    );
  }

  /** Reads the present cluster with the pods of `namespaces`. */
  async read(namespaces: ReadonlySet<string>): Promise<ReconcileCluster> {
    const all = async (resource: Resource, apiVersion: string, kind: string) =>
      (await this.admin.list(resource)).items.map((item) => ({ ...item, apiVersion, kind }));
    const [sets, pods, revisions] = await Promise.all([
      all(SIDECARSETS, SIDECARSET_V1BETA1, "SidecarSet"),
      all(PODS, "v1", "Pod"),
      all(CONTROLLER_REVISIONS, "apps/v1", "ControllerRevision"),
    ]);
    const seen = new ReconcileCluster();
    for (const object of [...sets, ...pods.filter(({ metadata }) => namespaces.has(metadata?.namespace ?? ""))])
      seen.add(withoutNoise(object) as KubernetesObject);
    for (const revision of revisions) if (revision.metadata?.namespace === KRUISE_NAMESPACE) seen.add(revision);
    return seen;
  }

  /** Runs a round for one SidecarSet at `now`. */
  async pass(sidecarSet: string, now: string, through: Through = (cluster) => cluster): Promise<Written> {
    let status: SidecarSetStatus | undefined;
    const events: RecordedEvent[] = [];
    let podWrites = 0;
    const recording: Cluster = {
      ...this.#reconciler,
      create: async (resource, object, options) => {
        const created = await this.#reconciler.create(resource, object, options);
        if (resource.plural === "events" && isTheirs(eventOf(object))) events.push(eventOf(object));
        return created;
      },
      patch: async (resource, key, patch, options) => {
        // Passes request only the metadata of an Event.
        const answer = resource.plural === "events" ? { answer: "object" as const } : {};
        const patched = await this.#reconciler.patch(resource, key, patch, { ...options, ...answer });
        if (resource.plural === "pods") podWrites += 1;
        if (resource.plural === "events" && isTheirs(eventOf(patched))) events.push(eventOf(patched));
        if (resource.plural === "sidecarsets" && podWrites === 0) status = countsOf(patched as SidecarSet);
        return patched as never;
      },
    };
    const options = {
      deadlineMs: 60_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      sidecarSet,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: false,
    };
    const report = await runPass(through(recording), { ...options, clock: standing(now) });
    return { report, events, podWrites, ...(status ? { status } : {}) };
  }

  /** Runs a pass that follows the rollout in real time. */
  rollOut(sidecarSet: string): Promise<PassReport> {
    return runPass(this.#reconciler, {
      deadlineMs: 60_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      sidecarSet,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: true,
    });
  }

  /** Deletes at once everything that was loaded or created. */
  async clear(namespaces: ReadonlySet<string>): Promise<void> {
    const seen = await this.read(namespaces);
    const ledgers: ConfigMap[] = [...seen.sidecarSets.keys()].map((name) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: ledgerName(name), namespace: KRUISE_NAMESPACE },
    }));
    await removeStored(this.#etcdUrl, [...objectsOf(seen), ...ledgers]);
  }
}

function nameOf({ kind, metadata: { namespace = "", name = "" } = {} }: KubernetesObject): string {
  return `${kind} ${namespace}/${name}`;
}

function older(object: KubernetesObject): KubernetesObject {
  const converted = convertSidecarSet(object, SIDECARSET_V1ALPHA1);
  if (converted.kind === "DecodeError") throw new Error(`${object.metadata?.name} cannot be of v1alpha1`);
  return converted.value;
}

function eventOf(object: KubernetesObject): RecordedEvent {
  const { involvedObject, type, reason, message } = object as unknown as Omit<RecordedEvent, "object" | "kind"> & {
    readonly involvedObject: { readonly kind: string; readonly name: string; readonly namespace?: string };
  };
  const { kind, name, namespace } = involvedObject;
  return { kind, object: namespace ? `${namespace}/${name}` : name, type, reason, message };
}

/** Returns a clock that stands still during a pass, as the reference's does. */
function standing(now: string): Clock {
  return { ...systemClock, epochMs: () => Date.parse(now) };
}

/** Returns the status fields that OpenKruise also has. */
export function countsOf(sidecarSet: SidecarSet | undefined): SidecarSetStatus | undefined {
  const {
    conditions: _c,
    selection: _s,
    ledgerNamespace: _l,
    observedAnnotations: _o,
    ...counts
  } = sidecarSet?.status ?? {};
  return sidecarSet?.status && counts;
}

/** True for OpenKruise's Events. OpenKruise has no conditions, and records no Events about pods that it updates. */
function isTheirs({ reason }: RecordedEvent): boolean {
  return !["RolloutStarted", "RolloutFinished", "Blocked", "Degraded", "MissedInjection", "SidecarUpdated"].includes(
    reason,
  );
}
