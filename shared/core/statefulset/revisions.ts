/** The revisions of a set: their data, new ones, and the kept ones. */
import type { ControllerRevision, KubernetesObject, OwnerReference, Pod } from "../../api/kubernetes.ts";
import { REVISION_HASH_LABEL, SIDECARSET_V1BETA1, STATEFUL_SET_KIND } from "../../api/names.ts";
import type { PodTemplateSpec, StatefulSet } from "../../api/stateful-set.ts";
import { sortedGoJson } from "../../go/json/go-json.ts";
import { isJsonObject } from "../../go/json/json-object.ts";
import { decodeGo } from "../../go/types/decode-go.ts";
import { POD_TEMPLATE_SPEC } from "../../go/types/pod.ts";
import { revisionHash } from "../sidecarset/hash/sidecarset-hash.ts";
import { compareRevisions, isOwn, isSameRevision } from "../sidecarset/revision/compare-revisions.ts";
import { revisionName, revisionText } from "../sidecarset/revision/recorded-revision.ts";
import { revisionOf } from "./pods/pod-phase.ts";
import { ask, findRevision, findSet, StepFailed, type Steps } from "./step.ts";

/**
 * The pod template, with everything that Go always prints. Compat: numbers pass through float64 (statefulset.md,
 * section 2). Throws where the template does not fit its type, which the API server stores only past the webhook.
 */
function templateData({ spec: { template = {} } }: StatefulSet): unknown {
  const known = recorded.get(template);
  if (known) return known;
  const data = recordOf(template);
  recorded.set(template, data);
  return data;
}

/** Data by template object. Templates never change, and a round needs the data of each twice. */
const recorded = new WeakMap<PodTemplateSpec, object>();

function recordOf(template: PodTemplateSpec): object {
  const decoded = decodeGo(POD_TEMPLATE_SPEC, template);
  if (decoded.kind === "DecodeError")
    throw new TypeError(`the pod template cannot be recorded: spec.template.${decoded.message}`);
  // The data has the order of Go's maps, as for revisions of SidecarSets.
  return { spec: { template: JSON.parse(sortedGoJson({ ...decoded.value, $patch: "replace" })) } };
}

/** The set with the template of the revision. Everything else is as in the present set. */
export function restoreTemplate(set: StatefulSet, { data }: ControllerRevision): StatefulSet {
  const spec = isJsonObject(data) ? data["spec"] : undefined;
  const recorded = isJsonObject(spec) ? spec["template"] : undefined;
  const { $patch: _, ...template } = isJsonObject(recorded) ? recorded : {};
  return { ...set, spec: { ...set.spec, template: template as PodTemplateSpec } };
}

// Name, labels and content of the ControllerRevision that records a set's pod template.

export function controllerReference({ metadata }: StatefulSet): OwnerReference {
  return {
    apiVersion: SIDECARSET_V1BETA1,
    kind: STATEFUL_SET_KIND,
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}

/**
 * The owners after an adoption, in the order of a strategic merge patch: a new owner comes first. An existing owner
 * that was not the controller becomes the controller and keeps its place.
 */
export function adoptedOwners({ metadata }: KubernetesObject, owner: OwnerReference): readonly OwnerReference[] {
  const before = metadata?.ownerReferences ?? [];
  const isThere = before.some(({ uid }) => uid === owner.uid);
  return isThere ? before.map((one) => (one.uid === owner.uid ? { ...one, ...owner } : one)) : [owner, ...before];
}

/** A revision that is not stored yet. Source: OpenKruise stateful_set_utils.go, newRevision. */
export function newSetRevision(set: StatefulSet, revision: number, collisionCount: number): ControllerRevision {
  const { name = "", namespace = "", annotations } = set.metadata ?? {};
  const data = templateData(set);
  const text = revisionText(data);
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name: revisionName(name, text, collisionCount),
      namespace,
      labels: { ...set.spec.template?.metadata?.labels, [REVISION_HASH_LABEL]: revisionHash(text, collisionCount) },
      annotations: { ...annotations },
      ownerReferences: [controllerReference(set)],
    },
    data,
    revision,
  };
}

// Finds the current and the update revision of a set, and deletes old ones.

const DEFAULT_LIMIT = 10;

export interface SetRevisions {
  readonly current: ControllerRevision;
  readonly update: ControllerRevision;
  readonly collisionCount: number;
}

/** The set's own revisions, oldest first. Those without an owner are adopted, also by a set that is being deleted. */
export function* ownHistory(
  set: StatefulSet,
  seen: readonly ControllerRevision[],
): Steps<readonly ControllerRevision[]> {
  const own = seen.filter((revision) => isOwn(revision, set));
  const orphans = own.filter(({ metadata }) => !metadata?.ownerReferences?.some(({ controller }) => controller));
  if (orphans.length === 0) return own.sort(compareRevisions);
  const fresh = yield* findSet();
  if (fresh?.metadata?.uid !== set.metadata?.uid) {
    throw new StepFailed(`original StatefulSet ${set.metadata?.namespace}/${set.metadata?.name} is gone`);
  }
  const adopted: ControllerRevision[] = [];
  for (const revision of orphans) {
    const owner = controllerReference(set);
    const after = yield* ask({ kind: "AdoptRevision", revision, owner });
    adopted.push(after as ControllerRevision);
  }
  return [...own.filter((revision) => !orphans.includes(revision)), ...adopted].sort(compareRevisions);
}

/** `history`: oldest first. Creates or renumbers the current template's revision. */
export function* chooseRevisions(set: StatefulSet, history: readonly ControllerRevision[]): Steps<SetRevisions> {
  const collisionCount = set.status?.collisionCount ?? 0;
  const last = history.at(-1);
  const next = (last?.revision ?? 0) + 1;
  const candidate = newSetRevision(set, next, collisionCount);
  const equal = history.findLast((revision) => isSameRevision(revision, candidate));
  const registered = yield* register();
  const current = history.find(({ metadata }) => metadata?.name === set.status?.currentRevision);
  return { ...registered, current: current ?? registered.update };

  function* register(): Steps<Omit<SetRevisions, "current">> {
    if (!equal) return yield* create(set, candidate, collisionCount);
    if (last && isSameRevision(last, equal)) return { update: last, collisionCount };
    const renumbered = yield* ask({ kind: "RenumberRevision", revision: equal, number: next });
    return { update: renumbered as ControllerRevision, collisionCount };
  }
}

/**
 * Creates the revision under the first free name, or finds the same revision under a taken name. Compat: a found
 * revision is used whatever owns it, and the hash label comes from the first name (vector reconcile-adopt,
 * revision-owned-by-other-same-name-same-data).
 */
function* create(
  set: StatefulSet,
  candidate: ControllerRevision,
  collisionCount: number,
): Steps<Omit<SetRevisions, "current">> {
  const text = revisionText(candidate.data);
  for (let count = collisionCount; ; count++) {
    const name = revisionName(set.metadata?.name ?? "", text, count);
    const reply = yield {
      kind: "CreateRevision",
      revision: { ...candidate, metadata: { ...candidate.metadata, name } },
    };
    if (reply.kind === "ok") return { update: reply.object as ControllerRevision, collisionCount: count };
    if (reply.reason !== "AlreadyExists") throw new StepFailed(reply.message, reply.reason);
    const there = yield* findRevision(name);
    if (!there) throw new StepFailed(`controllerrevisions.apps "${name}" not found`, "NotFound");
    if (revisionText(there.data) === text) return { update: there, collisionCount: count };
  }
}

/** Deletes the oldest revisions down to the limit, but none that a pod or the set uses. */
export function* truncateSetHistory(
  set: StatefulSet,
  history: readonly ControllerRevision[],
  inUse: { readonly pods: readonly Pod[]; readonly revisions: readonly ControllerRevision[] },
): Steps<void> {
  const names = new Set([...inUse.pods.map(revisionOf), ...inUse.revisions.map(({ metadata }) => metadata?.name)]);
  const unused = history.filter(({ metadata }) => !names.has(metadata?.name));
  const excess = unused.length - (set.spec.revisionHistoryLimit ?? DEFAULT_LIMIT);
  for (const revision of unused.slice(0, Math.max(0, excess))) yield* ask({ kind: "DeleteRevision", revision });
}
