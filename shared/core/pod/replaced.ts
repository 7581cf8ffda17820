/** Decides whether a SidecarSet asks for pods to be replaced where it cannot bring them to its version in place, and of which. */
import type { OwnerReference, Pod } from "../../api/kubernetes.ts";
import { EVICT_MISSED_ANNOTATION, MIRROR_ANNOTATION, REPLACE_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { shownText } from "../../go/shown-text.ts";
import { restartedWorkloadOf } from "./workload.ts";

/** What is replaced; `Jobs` widens both to pods of Jobs, for which an eviction is a failed attempt. */
const WORDS = ["NotUpgradable", "Missed", "Jobs"] as const;
type Word = (typeof WORDS)[number];

/** Controllers that create another pod for one that is gone, by API group. */
const RECREATING: Readonly<Record<string, readonly string[]>> = {
  apps: ["ReplicaSet", "StatefulSet", "DaemonSet"],
  "apps.kruise.io": ["CloneSet", "StatefulSet", "DaemonSet"],
};

interface Asked {
  readonly words: ReadonlySet<Word>;
  /** so many workloads are restarted at once; 0: pods are evicted */
  readonly restarts: number;
}

const NOTHING: Asked = { words: new Set(), restarts: 0 };

/** Nothing where the annotation is not there, or cannot be read: what takes pods away is not guessed. */
function askedOf({ metadata }: SidecarSet): Asked {
  const text = metadata?.annotations?.[REPLACE_ANNOTATION];
  return text === undefined ? NOTHING : (parse(text) ?? NOTHING);
}

function wordsOf(sidecarSet: SidecarSet): ReadonlySet<Word> {
  return askedOf(sidecarSet).words;
}

function parse(text: string): Asked | undefined {
  const all = text.split(",").map((word) => word.trim());
  const [restart, ...more] = all.flatMap((word) => /^Restart(?:=([1-9]\d{0,2}))?$/.exec(word)?.slice(0, 2) ?? []);
  const words = all.filter((word) => word !== restart);
  const known = WORDS.filter((word) => words.includes(word));
  const isReadable = words.every((word) => WORDS.some((one) => one === word));
  const restarts = restart === undefined ? 0 : Number(more[0] ?? 1);
  // A Job has no restart, and nothing is evicted beside one.
  if (!isReadable || known.every((word) => word === "Jobs") || (restarts > 0 && words.includes("Jobs")))
    return undefined;
  return { words: new Set(known), restarts };
}

/** One sentence; undefined: the annotation is not there, or can be read. */
export function replaceProblem({ metadata }: SidecarSet): string | undefined {
  const text = metadata?.annotations?.[REPLACE_ANNOTATION];
  if (text === undefined || parse(text) !== undefined) return undefined;
  return `the annotation ${REPLACE_ANNOTATION} says ${shownText(text)}: write NotUpgradable, Missed, or both with a comma between, and beside them Jobs for pods of Jobs, or Restart (Restart=3 for three at once) to restart workloads; until then no pod is replaced`;
}

/** Pods that cannot be brought to the new version in place are evicted, and their controllers create others. */
export function replacesNotUpgradable(sidecarSet: SidecarSet): boolean {
  return wordsOf(sidecarSet).has("NotUpgradable");
}

/** So are pods that missed their sidecars, also by the annotation that is for them alone. */
export function evictsMissed(sidecarSet: SidecarSet): boolean {
  return isEvictMissed(sidecarSet) || (wordsOf(sidecarSet).has("Missed") && restartsAtOnce(sidecarSet) === 0);
}

/** Their workloads are restarted, and no pod that missed its sidecars is evicted. */
export function restartsMissed(sidecarSet: SidecarSet): boolean {
  return wordsOf(sidecarSet).has("Missed") && restartsAtOnce(sidecarSet) > 0 && !isEvictMissed(sidecarSet);
}

/** Instead of evictions: how many workloads are restarted at once. 0: none. */
export function restartsAtOnce(sidecarSet: SidecarSet): number {
  return askedOf(sidecarSet).restarts;
}

function isEvictMissed({ metadata }: SidecarSet): boolean {
  return metadata?.annotations?.[EVICT_MISSED_ANNOTATION] === "true";
}

/** Of a pod that missed its sidecars. The annotation for them alone goes by any controller. */
export function mayEvictMissed(pod: Pod, sidecarSet: SidecarSet): boolean {
  if (isEvictMissed(sidecarSet)) return controllerOf(pod) !== undefined;
  return whyNotRecreated(pod, sidecarSet) === undefined;
}

export function controllerOf({ metadata }: Pod): OwnerReference | undefined {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true);
}

/** Why no other pod would come in this one's place; undefined: its controller creates one. */
export function whyNotRecreated(pod: Pod, sidecarSet: SidecarSet): string | undefined {
  const owner = controllerOf(pod);
  if (pod.metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined) return "it is the mirror of a static pod";
  if (owner === undefined) return "it has no controller that would recreate it";
  if (restartsAtOnce(sidecarSet) > 0)
    return restartedWorkloadOf(pod) ? undefined : `no restart is known of a ${owner.kind} like ${owner.name}`;
  const [group = ""] = owner.apiVersion.split("/");
  if (RECREATING[group]?.includes(owner.kind)) return undefined;
  if (group !== "batch" || owner.kind !== "Job") return `a ${owner.kind} may not recreate it`;
  return wordsOf(sidecarSet).has("Jobs")
    ? undefined
    : `it is of a Job: name Jobs in the annotation ${REPLACE_ANNOTATION} too if its work may begin again`;
}
