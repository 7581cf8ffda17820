/** Judges the pods, claims and revisions that a pass creates, from the objects that the pass had read. */
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import type { PersistentVolumeClaim, StatefulSet } from "../../../shared/api/stateful-set.ts";
import type { Facts, SendingRule, Sent } from "./looks.ts";
import { desiredOrdinals, ordinalOf, SET } from "./objects.ts";
import { ownerProblems, podsOf, printOf, revisionIn, revisionsOf, templateIn, updateRevisionOf } from "./own.ts";

type Checks = readonly (readonly [isWrong: boolean, why: string])[];

export function told(checks: Checks): readonly string[] {
  return checks.filter(([isWrong]) => isWrong).map(([, why]) => why);
}

export const madePod: SendingRule = ({ body, look, name }, facts) => {
  const pod = body as Pod;
  const { set } = look;
  const { labels = {}, generateName } = pod.metadata ?? {};
  const ordinal = ordinalOf(pod);
  const spec = pod.spec as Pod["spec"] & { readonly hostname?: string; readonly subdomain?: string };
  const recorded = facts.revisions().find(({ metadata }) => metadata?.name === revisionIn(pod));
  return [
    ...told([
      [!desiredOrdinals(set.spec).includes(ordinal), "is of an ordinal that nobody wants"],
      [labels["statefulset.kubernetes.io/pod-name"] !== name, "has not its name as a label"],
      [labels["apps.kubernetes.io/pod-index"] !== String(ordinal), "has another index as a label"],
      [labels["app"] !== SET, "is not selected by its set"],
      [labels["lifecycle.apps.kruise.io/state"] !== "Normal", "has no state as a label"],
      [generateName !== `${SET}-`, `has the generateName ${generateName}`],
      [spec.hostname !== name || spec.subdomain !== set.spec.serviceName, "has another address"],
      [!recorded, `is of revision ${revisionIn(pod)}, which is not there`],
      [recorded !== undefined && printOf(templateIn(recorded)) !== printOf(pod), "is not what its revision says"],
      [!hasVolumes(set, pod), "does not mount its claims"],
      [Boolean(set.metadata?.deletionTimestamp), "is made for a set that is deleted"],
    ]),
    ...ownerProblems(pod, set),
    ...revisionProblems(pod, { look, facts, ordinal }),
  ];
};

function hasVolumes({ spec }: StatefulSet, { metadata, spec: { volumes = [] } }: Pod): boolean {
  const mounted = JSON.stringify(volumes);
  return (spec.volumeClaimTemplates ?? []).every((one) =>
    mounted.includes(`{"claimName":"${one.metadata?.name}-${metadata?.name}"}`),
  );
}

/** Pods below the partition have the older revision, and the others the new one. */
function revisionProblems(
  pod: Pod,
  { look: { set, pods }, facts, ordinal }: Pick<Sent, "look"> & { readonly facts: Facts; readonly ordinal: number },
): readonly string[] {
  const own = revisionsOf(set, facts.revisions());
  const current = own.find(({ metadata }) => metadata?.name === set.status?.currentRevision);
  const isNew = printOf(pod) === printOf(set.spec.template ?? {});
  if (!isCurrentWanted(set, podsOf(set, pods), ordinal) || !current)
    return told([[!isNew, "is of an old template, beyond the partition"]]);
  return told([[printOf(templateIn(current)) !== printOf(pod), "is not of the current revision, below the partition"]]);
}

function isCurrentWanted({ spec }: StatefulSet, _pods: readonly Pod[], ordinal: number): boolean {
  if (spec.updateStrategy?.type !== "RollingUpdate") return false;
  return desiredOrdinals(spec).indexOf(ordinal) < (spec.updateStrategy.rollingUpdate?.partition ?? 0);
}

export const madeClaim: SendingRule = ({ body, look: { set } }) => {
  const { metadata, spec } = body as PersistentVolumeClaim;
  const ordinal = ordinalOf({ ...(metadata ? { metadata } : {}) });
  const template = set.spec.volumeClaimTemplates?.find(
    (one) => metadata?.name === `${one.metadata?.name}-${SET}-${ordinal}`,
  );
  return told([
    [!template, "is of no template"],
    [template !== undefined && JSON.stringify(template.spec) !== JSON.stringify(spec), "is not what its template says"],
    [metadata?.labels?.["app"] !== SET, "has not the labels of its set"],
    [(metadata?.ownerReferences ?? []).length > 0, "has an owner from the beginning"],
  ]);
};

/** A pass creates one revision for each template that existed, with the next number. */
export const madeRevision: SendingRule = ({ body, look: { set, revisions }, name }) => {
  const made = body as ControllerRevision;
  const own = revisionsOf(set, revisions);
  const labels = made.metadata?.labels ?? {};
  const known = updateRevisionOf(set, revisions);
  return [
    ...told([
      [printOf(templateIn(made)) !== printOf(set.spec.template ?? {}), "records another template"],
      [known !== undefined, `records what ${known?.metadata?.name} does`],
      [made.revision !== highest(own) + 1, `has number ${made.revision} after ${highest(own)}`],
      [labels["app"] !== SET || !labels["controller.kubernetes.io/hash"], "has not the labels of a revision"],
      [!name.startsWith(`${SET}-`), "has the name of another's"],
    ]),
    ...ownerProblems(made, set),
  ];
};

function highest(revisions: readonly ControllerRevision[]): number {
  return Math.max(0, ...revisions.map(({ revision }) => revision));
}

/** A pass changes only a revision's number, when that revision becomes the newest again. */
export const changedRevision: SendingRule = ({ body, name, look: { set, revisions } }) => {
  const { revision } = body as Partial<ControllerRevision>;
  const own = revisionsOf(set, revisions);
  const before = own.find(({ metadata }) => metadata?.name === name);
  if (!before) return ["is nobody's of this set"];
  if (revision === undefined) return told([[before.metadata?.ownerReferences !== undefined, "has an owner already"]]);
  return told([
    [revision !== highest(own) + 1, `gets number ${revision} after ${highest(own)}`],
    [
      printOf(templateIn(before)) !== printOf(set.spec.template ?? {}),
      "is not what the set says, and becomes the newest",
    ],
  ]);
};

/** A pass deletes only unused revisions, the oldest first, and no more than the limit demands. */
export const deletedRevision: SendingRule = ({ name, look: { set, pods, revisions, touched } }, facts) => {
  const own = revisionsOf(set, revisions);
  const there = facts.revisions().filter(({ metadata }) => own.some((one) => one.metadata?.name === metadata?.name));
  const update = updateRevisionOf(set, there);
  const used = new Set([
    ...podsOf(set, pods).map(revisionIn),
    ...podsOf(set, facts.pods()).map(revisionIn),
    set.status?.currentRevision,
    update?.metadata?.name,
  ]);
  const unused = there.filter(({ metadata }) => !used.has(metadata?.name));
  const mine = there.find(({ metadata }) => metadata?.name === name);
  touched.add(name);
  if (!mine) return told([[!own.some(({ metadata }) => metadata?.name === name), "is nobody's of this set"]]);
  return told([
    [used.has(name), "is still in use"],
    [unused.some(({ revision }) => revision < mine.revision), "goes before one that is older"],
    [unused.length <= (set.spec.revisionHistoryLimit ?? 10), "goes although the limit has room for it"],
  ]);
};
