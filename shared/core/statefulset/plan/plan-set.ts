/** The writes of a pass over a set if everything succeeds: the real pass, on a simulated cluster. */
import type { KubernetesObject } from "../../../api/kubernetes.ts";
import type { PersistentVolumeClaim, StorageClass } from "../../../api/stateful-set.ts";
import { reconcileSet, type SetObservation, type SetOutcome } from "../reconcile.ts";
import type { Reply, Request } from "../step.ts";

/** The objects that a pass may look up meanwhile. */
export interface SetSurroundings {
  /** the claims of the set's pods; a claim that is not listed does not exist */
  readonly claims: readonly PersistentVolumeClaim[];
  readonly storageClasses?: readonly StorageClass[];
}

export interface SetPlan {
  /** every write, in order, and the events that would be recorded */
  readonly writes: readonly Request[];
  readonly outcome: SetOutcome;
}

export function planSet(seen: SetObservation, surroundings: SetSurroundings): SetPlan {
  const imagined = new Imagined(seen, surroundings);
  const steps = reconcileSet(seen);
  for (let step = steps.next(); ; step = steps.next(imagined.answer(step.value))) {
    if (step.done) return { writes: imagined.writes, outcome: step.value };
  }
}

type Named = Extract<Request, { readonly name: string }>;

class Imagined {
  readonly writes: Request[] = [];
  readonly #seen: SetObservation;
  readonly #storageClasses: readonly StorageClass[] | undefined;
  readonly #pods: Map<string, KubernetesObject>;
  readonly #claims: Map<string, KubernetesObject>;

  constructor(seen: SetObservation, { claims, storageClasses }: SetSurroundings) {
    this.#seen = seen;
    this.#storageClasses = storageClasses;
    this.#pods = new Map(seen.pods.map((pod) => [nameOf(pod), pod]));
    this.#claims = new Map(claims.map((claim) => [nameOf(claim), claim]));
  }

  answer(request: Request): Reply {
    switch (request.kind) {
      case "GetSet":
        return { kind: "ok", object: this.#seen.set };
      case "GetPod":
      case "GetClaim":
      case "GetRevision":
      case "GetStorageClass":
        return found(this.#find(request), request.name);
      default:
        this.writes.push(request);
        return this.#carryOut(request);
    }
  }

  #find({ kind, name }: Named): unknown {
    if (kind === "GetPod") return this.#pods.get(name);
    if (kind === "GetClaim") return this.#claims.get(name);
    if (kind === "GetRevision") return this.#seen.revisions.find((revision) => nameOf(revision) === name);
    // Unknown values count as correct.
    if (this.#storageClasses === undefined) return { metadata: { name }, allowVolumeExpansion: true };
    return this.#storageClasses.find((one) => nameOf(one) === name);
  }

  #carryOut(request: Exclude<Request, { readonly kind: "GetSet" } | Named>): Reply {
    switch (request.kind) {
      case "CreateRevision":
        return this.#create(request.revision, this.#seen.revisions.map(nameOf));
      case "RenumberRevision":
        return { kind: "ok", object: { ...request.revision, revision: request.number } };
      case "AdoptRevision":
        return { kind: "ok", object: request.revision };
      case "AdoptPod":
        return { kind: "ok", object: request.pod };
      case "CreatePod":
        return this.#create(request.pod, [...this.#pods.keys()]);
      case "UpdatePod":
      case "UpdatePodStatus":
        this.#pods.set(nameOf(request.after), request.after);
        return { kind: "ok", object: request.after };
      case "CreateClaim":
        this.#claims.set(nameOf(request.claim), request.claim);
        return { kind: "ok", object: request.claim };
      case "UpdateClaim":
        this.#claims.set(nameOf(request.after), request.after);
        return { kind: "ok", object: request.after };
      default:
        return { kind: "ok" };
    }
  }

  #create(object: KubernetesObject, taken: readonly string[]): Reply {
    const name = nameOf(object);
    if (taken.includes(name)) return { kind: "failed", reason: "AlreadyExists", message: `${name} already exists` };
    return { kind: "ok", object };
  }
}

function found(object: unknown, name: string): Reply {
  return object === undefined
    ? { kind: "failed", reason: "NotFound", message: `${name} not found` }
    : { kind: "ok", object };
}

export function nameOf({ metadata }: KubernetesObject): string {
  return metadata?.name ?? "";
}
