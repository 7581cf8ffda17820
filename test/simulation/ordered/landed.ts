/**
 * Judges the writes of passes when they arrive: a pass writes only the set's objects, and updates in place step by
 * step.
 */
import type { ControllerRevision, KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import type { Write } from "../api-server.ts";
import type { Facts } from "./looks.ts";
import { told } from "./made.ts";
import { conditionIn, imageIn, SET } from "./objects.ts";
import { controllerOf, printOf, revisionIn, templateIn } from "./own.ts";

const GATE = "InPlaceUpdateReady";
const GRACE = "apps.kruise.io/inplace-update-grace";

export class LandedJudge {
  readonly #facts: Facts;
  readonly #policies = new Set<string>();
  readonly #uids = new Set<string>();
  /** the shortest grace period that any set had */
  #graceSeconds = Number.POSITIVE_INFINITY;
  /** pod's uid → time when its update in place began */
  readonly #begun = new Map<string, number>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  see(write: Write): readonly string[] {
    const { userAgent, resource, object, previous } = write;
    if (resource === "statefulsets" && !write.isRemoved) this.#learn(object as unknown as StatefulSet);
    if (!userAgent.startsWith("pass-")) return [];
    if (resource === "pods") return [...this.#ownerProblems(write), ...this.#podProblems(write)];
    if (resource === "controllerrevisions") return this.#ownerProblems(write);
    if (resource === "persistentvolumeclaims") return claimProblems(object, previous);
    return [];
  }

  #learn({ spec, metadata }: StatefulSet): void {
    if (metadata?.name !== SET) return;
    const { podUpdatePolicy = "ReCreate", inPlaceUpdateStrategy } = spec.updateStrategy?.rollingUpdate ?? {};
    this.#policies.add(podUpdatePolicy);
    this.#uids.add(metadata?.uid ?? "");
    this.#graceSeconds = Math.min(this.#graceSeconds, inPlaceUpdateStrategy?.gracePeriodSeconds ?? 0);
  }

  /** The owner must be a set that existed. The set may adopt an orphan, or ignore it. */
  #ownerProblems({ object, previous }: Write): readonly string[] {
    const [before, after] = [previous && controllerOf(previous), controllerOf(object)];
    const isForeign = (uid: string | undefined) => uid !== undefined && !this.#uids.has(uid);
    return told([
      [isForeign(before?.uid) || isForeign(after?.uid), "is another's"],
      [before !== undefined && after === undefined && isSelected(object), "is let go although it is selected"],
      [!before && !isSelected(object), "was nobody's, and is not selected"],
      [after !== undefined && !isNamed(object), "has the name of another's"],
    ]);
  }

  #podProblems({ object, previous, isRemoved }: Write): readonly string[] {
    if (!previous || isRemoved) return [];
    const [before, after] = [previous, object].map((one) => one as unknown as Pod) as [Pod, Pod];
    const { uid = "" } = after.metadata ?? {};
    const nowMs = this.#facts.nowMs();
    if (revisionIn(before) !== revisionIn(after) || !this.#begun.has(uid)) this.#begun.set(uid, nowMs);
    if (imageIn(before) !== imageIn(after))
      return this.#imageProblems(before, after, nowMs - (this.#begun.get(uid) ?? 0));
    const isChanged = printOf(before) !== printOf(after) && !this.#mayChange();
    return [...gateProblems(before, after), ...told([[isChanged, "is changed in place, which nobody asked for"]])];
  }

  #mayChange(): boolean {
    return this.#policies.has("InPlaceIfPossible") || this.#policies.has("InPlaceOnly");
  }

  #imageProblems(before: Pod, after: Pod, sinceMs: number): readonly string[] {
    const recorded = this.#facts.revisions().find(({ metadata }) => metadata?.name === revisionIn(after));
    const isGated = (after.spec.readinessGates ?? []).some(({ conditionType }) => conditionType === GATE);
    return told([
      [!this.#mayChange(), "is changed in place, which nobody asked for"],
      [isGated && conditionIn(before, GATE)?.status !== "False", "gets another image while its gate is open"],
      [sinceMs < 1000 * (this.#graceSeconds - 1), `gets another image ${sinceMs} ms after it was told to`],
      [after.metadata?.annotations?.[GRACE] !== undefined, "gets another image and keeps its grace"],
      [recorded !== undefined && imageOf(recorded) !== imageIn(after), "gets an image that its revision has not"],
    ]);
  }
}

function gateProblems(before: Pod, after: Pod): readonly string[] {
  const isOpened = conditionIn(before, GATE)?.status === "False" && conditionIn(after, GATE)?.status === "True";
  const runs = before.status?.containerStatuses?.[0]?.image === imageIn(before);
  return told([
    [isOpened && !runs, "is let through before it runs what it should"],
    [isOpened && before.metadata?.annotations?.[GRACE] !== undefined, "is let through in its grace period"],
  ]);
}

function imageOf(revision: ControllerRevision): string {
  return templateIn(revision).spec?.containers?.[0]?.image ?? "";
}

function isSelected({ metadata }: KubernetesObject): boolean {
  return metadata?.labels?.["app"] === SET;
}

/** The name of a revision does not prove its owner. */
function isNamed({ metadata, kind }: KubernetesObject): boolean {
  return kind !== "Pod" || new RegExp(`^${SET}-\\d+$`).test(metadata?.name ?? "");
}

function claimProblems(object: KubernetesObject, previous: KubernetesObject | undefined): readonly string[] {
  const isOwn = new RegExp(`^data-${SET}-\\d+$`).test(object.metadata?.name ?? "");
  const spec = (claim: KubernetesObject) => JSON.stringify((claim as { readonly spec?: unknown }).spec);
  return told([
    [!isOwn, "is another's"],
    [previous !== undefined && spec(previous) !== spec(object), "is changed"],
  ]);
}
