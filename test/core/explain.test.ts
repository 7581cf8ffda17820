import { afterAll, describe, expect, it } from "vitest";
import { podRows } from "../../functions/cli/input/pod-rows.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  DRAIN_ANNOTATION,
  DRAINED_BY_ANNOTATION,
  HASH_ANNOTATION,
  METRICS_ANNOTATION,
  RESTARTED_AT_ANNOTATION,
  TRAFFIC_LABEL,
} from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { explainPod, explainPodAlone, explainSidecarSet } from "../../shared/core/inspect/explain/explain.ts";
import { REASONS, type Step } from "../../shared/core/inspect/explain/step.ts";
import { keyOfWorkload } from "../../shared/core/pod/workload.ts";
import {
  evaluated,
  formatRecords,
  knownChecks,
  parseRecords,
} from "../../shared/core/rollout/rules/checks/check-records.ts";
import type { Restarting } from "../../shared/core/rollout/rules/restarts/workload-object.ts";
import { newRevision } from "../../shared/core/sidecarset/revision/recorded-revision.ts";
import { listedPod } from "../support/objects.ts";
import {
  CONTEXT,
  hotPodOf,
  hotSidecarSetOf,
  NEW_HASH,
  NOW,
  type PodFacts,
  podOf,
  reservedFor,
  sidecarSetOf,
  statusesOf,
  takenDown,
  UNTOUCHED,
} from "../support/rollout-fixture.ts";
import { budgetOf } from "./disruption/fixture.ts";

const LABELS = { app: "web" };
const SELECTOR = { matchLabels: LABELS };
const NAMESPACE = { metadata: { name: "default", labels: { "kubernetes.io/metadata.name": "default" } } };
const REGISTRATION = {
  name: "mpod.kb.io",
  namespaceSelector: { matchExpressions: [{ key: "control-plane", operator: "DoesNotExist" }] },
};

type Facts = Parameters<typeof explainPod>[2];

const FACTS: Facts = {
  namespace: NAMESPACE,
  registrations: [REGISTRATION],
  sidecarSets: [],
  revisions: [],
  pods: [],
  ...UNTOUCHED,
  lastPass: NOW,
  ...CONTEXT,
};

const setOf = (spec: SidecarSetSpec = {}, metadata: object = {}): SidecarSet => {
  const set = sidecarSetOf({ selector: SELECTOR, ...spec });
  const status = { observedGeneration: 2 };
  return { ...set, metadata: { ...set.metadata, creationTimestamp: "2025-01-01T00:00:00Z", ...metadata }, status };
};
const pod = (facts: Parameters<typeof podOf>[0] = {}): Pod => podOf({ labels: LABELS, ...facts });
const updated = (facts: Parameters<typeof podOf>[0] = {}): Pod => pod({ hash: NEW_HASH, image: "reg/sc:v2", ...facts });

/** Returns a pod without any sidecar. */
function bare(created = "2025-01-01T00:00:00Z", metadata: object = {}): Pod {
  return listedPod(
    {
      namespace: "default",
      name: "p",
      uid: "uid-p",
      labels: LABELS,
      creationTimestamp: created,
      ...metadata,
    },
    { containers: [{ name: "main", image: "m" }] },
  );
}

function drained(facts: PodFacts = {}): Pod {
  const annotations = { [DRAINED_BY_ANNOTATION]: JSON.stringify({ ss: { since: NOW, release: NEW_HASH } }) };
  return pod({ ...facts, labels: { app: "web", [TRAFFIC_LABEL]: "drained" }, annotations });
}

function waitingPod(reason: string): Pod {
  const one = updated({ isReady: false });
  const containerStatuses = statusesOf(one.spec).map((status) =>
    status.name === "sc" ? { ...status, ready: false, state: { waiting: { reason } } } : status,
  );
  return { ...one, status: { ...one.status, containerStatuses } };
}

const RESTARTED_NOW = { template: { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: NOW } } } };

function elsewhere(one: Pod): Pod {
  return { ...one, metadata: { ...one.metadata, namespace: "elsewhere" } };
}

/** Returns a pod whose conditions say that it was never ready. */
function neverReady(): Pod {
  const one = updated({ isReady: false });
  const conditions = [{ type: "Ready", status: "False", lastTransitionTime: NOW }];
  return { ...one, status: { ...one.status, startTime: NOW, conditions } };
}

/** Returns a pod with the new release that is not ready again yet. */
function startingPod(name: string): Pod {
  const one = takenDown(waitingPod("ContainerCreating"));
  return { ...one, metadata: { ...one.metadata, name, uid: `uid-${name}` } };
}

/** Returns a pod whose author wrote a long text into its records. */
function largePod(): Pod {
  const one = pod();
  const annotations = { ...one.metadata?.annotations, "version.sidecarset.kruise.io/x": "x".repeat(70_000) };
  return { ...one, metadata: { ...one.metadata, annotations } };
}

/** Returns the pod with a node that still runs the previous image. */
function late(of: Pod): Pod {
  const state = {
    ss: { revision: "x", updateTimestamp: NOW, lastContainerStatuses: { sc: { imageID: "cri://old" } } },
  };
  const annotations = {
    ...of.metadata?.annotations,
    "kruise.io/sidecarset-inplace-update-state": JSON.stringify(state),
  };
  const containerStatuses = statusesOf(of.spec).map((status) =>
    status.name === "sc" ? { ...status, image: "reg/sc:v0", imageID: "cri://old" } : status,
  );
  return { ...of, metadata: { ...of.metadata, annotations }, status: { ...of.status, containerStatuses } };
}

/** Returns the pod with a forged record of an update in place. */
function forged(of: Pod): Pod {
  const annotations = { ...of.metadata?.annotations, "kruise.io/sidecarset-inplace-update-state": "4" };
  return { ...of, metadata: { ...of.metadata, annotations } };
}

const REPLACING = setOf(
  {},
  { annotations: { ...setOf().metadata?.annotations, "sidecarset.kruise.io/replace": "NotUpgradable" }, generation: 1 },
);

const RESTARTING = setOf(
  {},
  {
    annotations: { ...setOf().metadata?.annotations, "sidecarset.kruise.io/replace": "NotUpgradable,Restart" },
    generation: 1,
  },
);

/**
 * Returns facts about the StatefulSet web. `underWay`: uids of StatefulSets that are being restarted; none: web does
 * not exist.
 */
function restarting(...underWay: readonly string[]): Restarting {
  const place = { workload: "StatefulSet", namespace: pod().metadata?.namespace ?? "", name: "web" } as const;
  const workload = underWay.length > 0 ? { metadata: { uid: "a", generation: 2 }, spec: RESTARTED_NOW } : null;
  const restarted = underWay.map((uid) => ({ ...place, uid }));
  return { missed: [], restarted, workloads: new Map([[keyOfWorkload(place), workload]]) };
}

function owned(one: Pod, kind: string): Pod {
  const owner = { apiVersion: "apps/v1", kind, name: "web", uid: "uid-web", controller: true };
  return { ...one, metadata: { ...one.metadata, ownerReferences: [owner] } };
}

const CANARY = setOf(
  {},
  {
    name: "canary",
    annotations: { "apps.kruise.io/sidecarset-canary": "true", "apps.kruise.io/sidecarset-base": "ss" },
  },
);
const RIVAL = setOf({}, { name: "rival" });
const REVISION = newRevision(setOf({ containers: [{ name: "sc", image: "reg/sc:v1" }] }), {
  namespace: "kruise-system",
  revision: 1,
  collisionCount: 0,
});
const withWithoutImage = {
  ...REVISION,
  metadata: {
    ...REVISION.metadata,
    annotations: { [HASH_ANNOTATION]: "old", "kruise.io/sidecarset-hash-without-image": "before" },
  },
};
const many = (count: number): readonly Pod[] => Array.from({ length: count }, (_, index) => pod({ name: `q${index}` }));
const FOLLOWING = setOf(
  {},
  { annotations: { ...setOf().metadata?.annotations, "sidecarset.kruise.io/follow-ordinals": "true" } },
);
const OWNERS = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid: "uid-db", controller: true }];
const ordinalPod = (name: string): Pod => {
  const one = pod({ name });
  return { ...one, metadata: { ...one.metadata, ownerReferences: OWNERS } };
};
const NOT_READY = updated({
  isReady: false,
  statuses: statusesOf({ containers: [{ name: "main" }, { name: "sc", image: "reg/sc:v2" }] }),
});
const conditioned = (pod: Pod, ...conditions: readonly object[]) =>
  ({ ...pod, status: { ...pod.status, conditions } }) as Pod;
const GATE_CLOSED = {
  type: "Ready",
  status: "False",
  reason: "ReadinessGatesNotReady",
  message: 'gate "lb/x" is shut',
};
const BEHIND_A_GATE = conditioned(NOT_READY, GATE_CLOSED);
const BEHIND_OUR_GATE = conditioned(NOT_READY, GATE_CLOSED, { type: "InPlaceUpdateReady", status: "False" });
const UNSCHEDULED = conditioned(late(updated()), { type: "PodScheduled", status: "False", reason: "Unschedulable" });
const GATED: Pod = {
  ...late(updated()),
  spec: { ...late(updated()).spec, schedulingGates: [{ name: "example.io/quota" }] },
};
const UNSELECTED = setOf({ selector: { matchExpressions: [{ key: "tier", operator: "In", values: ["a", "b"] }] } });

const withAnnotations = (annotations: Readonly<Record<string, string>>, status: object = {}): SidecarSet => {
  const set = setOf({ updateStrategy: { maxUnavailable: 5 } });
  return {
    ...set,
    metadata: { ...set.metadata, annotations: { ...set.metadata?.annotations, ...annotations } },
    status: { ...set.status, conditions: [], ...status },
  };
};
const PULLING = withAnnotations({ "sidecarset.kruise.io/pre-pull": "5" });
const HALTING = withAnnotations({ "sidecarset.kruise.io/halt-on": "0" });
const UNDOING = withAnnotations({
  "sidecarset.kruise.io/halt-on": "0",
  "sidecarset.kruise.io/undo-on-halt": "true",
});
const UNDONE = withAnnotations({
  "sidecarset.kruise.io/undone": JSON.stringify([
    { from: "bad", to: NEW_HASH, at: NOW, message: "put back to revision 1, since 2 of 2 updated pods fail" },
  ]),
});
const IGNORING = { "sidecarset.kruise.io/ignore-never-ready": "true" };
const GATE = { "sidecarset.kruise.io/gate": "https://gate.example/batch?token=s3cret" };
const refusedWith = (message: string): SidecarSet =>
  withAnnotations(GATE, {
    conditions: [
      { type: "Blocked", status: "True", reason: "Gate", message, lastTransitionTime: "2025-05-31T23:50:00Z" },
    ],
  });
const REFUSED = refusedWith("the gate at gate.example says no: freeze");
const FORBIDDEN = refusedWith("the gate at gate.example may not be asked: GATE_HOSTS names no host");
/** Returns a SidecarSet whose maxUnavailable lets only some of the waiting pods go at once. */
const refusedBy = (maxUnavailable: number): SidecarSet => ({
  ...REFUSED,
  spec: { ...REFUSED.spec, updateStrategy: { maxUnavailable } },
});
const partial = (partition: number | string): SidecarSet =>
  setOf({
    updateStrategy: { partition },
    injectionStrategy: { revision: { revisionName: REVISION.metadata?.name ?? "", policy: "Partial" } },
  });
const SHARED = withAnnotations({ "sidecarset.kruise.io/max-unavailable-per-owner": "1" });
const downOrdinal = (name: string): Pod => {
  const one = ordinalPod(name);
  const conditions = [{ type: "Ready", status: "False" }];
  return { ...one, status: { ...one.status, conditions } };
};
const waves = (...list: readonly object[]) => withAnnotations({ "sidecarset.kruise.io/waves": JSON.stringify(list) });
const DEV = { name: "dev", namespaceSelector: { matchLabels: { stage: "dev" } } };
const NONE_IN_DEV = { ...DEV, soakSeconds: 60 };
const inDev = (one: Pod): Pod => ({ ...one, metadata: { ...one.metadata, namespace: "dev", uid: "uid-dev" } });
const DEV_LABELS = { namespaceLabels: new Map([["dev", { stage: "dev" }]]) };
const missed = (ownerReferences: typeof OWNERS = OWNERS): Pod => {
  const one = bare("2025-02-01T00:00:00Z");
  return { ...one, metadata: { ...one.metadata, ownerReferences } };
};
const replacing = (words: string) => withAnnotations({ "sidecarset.kruise.io/replace": words });
const UNDATED = replacing("Missed, Restart");
const managedFields = [{ time: "2025-01-15T00:00:00Z", fieldsV1: { "f:spec": {} } }];
const MISSED_RESTART: SidecarSet = { ...UNDATED, metadata: { ...UNDATED.metadata, managedFields } as object };
/** Returns facts with the StatefulSet of `missed` as a pass reads it; null: it does not exist. */
const missedOf = (more: object | null, underWay: readonly string[] = []): Partial<Facts> => ({
  restarting: {
    missed: [missed()],
    restarted: underWay.map((name) => ({ workload: "StatefulSet", namespace: "default", name, uid: name })),
    workloads: new Map([["StatefulSet default/db", more && { metadata: { name: "db", uid: "uid-db" }, ...more }]]),
  },
});
const ROLLED_OUT = { spec: { replicas: 1 }, status: { updatedReplicas: 1, replicas: 1, availableReplicas: 1 } };
const UNREADABLE = withAnnotations({ "sidecarset.kruise.io/max-unavailable-per-owner": "some" });

interface Case {
  readonly set?: SidecarSet;
  readonly pod: Pod;
  readonly facts?: Partial<Facts>;
}

/** Rows: the reason that the trace must contain, its verdict, the case, and the expected message. */
const ROWS: readonly (readonly [string, Step["verdict"], Case, RegExp])[] = [
  ["WebhookNotRegistered", "stop", { pod: bare(), facts: { registrations: [] } }, /no webhook for pods is registered/],
  ["WebhookUnknown", "note", { pod: pod(), facts: { registrations: undefined } }, /unknown/],
  [
    "NamespaceExcluded",
    "stop",
    { pod: bare(), facts: { namespace: { metadata: { name: "ops", labels: { "control-plane": "x" } } } } },
    /namespace ops/,
  ],
  [
    "ObjectExcluded",
    "stop",
    { pod: bare(), facts: { registrations: [{ name: "w", objectSelector: { matchLabels: { inject: "yes" } } }] } },
    /these labels/,
  ],
  ["WebhookAsked", "ok", { pod: pod() }, /asks mpod\.kb\.io/],
  ["PodFinished", "stop", { pod: pod({ phase: "Succeeded" }) }, /Succeeded/],
  ["PodTerminating", "stop", { pod: bare("2025-02-01T00:00:00Z", { deletionTimestamp: NOW }) }, /being deleted/],
  [
    "NamespaceNotSelected",
    "stop",
    { set: setOf({ namespaceSelector: { matchLabels: { team: "a" } } }), pod: bare() },
    /team is absent, wanted a/,
  ],
  [
    "NamespaceSelected",
    "ok",
    { set: setOf({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "default" } } }), pod: pod() },
    /selects the namespace default/,
  ],
  ["SelectorMissing", "stop", { set: setOf({ selector: {} }), pod: bare() }, /no selector/],
  [
    "SelectorInvalid",
    "stop",
    { set: setOf({ selector: { matchExpressions: [{ key: "a", operator: "Equals" }] } }), pod: bare() },
    /"Equals"/,
  ],
  ["SelectorNotMatched", "stop", { set: UNSELECTED, pod: bare() }, /tier is absent, wanted In a, b/],
  ["SelectorMatched", "ok", { pod: pod() }, /matches the pod's labels/],
  [
    "OptedOut",
    "stop",
    {
      pod: bare("2025-02-01T00:00:00Z", { labels: { ...LABELS, "sidecarset.kruise.io/inject": "false" } }),
      facts: { settings: { ...CONTEXT.settings, PodOptOut: true } },
    },
    /declines all sidecars/,
  ],
  [
    "OptOutIgnored",
    "note",
    { pod: bare("2025-02-01T00:00:00Z", { labels: { ...LABELS, "sidecarset.kruise.io/inject": "false" } }) },
    /only where the feature gate PodOptOut is on/,
  ],
  [
    "InjectionPaused",
    "stop",
    { set: setOf({ injectionStrategy: { paused: true } }), pod: bare() },
    /injection is paused/,
  ],
  ["ReplacedByCanary", "stop", { pod: bare(), facts: { sidecarSets: [setOf(), CANARY] } }, /takes its place/],
  [
    "ConflictsWithSidecarSet",
    "stop",
    { pod: bare("2025-02-01T00:00:00Z"), facts: { sidecarSets: [setOf(), RIVAL] } },
    /container sc already exist in rival/,
  ],
  [
    "RevisionPinned",
    "note",
    {
      set: setOf({ injectionStrategy: { revision: { revisionName: REVISION.metadata?.name ?? "" } } }),
      pod: pod(),
      facts: { revisions: [REVISION] },
    },
    /not the newest/,
  ],
  [
    "RevisionMissing",
    "stop",
    { set: setOf({ injectionStrategy: { revision: { customVersion: "v9" } } }), pod: bare() },
    /custom version v9, which does not exist/,
  ],
  ["Injected", "ok", { pod: pod() }, /has the sidecars of ss/],
  [
    "ContainersMissing",
    "stop",
    {
      set: setOf({
        containers: [
          { name: "sc", image: "x" },
          { name: "new", image: "y" },
        ],
      }),
      pod: pod(),
    },
    /before the SidecarSet had new/,
  ],
  [
    "CreatedBeforeSidecarSet",
    "stop",
    { pod: bare("2024-12-31T23:59:59Z") },
    /2024-12-31T23:59:59Z, the SidecarSet at 2025/,
  ],
  ["WebhookMissed", "stop", { pod: bare("2025-02-01T00:00:00Z") }, /was not reached then \(failurePolicy Ignore\)/],
  ["WebhookMissed", "note", { set: replacing("Missed"), pod: missed() }, /was not reached then/],
  ["Evicting", "wait", { set: replacing("Missed"), pod: missed() }, /the StatefulSet db creates another with sidecars/],
  [
    "Evicting",
    "wait",
    { set: withAnnotations({ "sidecarset.kruise.io/evict-missed": "true" }), pod: missed() },
    /^passes evict it, within maxUnavailable/,
  ],
  ["NotEvicted", "stop", { set: replacing("Missed"), pod: missed([]) }, /it has no controller that would recreate it/],
  [
    "StrategyPaused",
    "stop",
    { set: setOf({ updateStrategy: { paused: true } }, replacing("Missed").metadata), pod: missed() },
    /paused/,
  ],
  [
    "Restarting",
    "wait",
    { set: MISSED_RESTART, pod: missed(), facts: missedOf(ROLLED_OUT, ["other"]) },
    /^StatefulSet default\/db is restarted after other workloads/,
  ],
  [
    "NextInLine",
    "ok",
    { set: MISSED_RESTART, pod: missed(), facts: missedOf(ROLLED_OUT) },
    /^the next pass restarts StatefulSet default\/db, which recreates its pods/,
  ],
  [
    "RestartHeld",
    "stop",
    { set: MISSED_RESTART, pod: missed(), facts: missedOf(null) },
    /there is no such StatefulSet/,
  ],
  [
    "RestartHeld",
    "stop",
    { set: UNDATED, pod: missed() },
    /^its workload is not restarted: it is not known since when the SidecarSet says what it says now$/,
  ],
  [
    "RestartHeld",
    "stop",
    { set: MISSED_RESTART, pod: missed([]) },
    /^its workload is not restarted: it has no controller/,
  ],
  ["StrategyNotUpdate", "stop", { set: setOf({ updateStrategy: { type: "NotUpdate" } }), pod: pod() }, /NotUpdate/],
  ["StrategyPaused", "stop", { set: setOf({ updateStrategy: { paused: true } }), pod: pod() }, /paused/],
  ["UpdatedAndReady", "ok", { pod: updated() }, /newest version and is ready/],
  [
    "UpdatedAndReady",
    "note",
    { pod: updated(), set: setOf({ patchPodMetadata: [{ annotations: { team: "web" }, patchPolicy: "Overwrite" }] }) },
    /^the pod has the newest images and is ready; it gets team of patchPodMetadata with its next update in place/,
  ],
  ["WaitingForImage", "wait", { pod: late(updated()) }, /sc: its node has not started/],
  [
    "RecordUnreadable",
    "stop",
    { pod: forged(updated()) },
    /state cannot be read, so the pod counts as still being updated/,
  ],
  ["RecordUnreadable", "stop", { pod: forged(pod()) }, /state cannot be read/],
  ["ImagePullError", "stop", { pod: waitingPod("ImagePullBackOff") }, /image reg\/sc:v2 cannot be pulled/],
  [
    "ImagePullError",
    "stop",
    { pod: waitingPod("ImagePullBackOff"), set: setOf({ containers: [{ name: "sc", image: "reg/sc:v7" }] }) },
    /^sc: ImagePullBackOff of an image that is not the SidecarSet's: the image reg\/sc:v2 cannot be pulled/,
  ],
  ["ContainerFailing", "stop", { pod: waitingPod("CrashLoopBackOff") }, /sc: CrashLoopBackOff/],
  ["PodNotReady", "wait", { pod: NOT_READY }, /is not ready yet; it/],
  [
    "PodNotReady",
    "wait",
    { pod: BEHIND_OUR_GATE },
    /is not ready yet \(ReadinessGatesNotReady: gate "lb\/x" is shut\); it/,
  ],
  ["PodNotReady", "stop", { pod: BEHIND_A_GATE }, /is not ready \(ReadinessGatesNotReady: gate "lb\/x" is shut\); it/],
  ["PodNotReady", "stop", { pod: UNSCHEDULED }, /is not scheduled \(Unschedulable\); it/],
  ["PodNotReady", "stop", { pod: GATED }, /is not scheduled \(SchedulingGated: example\.io\/quota\); it/],
  [
    "HotUpgradeUnderWay",
    "wait",
    {
      set: { ...setOf(), spec: { ...hotSidecarSetOf().spec, selector: SELECTOR } },
      pod: hotPodOf(["reg/mesh:v2", "reg/mesh:v1"], "mesh-1", { hash: NEW_HASH, labels: LABELS }),
    },
    /empties the old one/,
  ],
  [
    "ResizeUnderWay",
    "wait",
    {
      pod: pod({ annotations: { "sidecarset.kruise.io/resize": JSON.stringify({ ss: NEW_HASH }) } }),
      facts: { settings: { ...CONTEXT.settings, InPlaceResize: true } },
    },
    /cpu and memory are changed first/,
  ],
  [
    "OutOfDate",
    "note",
    { pod: pod(), facts: { revisions: [withWithoutImage] } },
    new RegExp(`has ${REVISION.metadata?.name}`),
  ],
  [
    "UpdateSelectorNotMatched",
    "stop",
    { set: setOf({ updateStrategy: { selector: { matchLabels: { ring: "1" } } } }), pod: pod() },
    /leaves the pod out/,
  ],
  [
    "NextInLine",
    "ok",
    { set: REPLACING, pod: owned(pod({ withoutImage: "x" }), "ReplicaSet") },
    /the next pass evicts it, and another comes in its place/,
  ],
  [
    "Restarting",
    "wait",
    { set: RESTARTING, pod: owned(pod({ withoutImage: "x" }), "StatefulSet"), facts: { restarting: restarting("a") } },
    /^StatefulSet \S+ is being restarted$/,
  ],
  [
    "RestartHeld",
    "stop",
    { set: RESTARTING, pod: owned(pod({ withoutImage: "x" }), "StatefulSet"), facts: { restarting: restarting() } },
    /^StatefulSet \S+ is not restarted: there is no such StatefulSet that its pods belong to$/,
  ],
  [
    "NotUpgradable",
    "stop",
    { set: REPLACING, pod: owned(pod({ withoutImage: "x" }), "Job") },
    /it is not replaced: a Job may not recreate it/,
  ],
  [
    "NotUpgradable",
    "stop",
    {
      set: setOf({ containers: [{ name: "sc", image: "reg/sc:v2", env: [{ name: "A" }] }] }),
      pod: pod({ withoutImage: "before" }),
      facts: { revisions: [withWithoutImage] },
    },
    /spec\.containers\{sc\}\.env/,
  ],
  ["PreviousUpdateUnderWay", "wait", { pod: late(pod()) }, /previous update/],
  [
    "UpdateRefused",
    "stop",
    {
      set: setOf({ patchPodMetadata: [{ annotations: { note: "{" }, patchPolicy: "MergePatchJson" }] }),
      pod: pod({ annotations: { note: "{}" } }),
    },
    /left alone: annotation note/,
  ],
  [
    "HotUpgradesFirst",
    "wait",
    {
      set: { ...setOf(), spec: { ...hotSidecarSetOf().spec, selector: SELECTOR } },
      pod: hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { labels: LABELS }),
      facts: {
        pods: [hotPodOf(["reg/mesh:v2", "reg/mesh:v1"], "mesh-1", { name: "other", hash: NEW_HASH, labels: LABELS })],
      },
    },
    /1 hot upgrade is finished first/,
  ],
  [
    "KeptByPartition",
    "stop",
    { set: setOf({ updateStrategy: { partition: 5 } }), pod: pod({ name: "z" }), facts: { pods: many(4) } },
    /keeps the last 5/,
  ],
  [
    "BudgetUsed",
    "wait",
    { pod: pod({ name: "z" }), facts: { pods: [waitingPod("ImagePullBackOff")] } },
    /1 of 1 that wait; 1 of at most 1 unavailable, held by default\/p \(sc: ImagePullBackOff\)/,
  ],
  [
    "BudgetUsed",
    "wait",
    { pod: pod({ name: "z" }), facts: { pods: [neverReady()] } },
    /1 of at most 1 unavailable, held by .+; 1 of them was not ready before either, and would not count if the annotation sidecarset.kruise.io\/ignore-never-ready is "true"$/,
  ],
  [
    "NextInLine",
    "ok",
    { set: withAnnotations(IGNORING), pod: pod({ name: "z" }), facts: { pods: [neverReady()] } },
    /1 of 1 that wait, the next pass updates it/,
  ],
  ["PodNotReady", "wait", { pod: neverReady() }, /not ready before either, and uses a share .+ unless the annotation/],
  [
    "PodNotReady",
    "wait",
    { set: withAnnotations(IGNORING), pod: neverReady() },
    /not ready before either, and uses no share of maxUnavailable$/,
  ],
  [
    "OrderOfSets",
    "wait",
    { set: FOLLOWING, pod: ordinalPod("db-0"), facts: { pods: [ordinalPod("db-1")] } },
    /2 of 2 that wait: default\/db-1 of the same set comes first/,
  ],
  [
    "PodTooLarge",
    "stop",
    { pod: largePod() },
    /^the pod is left out: its labels, its containers .+ more than 65536 characters$/,
  ],
  ["Reserved", "wait", { pod: pod(), facts: { reserved: reservedFor(["uid-p"]) } }, /reserved the pod/],
  ["NextInLine", "ok", { pod: pod() }, /1 of 1 that wait, the next pass updates it/],
  [
    "PrePulling",
    "wait",
    { set: PULLING, pod: pod(), facts: { pulls: { namespace: "kruise-system", pods: [] } } },
    /1 of 1 that wait; images are pulled first on 1 node, 1 now, at most 5 at once$/,
  ],
  [
    "PrePullFailed",
    "stop",
    {
      set: PULLING,
      pod: pod(),
      facts: { pulls: { namespace: "kruise-system", pods: [], refusal: { message: "pods is forbidden", at: NOW } } },
    },
    /pods that pull them cannot be created: pods is forbidden$/,
  ],
  [
    "RolloutHalted",
    "stop",
    { set: HALTING, pod: pod(), facts: { pods: [takenDown(waitingPod("CrashLoopBackOff"))] } },
    /is stopped: 1 of 1 updated pods fail, and sidecarset.kruise.io\/halt-on is 0/,
  ],
  [
    "ReleaseUnproven",
    "wait",
    { set: HALTING, pod: pod(), facts: { pods: Array.from({ length: 100 }, (_, at) => startingPod(`s${at}`)) } },
    /^as many pods as may were given the release/,
  ],
  ["AnnotationUnreadable", "stop", { set: UNREADABLE, pod: pod() }, /since the annotation .+-per-owner says some/],
  [
    "OwnerBudgetUsed",
    "wait",
    { set: SHARED, pod: ordinalPod("db-0"), facts: { pods: [downOrdinal("db-1")] } },
    /2 of 2 that wait; StatefulSet default\/db: 1 of at most 1 down or on their way \(db-1\)/,
  ],
  [
    "HeldByDisruptionBudget",
    "wait",
    { set: setOf({}), pod: pod(), facts: { disruptionBudgets: [budgetOf({ allowed: 0, healthy: 2 })] } },
    /^the pod is 1 of 1 that wait; PodDisruptionBudget default\/one allows 0 more down: 2 healthy of 2 that have to be$/,
  ],
  [
    "LaterWave",
    "wait",
    { set: waves(DEV), pod: pod(), facts: { ...DEV_LABELS, pods: [inDev(pod())] } },
    /^the pod is in no wave, which comes last: wave dev comes first, 1 of its 1 pod is not updated and ready yet; 1 pod of later waves waits$/,
  ],
  [
    "NextInLine",
    "ok",
    {
      set: waves({ ...DEV, namespaceSelector: {} }),
      pod: pod(),
      facts: { namespaceLabels: new Map([["default", {}]]) },
    },
    /^the pod is 1 of 1 that wait, in wave dev, the next pass updates it/,
  ],
  [
    "WaveSoaking",
    "wait",
    { set: waves(NONE_IN_DEV), pod: pod() },
    /in no wave, which comes last: wave dev is complete and soaks until 2025-06-01T00:01:00Z;/,
  ],
  ["WavePaused", "stop", { set: waves({ ...DEV, paused: true }), pod: pod() }, /wave dev is paused; 1 pod of/],
  [
    "GateRefused",
    "wait",
    { set: REFUSED, pod: pod() },
    /^the gate at gate.example says no: freeze, blocked since 2025-05-31/,
  ],
  [
    "NextInLine",
    "ok",
    { set: withAnnotations(GATE), pod: pod() },
    /updates it, if the gate at gate.example allows it$/,
  ],
  [
    "RevisionPinned",
    "note",
    { set: partial("30%"), pod: pod(), facts: { revisions: [REVISION] } },
    /^30% of new pods get the revision .+, the others the newest/,
  ],
  [
    "RevisionPinned",
    "note",
    { set: partial(3), pod: pod(), facts: { revisions: [REVISION] } },
    /^0% of new pods get the revision/,
  ],
  [
    "GateRefused",
    "wait",
    { set: refusedBy(1), pod: pod({ name: "q9" }), facts: { pods: many(3) } },
    /says no: freeze, blocked since .+; without its yes no pod is updated$/,
  ],
  [
    "DrainFirst",
    "wait",
    {
      set: setOf({}, { annotations: { ...setOf().metadata?.annotations, [DRAIN_ANNOTATION]: "10s" } }),
      pod: drained(),
    },
    /1 of 1 that wait and drained since 2025-06-01T00:00:00Z: its sidecars restart in 10 seconds$/,
  ],
  [
    "DrainFirst",
    "wait",
    { pod: drained({ hash: NEW_HASH, image: "reg/sc:v2" }) },
    /^the pod is drained since 2025-06-01T00:00:00Z, the next pass puts it back$/,
  ],
  ["ChangeNotSeen", "wait", { set: setOf({}, { generation: 3 }), pod: pod() }, /generation 3, seen 2/],
  ["TickNotRunning", "stop", { pod: pod(), facts: { lastPass: "2025-05-31T23:00:00Z" } }, /since 2025-05-31T23:00:00Z/],
  ["TickUnknown", "note", { pod: pod(), facts: { lastPass: undefined } }, /unknown/],
  ["TickRunning", "ok", { pod: pod(), facts: { lastPass: "2025-05-31T23:59:30Z" } }, /30 seconds ago/],
  ["TickRunning", "ok", { pod: pod(), facts: { lastPass: "2025-05-31T23:59:59Z" } }, / 1 second ago/],
];

const seen = new Set<string>();

describe("explainPod:", () => {
  it.each(ROWS)(
    "explainPod in row %$ gives the reason %s with the verdict %s",
    (reason, verdict, { set = setOf(), pod: subject, facts = {} }, sentence) => {
      const pods = [subject, ...(facts.pods ?? [])];
      const steps = explainPod(subject, set, { ...FACTS, sidecarSets: [set], ...facts, pods });
      const step = steps.find((one) => one.reason === reason);
      expect(steps.map((one) => one.reason)).toContain(reason);
      expect([step?.verdict, step?.message]).toEqual([verdict, expect.stringMatching(sentence)]);
      // Every step that stops a pod has a hint.
      for (const { verdict, hint } of steps) if (verdict === "stop") expect(hint).toMatch(/\w/);
      seen.add(reason);
    },
  );

  it.each([
    ["a pod that is being deleted", setOf(), { ...pod(), metadata: { ...pod().metadata, deletionTimestamp: NOW } }],
    ["a pod that the changed selector leaves out", UNSELECTED, pod()],
    ["a pod whose namespace is left out", setOf({ namespaceSelector: { matchLabels: { team: "none" } } }), pod()],
  ])("the trace of %s ends with its unchanged sidecars and names no place in the update order", (_, set, one) => {
    const steps = explainPod(one, set, { ...FACTS, pods: [], sidecarSets: [set] });
    expect(steps.at(-1)?.reason).toBe("Injected");
    const notes = steps.filter(({ verdict }) => verdict === "note").map(({ message }) => message);
    expect(notes).toEqual([expect.stringMatching(/, so passes leave its sidecars as they are$/)]);
  });

  it("explainPod does not report a changed selector as a problem of an injected and updated pod", () => {
    const steps = explainPod(updated(), UNSELECTED, { ...FACTS, pods: [updated()] });
    expect(steps.map(({ reason, verdict }) => [reason, verdict])).toEqual([
      ["WebhookAsked", "ok"],
      ["SelectorNotMatched", "note"],
      ["Injected", "ok"],
      ["UpdatedAndReady", "ok"],
    ]);
  });
});

const SETS: readonly (readonly [string, Step["verdict"], SidecarSet, readonly Pod[], RegExp])[] = [
  ["SelectorMissing", "stop", setOf({ selector: {} }), [], /no selector/],
  ["NoPods", "note", setOf(), [], /matches no pod/],
  ["PodsMatched", "ok", setOf(), [pod()], /1 pod has its sidecars, of 1/],
  ["PodsLackSidecars", "stop", setOf(), [bare(), pod({ name: "q" })], /1 pod matches and has none/],
  [
    "PodsLackSidecars",
    "note",
    setOf({ injectionStrategy: { paused: true } }),
    [bare(), pod({ name: "q" })],
    /^1 pod matches and has none of its sidecars; while injection is paused no pod counts as missed$/,
  ],
  [
    "ContainersMissing",
    "stop",
    setOf({ containers: [{ name: "more", image: "x" }] }),
    [pod()],
    /1 pod was made before/,
  ],
  ["AllUpdated", "ok", setOf(), [updated()], /1 of 1 pod updated, 1 of them ready/],
  ["InjectionPaused", "stop", setOf({ injectionStrategy: { paused: true } }), [updated()], /come without/],
  [
    "RevisionMissing",
    "stop",
    setOf({ injectionStrategy: { revision: { revisionName: "r" } } }),
    [updated()],
    /names r, which does not exist: new pods are refused/,
  ],
  ["StrategyPaused", "stop", setOf({ updateStrategy: { paused: true } }), [pod()], /paused/],
  ["StrategyNotUpdate", "stop", setOf({ updateStrategy: { type: "NotUpdate" } }), [pod()], /NotUpdate/],
  ["NotUpgradable", "stop", setOf(), [pod({ withoutImage: "x" })], /1 pod cannot be updated in place/],
  ["KeptByPartition", "stop", setOf({ updateStrategy: { partition: 1 } }), [pod()], /keeps 1 pod /],
  ["NextInLine", "ok", setOf(), [pod()], /updates 1 pod/],
  ["BudgetUsed", "stop", setOf(), [waitingPod("ImagePullBackOff"), pod({ name: "q" })], /ImagePullBackOff/],
  ["ContainerFailing", "stop", setOf(), [waitingPod("CrashLoopBackOff")], /not all are ready/],
  [
    "ContainerFailing",
    "stop",
    HALTING,
    [takenDown(waitingPod("CrashLoopBackOff")), pod({ name: "q" }), elsewhere(pod({ name: "r" }))],
    /halt-on is 0 and does not stop the rollout yet: the pods are in 2 namespaces, and those of one alone do not stop it$/,
  ],
  ["BudgetUsed", "stop", setOf(), [BEHIND_A_GATE, pod({ name: "q" })], /gate "lb\/x" is shut/],
  ["PodNotReady", "wait", setOf(), [NOT_READY], /not all are ready/],
  ["PodNotReady", "stop", setOf(), [BEHIND_A_GATE], /not all are ready: .+ gate "lb\/x" is shut/],
  ["ChangeNotSeen", "wait", setOf({}, { generation: 9 }), [pod()], /generation 9/],
  [
    "RolloutHalted",
    "stop",
    HALTING,
    [takenDown(waitingPod("CrashLoopBackOff")), pod({ name: "q" })],
    /1 of 1 updated pods fail/,
  ],
  [
    "RolloutHalted",
    "stop",
    UNDOING,
    [takenDown(waitingPod("CrashLoopBackOff"))],
    /not undone, since no other revision is kept/,
  ],
  ["AnnotationUnreadable", "stop", UNREADABLE, [pod()], /nothing is updated, since the annotation/],
  [
    "ReleaseUndone",
    "note",
    UNDONE,
    [updated()],
    /^a release was taken back: it was put back to revision 1, since 2 of/,
  ],
  ["ReleaseUndone", "note", UNDONE, [pod()], /taken back/],
  [
    "OwnerBudgetUsed",
    "wait",
    SHARED,
    [ordinalPod("db-0"), downOrdinal("db-1")],
    /^1 pod waits for others of the same owner: StatefulSet default\/db: .+ \(db-1\)$/,
  ],
  ["LaterWave", "wait", waves(DEV), [pod()], /^wave dev is passed, the next one begins; 1 pod of later waves waits$/],
  ["WaveSoaking", "wait", waves(NONE_IN_DEV), [pod()], /^wave dev is complete and soaks until 2025-06-01T00:01:00Z/],
  ["WavePaused", "stop", waves({ ...DEV, paused: true }), [pod()], /^wave dev is paused; 1 pod of later waves waits$/],
  ["GateRefused", "wait", REFUSED, [pod()], /says no: freeze, blocked since .+; without its yes no pod is updated$/],
  ["GateUnanswered", "stop", FORBIDDEN, [pod()], /may not be asked: GATE_HOSTS names no host/],
  ["NextInLine", "ok", withAnnotations(GATE), [pod()], /updates 1 pod, if the gate at gate.example allows it$/],
];

describe("explainPodAlone:", () => {
  const alone = (one: Pod, set = setOf()) =>
    explainPodAlone(one, set, { ...FACTS, sidecarSets: [set], pods: [one] } as Facts).map(({ reason }) => reason);

  it("without the other pods the trace says that the place of a pod in the update order is unknown", () => {
    expect(alone(pod()).slice(-2)).toEqual(["OutOfDate", "OthersNotRead"]);
    seen.add("OthersNotRead");
  });

  it("the trace of a pod names the refusal of its last write while passes try others", () => {
    const [one, other] = [pod(), podOf({ name: "other", labels: LABELS })];
    const refused = {
      namespace: "default",
      name: "p",
      uid: one.metadata?.uid ?? "",
      times: 1,
      until: NOW,
      message: "no",
    };
    const reserved = { ...UNTOUCHED.reserved, refused: { ...UNTOUCHED.reserved.refused, named: [refused] } };
    const facts = { ...FACTS, sidecarSets: [setOf()], pods: [one, other], reserved };
    const reasonsOf = (of: Pod) => explainPod(of, setOf(), facts).map(({ reason }) => reason);
    expect([reasonsOf(one).includes("WritesRefused"), reasonsOf(other).includes("WritesRefused")]).toEqual([
      true,
      false,
    ]);
  });

  it.each([
    ["", false, /Kubernetes lets no image change: the annotation sidecarset\.kruise\.io\/replace with NotUpgradable/],
    ["NotUpgradable", false, /Kubernetes lets no image change, and p is not replaced: it has no controller/],
    ["NotUpgradable", true, /evicts it, and another comes in its place, because Kubernetes lets no image change/],
  ])(
    "if images may not change, the trace of a pod with replace: %j and a controller (%s) says what happens instead",
    (replace, isOwned, text) => {
      const plain = pod();
      const one = isOwned ? { ...plain, metadata: { ...plain.metadata, ownerReferences: OWNERS } } : plain;
      const message = "spec: Forbidden: pod updates may not change fields other than `spec.tolerations`";
      const place = { namespace: "default", name: "p", uid: one.metadata?.uid ?? "" };
      const named = [{ ...place, times: 1, until: NOW, message }];
      const reserved = { ...UNTOUCHED.reserved, refused: { ...UNTOUCHED.reserved.refused, named } };
      const asked = withAnnotations({ "sidecarset.kruise.io/replace": replace });
      const set = replace === "" ? setOf() : { ...asked, metadata: { ...asked.metadata, generation: 1 } };
      const steps = explainPod(one, set, { ...FACTS, sidecarSets: [set], pods: [one], reserved });
      expect(steps.map((step) => step.message).join("\n")).toMatch(text);
    },
  );

  it("a budget that only a reserved pod uses is held by a counted pod, and not by a pod without a name", () => {
    const [one, other] = [pod(), pod({ name: "q" })];
    const reserved = reservedFor([one.metadata?.uid ?? ""]);
    const steps = explainSidecarSet(setOf(), { ...FACTS, sidecarSets: [setOf()], pods: [one, other], reserved });
    expect(steps.map(({ message }) => message).join("\n")).toContain(
      "1 of at most 1 unavailable, held by 1 pod that a pass has reserved or evicted",
    );
  });

  it("without the other pods the trace still says which field of the pod or the strategy holds the pod", () => {
    expect(alone(late(pod())).at(-1)).toBe("PreviousUpdateUnderWay");
    expect(alone(pod(), setOf({ updateStrategy: { paused: true } })).at(-1)).toBe("StrategyPaused");
  });

  it("without the other pods the trace still says that a pod is updated or has no sidecars", () => {
    expect(alone(updated()).at(-1)).toBe("UpdatedAndReady");
    expect(alone(bare("2025-02-01T00:00:00Z")).at(-1)).toBe("WebhookMissed");
  });
});

describe("explainSidecarSet:", () => {
  it.each(SETS)(
    "explainSidecarSet in row %$ gives the reason %s with the verdict %s",
    (reason, verdict, set, ...[pods, sentence]) => {
      const steps = explainSidecarSet(set, { ...FACTS, sidecarSets: [set], pods });
      const step = steps.find((one) => one.reason === reason);
      expect(steps.map((one) => one.reason)).toContain(reason);
      expect([step?.verdict, step?.message]).toEqual([verdict, expect.stringMatching(sentence)]);
      for (const { verdict, hint } of steps) if (verdict === "stop") expect(hint).toMatch(/\w/);
      seen.add(reason);
    },
  );

  it("the trace of a SidecarSet names a refusal of the gate and no budget that no pod uses", () => {
    const set = refusedBy(1);
    const steps = explainSidecarSet(set, { ...FACTS, sidecarSets: [set], pods: many(3) });
    expect(steps.map(({ reason }) => reason)).toEqual(["PodsMatched", "OutOfDate", "GateRefused", "TickRunning"]);
  });

  it("the trace of a SidecarSet names the budget and not the gate while pods are down", () => {
    const set = refusedBy(1);
    const steps = explainSidecarSet(set, { ...FACTS, sidecarSets: [set], pods: [NOT_READY, ...many(3)] });
    expect(steps.map(({ reason }) => reason)).toContain("BudgetUsed");
  });

  it("the trace of a SidecarSet names the share of new pods that get a pinned revision", () => {
    const set = partial("30%");
    const facts = { ...FACTS, sidecarSets: [set], pods: [updated()], revisions: [REVISION] };
    expect(explainSidecarSet(set, facts)[0]?.message).toMatch(/^30% of new pods get the revision/);
  });

  it("the trace of a SidecarSet says that new pods come without sidecars while injection is paused, and names no revision for them", () => {
    const set = setOf({
      injectionStrategy: { paused: true, revision: { revisionName: REVISION.metadata?.name ?? "" } },
    });
    const steps = explainSidecarSet(set, { ...FACTS, sidecarSets: [set], pods: [updated()], revisions: [REVISION] });
    expect(steps.map(({ reason }) => reason)).toEqual(["InjectionPaused", "PodsMatched", "AllUpdated"]);
  });

  it("the trace of a halted SidecarSet says that the next pass undoes the release", () => {
    const pods = [takenDown(waitingPod("CrashLoopBackOff"))];
    const steps = explainSidecarSet(UNDOING, { ...FACTS, sidecarSets: [UNDOING], pods, revisions: [withWithoutImage] });
    const { verdict, message } = steps.find(({ reason }) => reason === "RolloutHalted") ?? {};
    expect([verdict, message]).toEqual(["wait", expect.stringMatching(/; the next pass puts it back to revision 1$/)]);
  });

  it("the trace of a SidecarSet does not contain the secret in the address of a gate", () => {
    const steps = [REFUSED, withAnnotations(GATE)].flatMap((set) =>
      explainSidecarSet(set, { ...FACTS, sidecarSets: [set], pods: [pod()] }),
    );
    expect(steps.length).toBeGreaterThan(4);
    expect(JSON.stringify(steps)).not.toContain("s3cret");
  });
});

it.each([
  [
    "has failed",
    { outcome: "fail", told: "7" },
    "wait",
    /^the check errors is at 7, which has to be at most 5; it has failed 1 of 2 times/,
  ],
  [
    "is inconclusive",
    { outcome: "inconclusive", told: "the value is NaN" },
    "stop",
    /^the check errors says nothing: the/,
  ],
  ["has let a batch begin", { outcome: "pass", told: "1", isUsed: true }, "wait", /is evaluated again 60 s after/],
] as const)(
  "a check of metrics that %s holds the pods and the rollout, and both traces say so",
  (_, outcome, verdict, message) => {
    const checks = JSON.stringify([{ name: "errors", query: "q", max: 5, failuresAllowed: 1 }]);
    const set = setOf({}, { annotations: { ...setOf().metadata?.annotations, [METRICS_ANNOTATION]: checks } });
    const known = knownChecks(set, []).map((one) => evaluated(one, set, outcome, NOW));
    const facts = { ...FACTS, pods: [pod()], checks: parseRecords(formatRecords(known, false)) };
    for (const steps of [explainPod(pod(), set, facts), explainSidecarSet(set, facts)]) {
      const step = steps.find(({ reason }) => reason === "ChecksFirst");
      expect(step).toMatchObject({ verdict, message: expect.stringMatching(message) });
      seen.add("ChecksFirst");
    }
    const next = explainPod(pod(), set, { ...FACTS, pods: [pod()] }).find(({ reason }) => reason === "NextInLine");
    expect(next?.message).toMatch(/, if the check errors passes$/);
  },
);

it("a wave that waits for its checks holds later waves, and the traces name the checks", () => {
  const checks = JSON.stringify([{ name: "errors", query: "q", max: 5, failuresAllowed: 1 }]);
  const set = withAnnotations({
    [METRICS_ANNOTATION]: checks,
    "sidecarset.kruise.io/waves": JSON.stringify([DEV]),
  });
  const known = knownChecks(set, []).map((one) => evaluated(one, set, { outcome: "fail", told: "7" }, NOW));
  const pods = [inDev(updated()), pod()];
  const facts = { ...FACTS, ...DEV_LABELS, pods, checks: known.map(({ record }) => record) };
  const step = explainPod(pod(), set, facts).find(({ reason }) => reason === "WaveChecking");
  expect(step).toMatchObject({
    verdict: "wait",
    message: expect.stringMatching(
      /wave dev is complete and is passed once its checks of metrics pass; 1 pod of later waves waits$/,
    ),
  });
  const reasons = explainSidecarSet(set, facts).map(({ reason }) => reason);
  expect(reasons).toEqual(expect.arrayContaining(["WaveChecking", "ChecksFirst"]));
  seen.add("WaveChecking");
});

it.each([
  ["Refused", "WritesRefused"],
  ["PassRefused", "PassRefused"],
  ["Unreachable", "ApiServerUnreachable"],
  ["Contention", "Contention"],
  ["Unread", "PassTooShort"],
  ["PassFailed", "PassFailed"],
])("while two passes in a row end with %s, the rollout and its pods are explained by %s", (reason, cause) => {
  const message = "the API server refuses a pass: not on a Friday";
  const blocked = { type: "Blocked", status: "True", reason, message, lastTransitionTime: NOW } as const;
  const set = { ...setOf(), status: { observedGeneration: 9, conditions: [blocked] } };
  const facts = { ...FACTS, sidecarSets: [set], pods: [pod()] };
  for (const steps of [explainSidecarSet(set, facts), explainPod(pod(), set, facts as Facts)]) {
    expect(steps.find((step) => step.reason === cause)).toMatchObject({ verdict: "stop", message });
    expect(steps.map((step) => step.reason)).not.toContain("NextInLine");
  }
  seen.add(cause);
});

it("pods whose eviction was just refused wait, and the trace of the SidecarSet says so", () => {
  const pods = [owned(pod({ withoutImage: "x" }), "ReplicaSet")];
  const reserved = { ...FACTS.reserved, keptOwners: new Set(["default/uid-web"]) };
  const steps = explainSidecarSet(REPLACING, { ...FACTS, pods, reserved });
  const step = steps.find(({ reason }) => reason === "EvictionRefused");
  expect(step).toMatchObject({ verdict: "wait", message: expect.stringMatching(/^1 pod waits for an eviction/) });
  seen.add("EvictionRefused");
});

afterAll(() => {
  expect(REASONS.length).toBeGreaterThanOrEqual(20);
  expect(REASONS.filter((reason) => !seen.has(reason))).toEqual([]);
});

it("a pod that was not ready before its update is shown as not ready, even if the budget does not count it", () => {
  const set = withAnnotations(IGNORING);
  const facts = { ...FACTS, pods: [neverReady()] };
  const [row] = podRows({ sidecarSet: set, facts } as never);
  expect([row?.isReady, row?.state]).toEqual([false, "not ready, as before its update, and not counted"]);
});
