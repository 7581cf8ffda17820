/** Clusters that reach each hold of the book. The compiler demands a cluster for a new hold. */
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import { RESTARTED_AT_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet, StatusCondition, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { NONE_PASSED_OVER } from "../../../shared/core/refused-pods.ts";
import { type DecideContext, decide, type Observation } from "../../../shared/core/rollout/decide.ts";
import type { Hold } from "../../../shared/core/rollout/hold.ts";
import { evaluated, knownChecks } from "../../../shared/core/rollout/rules/checks/check-records.ts";
import type { PullFacts } from "../../../shared/core/rollout/rules/pre-pull/pull-facts.ts";
import { revisionData } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import type { HoldScene } from "../../support/hold-places.ts";
import {
  CONTEXT,
  hotPodOf,
  hotSidecarSetOf,
  NEW_HASH,
  NOW,
  type PodFacts,
  podOf,
  sidecarSetOf,
  statusesOf,
  takenDown,
  UNTOUCHED,
} from "../../support/rollout-fixture.ts";
import { budgetOf } from "../disruption/fixture.ts";

interface Given extends Partial<Omit<Observation, "sidecarSet" | "pods">> {
  readonly settings?: Partial<DecideContext["settings"]>;
}

const LABELS = { app: "web" };
const SELECTOR = { matchLabels: LABELS };

function scene(sidecarSet: SidecarSet, pods: readonly Pod[], { settings, ...given }: Given = {}): HoldScene {
  const observation = { ...UNTOUCHED, revisions: [], ...given, sidecarSet, pods };
  return { observation, context: { ...CONTEXT, settings: { ...CONTEXT.settings, ...settings } } };
}

function setOf(updateStrategy: UpdateStrategy = {}, base = sidecarSetOf()): SidecarSet {
  const { metadata, spec } = base;
  return {
    ...base,
    metadata: { ...metadata, creationTimestamp: "2025-01-01T00:00:00Z" },
    spec: { ...spec, selector: SELECTOR, updateStrategy },
    status: { observedGeneration: 2, conditions: [] },
  };
}

function annotated(name: string, value: unknown, set = setOf({ maxUnavailable: 5 })): SidecarSet {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const annotations = { ...set.metadata?.annotations, [`sidecarset.kruise.io/${name}`]: text };
  return { ...set, metadata: { ...set.metadata, annotations } };
}

/** Returns a SidecarSet for which the last pass wrote the condition Blocked. */
function blockedBy(reason: string, message: string, set = setOf()): SidecarSet {
  const blocked: StatusCondition = { type: "Blocked", status: "True", reason, message, lastTransitionTime: NOW };
  return { ...set, status: { ...set.status, conditions: [blocked] } };
}

const old = (facts: PodFacts = {}) => podOf({ labels: LABELS, ...facts });
const TRAFFIC = { ...LABELS, "sidecarset.kruise.io/traffic": "serving" };
const drained = () =>
  old({
    labels: { ...LABELS, "sidecarset.kruise.io/traffic": "drained" },
    annotations: { "sidecarset.kruise.io/drained-by": JSON.stringify({ ss: { since: NOW, release: NEW_HASH } }) },
  });
const done = (facts: PodFacts = {}) => old({ name: "done", hash: NEW_HASH, image: "reg/sc:v2", ...facts });
const down = () => done({ name: "down", isReady: false });

/** Returns an updated pod whose container crashes. */
function failing(name = "failing"): Pod {
  const pod = takenDown(done({ name, isReady: false }));
  const containerStatuses = statusesOf(pod.spec).map((status) =>
    status.name === "sc" ? { ...status, ready: false, state: { waiting: { reason: "CrashLoopBackOff" } } } : status,
  );
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

/** Returns a pod that was updated, and whose readiness gate nobody opens. */
function gated(): Pod {
  const pod = done({ name: "gated" });
  const closed = { type: "Ready", status: "False", reason: "ReadinessGatesNotReady", lastTransitionTime: NOW } as const;
  return { ...pod, status: { ...pod.status, conditions: [closed] } };
}

/** Returns a pod that was updated long ago, and without a condition that it was ever ready. */
function neverReady(name: string): Pod {
  const pod = done({ name, isReady: false });
  return { ...pod, status: { ...pod.status, conditions: [] } };
}

/** Returns a pod in a hot upgrade whose second container cannot pull the image. */
function hotFailing(): Pod {
  const facts = { name: "failing", hash: NEW_HASH, labels: LABELS, isReady: false };
  const pod = hotPodOf(["reg/mesh:v1", "reg/mesh:v2"], "mesh-2", facts);
  const containerStatuses = statusesOf(pod.spec).map((status) =>
    status.name === "mesh-2"
      ? { ...status, imageID: "", ready: false, state: { waiting: { reason: "ImagePullBackOff" } } }
      : status,
  );
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

function owned(pod: Pod, kind: string): Pod {
  const owner = { apiVersion: "apps/v1", kind, name: "web", uid: "uid-web", controller: true };
  return { ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } };
}

/** Returns a pod with release v1 in its spec, whose node still runs v0. */
function late(): Pod {
  const state = {
    ss: { revision: "x", updateTimestamp: NOW, lastContainerStatuses: { sc: { imageID: "cri://old" } } },
  };
  const annotations = { "kruise.io/sidecarset-inplace-update-state": JSON.stringify(state) };
  const pod = old({ annotations });
  const containerStatuses = statusesOf(pod.spec).map((status) =>
    status.name === "sc" ? { ...status, image: "reg/sc:v0", imageID: "cri://old" } : status,
  );
  return { ...pod, status: { ...pod.status, containerStatuses } };
}

const ORDERED = annotated("follow-ordinals", "true");
const GATED = annotated("gate", "https://gate.example/batch");
const METRICS = annotated("metrics", [{ name: "errors", query: "q", max: 5, failuresAllowed: 3 }]);
const measured = (outcome: "fail" | "inconclusive", told: string) =>
  scene(METRICS, [old()], {
    checks: knownChecks(METRICS, []).map((one) => evaluated(one, METRICS, { outcome, told }, NOW).record),
  });

const DEV = { name: "dev", namespaceSelector: { matchLabels: { stage: "dev" } } };
const inDev = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, namespace: "dev", uid: "uid-dev" } });
const waves = (wave: object, pods: readonly Pod[]) =>
  scene(annotated("waves", [wave]), pods, { namespaceLabels: new Map([["dev", { stage: "dev" }]]) });

/** Returns a cluster whose only wave is complete, and whose checks are not evaluated yet. */
function proving(): HoldScene {
  const checks = [{ name: "errors", query: "q", max: 5, failuresAllowed: 1 }];
  const set = annotated("metrics", checks, annotated("waves", [DEV]));
  return scene(set, [inDev(done()), old({ name: "q" })], { namespaceLabels: new Map([["dev", { stage: "dev" }]]) });
}

const LACKING = { withoutImage: "other" };
const leavingAlone = (updateStrategy: UpdateStrategy = {}): SidecarSet => {
  const set = setOf(updateStrategy);
  return {
    ...set,
    spec: { ...set.spec, patchPodMetadata: [{ annotations: { note: "{" }, patchPolicy: "MergePatchJson" }] },
  };
};
/** Returns a pod whose annotation is not JSON, so that it cannot be merged. */
const unmergeable = (facts: PodFacts = {}) => old({ annotations: { note: "{}" }, ...facts });
/** Returns a SidecarSet with this annotation, unchanged since its creation. */
const replacing = (words: string): SidecarSet => {
  const set = annotated("replace", words);
  return { ...set, metadata: { ...set.metadata, generation: 1 } };
};
const RESTARTING = replacing("NotUpgradable,Restart");
const PLACE = { workload: "StatefulSet", namespace: "default", name: "web" } as const;
const RESTARTED_NOW = { template: { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: NOW } } } };
const restarting = (uid?: string) =>
  scene(RESTARTING, [owned(old(LACKING), "StatefulSet")], {
    restarting: {
      missed: [],
      restarted: uid === undefined ? [] : [{ ...PLACE, uid }],
      workloads: new Map([
        [
          "StatefulSet default/web",
          uid === undefined ? null : { metadata: { uid, generation: 2 }, spec: RESTARTED_NOW },
        ],
      ]),
    },
  });

/** Returns a cluster where the new image runs with the cpu and memory of the old release. */
function shrinking(): HoldScene {
  const withoutImage = "with-other-resources";
  const resources = (cpu: string) => ({ requests: { cpu }, limits: {} });
  const setWith = (cpu: string): SidecarSet => {
    const set = setOf(
      {},
      sidecarSetOf({ containers: [{ name: "sc", image: "reg/sc:v2", resources: resources(cpu) }] }),
    );
    const annotations = { ...set.metadata?.annotations, "kruise.io/sidecarset-hash-without-image": withoutImage };
    return { ...set, metadata: { ...set.metadata, annotations } };
  };
  const revision: ControllerRevision = {
    metadata: { name: "ss-1", annotations: { "kruise.io/sidecarset-hash-without-image": "same" } },
    revision: 1,
    data: revisionData(setWith("200m")),
  };
  const mark = { "sidecarset.kruise.io/resize": JSON.stringify({ ss: NEW_HASH }) };
  const pod = done({ withoutImage, annotations: mark });
  const of = <T extends { readonly name: string }>(list: readonly T[] = []) =>
    list.map((one) => (one.name === "sc" ? { ...one, resources: resources("200m") } : one));
  const large: Pod = {
    ...pod,
    spec: { ...pod.spec, containers: of(pod.spec.containers) },
    status: { ...pod.status, containerStatuses: of(pod.status?.containerStatuses) },
  };
  return scene(setWith("100m"), [large], {
    revisions: [revision],
    isResizeServed: true,
    settings: { InPlaceResize: true },
  });
}

function hot(): HoldScene {
  const set = setOf({}, hotSidecarSetOf());
  const flipping = hotPodOf(["reg/mesh:v2", "reg/mesh:v1"], "mesh-1", {
    name: "other",
    hash: NEW_HASH,
    labels: LABELS,
  });
  return scene(set, [hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { labels: LABELS }), flipping]);
}

const trouble = (reason: string) => [
  scene(blockedBy(reason, "the API server refuses a pass: not on a Friday"), [old()]),
];

/** Returns a cluster whose last two passes were refused. Passes skip the only pod until the next try. */
function passedOver(): HoldScene {
  const pod = old();
  const refused = { named: [], passedOver: { ...NONE_PASSED_OVER, uids: new Set([pod.metadata?.uid ?? ""]) } };
  return scene(blockedBy("Refused", "the API server refuses to change the pod"), [pod], {
    reserved: { ...UNTOUCHED.reserved, refused },
  });
}

/** Returns a node that pulls, or whose kubelet gives a reason why it cannot. */
function pulling(reason?: string): PullFacts {
  const asked = scene(annotated("pre-pull", "1"), [old()], { pulls: { namespace: "kruise-system", pods: [] } });
  const [pod] = decide(asked.observation, asked.context).actions.flatMap((action) =>
    action.kind === "CreatePullPod" ? [action.pod] : [],
  );
  if (pod === undefined) throw new Error("no pod pulls");
  const state =
    reason === undefined ? {} : { containerStatuses: [{ name: "image-0", state: { waiting: { reason } } }] };
  const metadata = { ...pod.metadata, uid: "pull", creationTimestamp: NOW };
  return { namespace: "kruise-system", pods: [{ ...pod, metadata, status: { phase: "Pending", ...state } }] };
}

const PULLS_REFUSED = { namespace: "kruise-system", pods: [], refusal: { message: "pods is forbidden", at: NOW } };
const FULL = budgetOf({ allowed: 0, healthy: 2 });

export const HOLD_SCENES: Readonly<Record<Hold, readonly HoldScene[]>> = {
  paused: [scene(setOf({ paused: true }), [old()])],
  NotUpdate: [scene(setOf({ type: "NotUpdate" }), [old()])],
  halted: [
    scene(annotated("halt-on", "0"), [failing(), old()]),
    scene(annotated("halt-on", "0", setOf({ paused: true })), [failing(), old()]),
    scene(annotated("halt-on", "0", setOf({ type: "NotUpdate" })), [failing(), old()]),
  ],
  unreadable: [
    scene(annotated("waves", "dev", setOf({ paused: true })), [old()]),
    scene(annotated("waves", "dev", setOf({ type: "NotUpdate" })), [old()]),
    scene(annotated("max-unavailable-per-owner", "some"), [old()]),
    scene(annotated("waves", "dev, production"), [old()]),
  ],
  refused: [...trouble("Refused"), passedOver()],
  prePull: [
    scene(annotated("pre-pull", "1"), [old()], { pulls: pulling() }),
    scene(annotated("pre-pull", "1"), [old()], { pulls: pulling("ErrImagePull") }),
    scene(annotated("pre-pull", "1"), [old()], { pulls: PULLS_REFUSED }),
  ],
  passRefused: [
    ...trouble("PassRefused"),
    scene(blockedBy("PassRefused", "configmaps is forbidden", annotated("halt-on", "0")), [failing(), old()]),
  ],
  unreachable: trouble("Unreachable"),
  contention: trouble("Contention"),
  unread: trouble("Unread"),
  passFailed: trouble("PassFailed"),
  gate: [scene(blockedBy("Gate", "the gate at gate.example says no: freeze", GATED), [old()])],
  gateDown: [scene(blockedBy("GateDown", "the gate at gate.example may not be asked", GATED), [old()])],
  metrics: [measured("fail", "7"), measured("inconclusive", "no server may be asked")],
  finished: [
    scene(setOf(), [done()]),
    scene(setOf(), [failing()]),
    scene(setOf(), [down()]),
    scene(setOf(), [gated(), down()]),
  ],
  flip: [hot()],
  shrink: [shrinking()],
  drain: [
    scene(annotated("drain", "10s", setOf()), [drained(), old({ name: "q", labels: TRAFFIC })]),
    scene(annotated("drain", "10s", setOf({ maxUnavailable: 2, partition: 1 })), [drained(), old({ name: "q" })]),
  ],
  partition: [
    scene(setOf({ partition: 1 }), [old(), done()]),
    scene(setOf({ partition: 1 }), [old(), failing()]),
    // The partition holds back a pod that an older release left down.
    scene(setOf({ partition: 1 }), [takenDown(old({ image: "reg/sc:v2", isReady: false })), done()]),
  ],
  budget: [
    scene(setOf(), [old(), down()]),
    scene(setOf(), [old(), failing()]),
    scene(setOf(), [old(), gated()]),
    scene(setOf({ maxUnavailable: 0 }), [old()]),
    scene(setOf({}, hotSidecarSetOf()), [
      hotFailing(),
      hotPodOf(["reg/mesh:v1", "reg/empty:1"], "mesh-1", { labels: LABELS }),
    ]),
    scene(setOf({ maxUnavailable: 0 }), [failing(), old()]),
  ],
  order: [
    scene(annotated("follow-ordinals", "true"), [
      owned(old({ name: "web-0" }), "StatefulSet"),
      owned(old({ name: "web-1" }), "StatefulSet"),
    ]),
    scene(ORDERED, [owned(old({ name: "web-0" }), "StatefulSet"), owned(failing("web-1"), "StatefulSet")]),
    scene(ORDERED, [owned(old({ name: "web-0" }), "StatefulSet"), owned(neverReady("web-1"), "StatefulSet")]),
    scene(ORDERED, [
      owned(old({ name: "web-0" }), "StatefulSet"),
      owned(done({ name: "web-1", isReady: false }), "StatefulSet"),
    ]),
  ],
  ownerBudget: [
    scene(annotated("max-unavailable-per-owner", "1"), [
      owned(old({ name: "web-0" }), "StatefulSet"),
      owned(failing(), "StatefulSet"),
    ]),
  ],
  wave: [
    waves(DEV, [inDev(old()), old({ name: "q" })]),
    waves({ ...DEV, soakSeconds: 60 }, [inDev(done()), old({ name: "q" })]),
    waves({ ...DEV, paused: true }, [inDev(done()), old({ name: "q" })]),
    waves(DEV, [inDev(failing()), old({ name: "q" })]),
    proving(),
  ],
  disruptionBudget: [
    scene(setOf(), [old()], { disruptionBudgets: [FULL] }),
    scene(annotated("pre-pull", "1"), [old()], { disruptionBudgets: [FULL], pulls: PULLS_REFUSED }),
  ],
  evictionRefused: [
    scene(replacing("NotUpgradable"), [owned(old(LACKING), "ReplicaSet")], {
      reserved: { ...UNTOUCHED.reserved, keptOwners: new Set(["default/uid-web"]) },
    }),
    scene(blockedBy("EvictionRefused", "1 pod waits", replacing("NotUpgradable")), [owned(old(LACKING), "ReplicaSet")]),
  ],
  restart: [restarting("a"), restarting()],
  leftAlone: [
    scene(leavingAlone(), [unmergeable()]),
    // The pods are the same, with a different hold.
    scene(leavingAlone({ partition: 1 }), [unmergeable(), unmergeable({ name: "q" })]),
    scene(leavingAlone({ selector: { matchLabels: { tier: "a" } } }), [
      unmergeable({ labels: { ...LABELS, tier: "a" } }),
      old({ name: "q" }),
    ]),
    scene(leavingAlone(), [unmergeable({ name: "q" }), old(LACKING)]),
    scene(leavingAlone(), [unmergeable({ name: "q" }), late()]),
    scene(annotated("waves", [DEV], leavingAlone()), [inDev(unmergeable()), old({ name: "q" })], {
      namespaceLabels: new Map([["dev", { stage: "dev" }]]),
    }),
    scene(annotated("follow-ordinals", "true", leavingAlone()), [
      owned(unmergeable({ name: "web-0" }), "StatefulSet"),
      owned(unmergeable({ name: "web-1" }), "StatefulSet"),
    ]),
    // Updated pods that are down become ready again.
    scene(leavingAlone({ maxUnavailable: 3 }), [unmergeable(), down()]),
    scene(leavingAlone({ maxUnavailable: 3 }), [unmergeable(), failing()]),
  ],
  inFlight: [scene(setOf(), [late()])],
  notSelected: [scene(setOf({ selector: { matchLabels: { canary: "yes" } } }), [old()])],
  nothingWaits: [scene(setOf(), [old(LACKING)])],
  none: [
    scene(setOf(), [old()]),
    // The other pod of the set goes first.
    scene(annotated("follow-ordinals", "true", leavingAlone()), [
      owned(old({ name: "web-0" }), "StatefulSet"),
      owned(unmergeable({ name: "web-1" }), "StatefulSet"),
    ]),
  ],
};
