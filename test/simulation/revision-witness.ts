/**
 * Remembers the ControllerRevisions of all SidecarSets, and reports wrong writes to them. The unit of time is one
 * write.
 */
import type { ControllerRevision, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Write } from "./api-server.ts";
import { revisionOf } from "./revisions.ts";

interface Known {
  readonly revision: ControllerRevision;
  /** time since which the revision has its number */
  readonly at: number;
}

export interface RevisionScene {
  /** start of the writing pass, which has seen everything older */
  readonly began: number;
  readonly now: number;
  /** SidecarSets, each with unchanged pods that it has selected since the pass began */
  readonly uses: readonly { readonly set: SidecarSet; readonly pods: readonly Pod[] }[];
}

export class RevisionWitness {
  readonly #known = new Map<string, Known>();

  /** Returns one sentence for each fault of a pass' write; other writers are not judged. */
  see({ userAgent, object, previous, isRemoved }: Write, scene: RevisionScene): readonly string[] {
    const next = object as unknown as ControllerRevision;
    const before = previous as unknown as ControllerRevision | undefined;
    const name = next.metadata?.name ?? "";
    const isJudged = userAgent.startsWith("pass");
    const problems = isJudged ? this.#problems(isRemoved ? undefined : next, before ?? next, before, scene) : [];
    if (isRemoved) this.#known.delete(name);
    else if (before?.revision !== next.revision) this.#known.set(name, { revision: next, at: scene.now });
    else this.#known.set(name, { revision: next, at: this.#known.get(name)?.at ?? scene.now });
    return problems;
  }

  #problems(
    next: ControllerRevision | undefined,
    about: ControllerRevision,
    before: ControllerRevision | undefined,
    scene: RevisionScene,
  ): readonly string[] {
    if (!next) return this.#deletionProblems(about, scene);
    const hasMoved = before?.revision !== next.revision;
    const most = Math.max(0, ...this.#siblings(about, scene.began).map(({ revision }) => revision.revision));
    return [
      ...(hasMoved && next.revision <= most ? [`has the number ${next.revision}, there was ${most} before`] : []),
      ...(before && JSON.stringify(before.data) !== JSON.stringify(next.data) ? ["changes what a revision is"] : []),
    ];
  }

  #deletionProblems(about: ControllerRevision, { now, uses }: RevisionScene): readonly string[] {
    const name = about.metadata?.name ?? "";
    const most = Math.max(0, ...this.#siblings(about, now).map(({ revision }) => revision.revision));
    const use = uses.find(({ set }) => isOwnedBy(about, set.metadata?.uid));
    const isUsed = use?.pods.some((pod) => revisionOf(pod, use.set.metadata?.name ?? "") === name);
    return [
      ...(about.revision > most ? ["takes the newest revision away"] : []),
      ...(isUsed ? ["takes a revision away that a pod is at"] : []),
    ];
  }

  /** Returns revisions of the same owner that had their numbers before this time. */
  #siblings({ metadata }: ControllerRevision, by: number): readonly Known[] {
    const uid = metadata?.ownerReferences?.[0]?.uid;
    return [...this.#known.values()].filter(
      ({ revision, at }) => at <= by && revision.metadata?.name !== metadata?.name && isOwnedBy(revision, uid),
    );
  }
}

function isOwnedBy({ metadata }: ControllerRevision, uid: string | undefined): boolean {
  return metadata?.ownerReferences?.some((owner) => owner.uid === uid) === true;
}
