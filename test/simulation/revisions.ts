/**
 * Finds the problems of a SidecarSet's ControllerRevisions after the world has settled. The rules are written here
 * again, independently of the core.
 */
import type { ControllerRevision, Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, SIDECARSET_NAME_LABEL } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";

const DEFAULT_LIMIT = 10;

/** Returns one sentence for each problem. `pods`: the selected pods. */
export function revisionProblems(
  set: SidecarSet,
  revisions: readonly ControllerRevision[],
  pods: readonly Pod[],
): readonly string[] {
  const { name = "", uid } = set.metadata ?? {};
  // Two passes at once may give two revisions the same number. Then the status may name either.
  const rank = ({ metadata, revision }: ControllerRevision) =>
    revision + (metadata?.name === set.status?.latestRevision ? 0.5 : 0);
  const own = revisions
    .filter(({ metadata }) => metadata?.ownerReferences?.some((owner) => owner.uid === uid))
    .sort((a, b) => rank(a) - rank(b));
  const latest = own.at(-1);
  const texts = own.map(({ data }) => JSON.stringify(data));
  return [
    ...own.flatMap((revision) => formProblem(name, revision) ?? []),
    ...(new Set(texts).size < texts.length ? ["two revisions are the same"] : []),
    ...latestProblem(set, latest),
    ...limitProblem(set, own, pods),
  ];
}

function formProblem(name: string, { metadata }: ControllerRevision): string | undefined {
  const { labels = {}, ownerReferences = [], name: own = "" } = metadata ?? {};
  if (!own.startsWith(`${name}-`)) return `the revision ${own} has no name of ${name}`;
  if (labels[SIDECARSET_NAME_LABEL] !== name) return `the revision ${own} has no label of ${name}`;
  return ownerReferences.length === 1 ? undefined : `the revision ${own} has ${ownerReferences.length} owners`;
}

function latestProblem({ spec, status }: SidecarSet, latest: ControllerRevision | undefined): readonly string[] {
  const told = status?.latestRevision;
  if (!latest || latest.metadata?.name !== told)
    return [`the status tells of ${told}, the newest is ${latest?.metadata?.name}`];
  const { containers } = (latest.data as { readonly spec: Pick<SidecarSet["spec"], "containers"> }).spec;
  const images = (of: SidecarSet["spec"]["containers"]) => of?.map(({ image }) => image).join();
  return images(containers) === images(spec.containers) ? [] : [`the newest revision has ${images(containers)}`];
}

/** Beyond the limit only the newest revision and the revisions of pods stay. */
function limitProblem({ metadata, spec }: SidecarSet, own: readonly ControllerRevision[], pods: readonly Pod[]) {
  const most = Math.max(1, spec.revisionHistoryLimit ?? DEFAULT_LIMIT);
  const inUse = new Set(pods.map((pod) => revisionOf(pod, metadata?.name ?? "")));
  const idle = own.slice(0, -1).filter((revision) => !inUse.has(revision.metadata?.name));
  return own.length > most && idle.length > 0 ? [`${own.length} revisions, ${most} allowed, ${idle.length} idle`] : [];
}

/** Returns the name of the SidecarSet's revision that the pod has. */
export function revisionOf({ metadata }: Pod, set: string): string | undefined {
  const text = metadata?.annotations?.[HASH_ANNOTATION] ?? "{}";
  return (JSON.parse(text) as Readonly<Record<string, { readonly controllerRevision?: string }>>)[set]
    ?.controllerRevision;
}
