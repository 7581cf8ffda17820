/** A cluster in memory for passes over a set. It answers their steps as the vectors' README says. */
import type { ControllerRevision, KubernetesObject, OwnerReference, Pod } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { adoptedOwners } from "../../../shared/core/statefulset/revisions.ts";
import type { FailureReason, Reply, Request, Steps } from "../../../shared/core/statefulset/step.ts";

type Kind = "StatefulSet" | "Pod" | "PersistentVolumeClaim" | "ControllerRevision" | "StorageClass";
type Objects = Map<string, KubernetesObject>;

const RESOURCES: Readonly<Record<Kind, { readonly plural: string; readonly uid: string }>> = {
  StatefulSet: { plural: "statefulsets", uid: "set" },
  Pod: { plural: "pods", uid: "pod" },
  PersistentVolumeClaim: { plural: "persistentvolumeclaims", uid: "pvc" },
  ControllerRevision: { plural: "controllerrevisions", uid: "cr" },
  StorageClass: { plural: "storageclasses", uid: "sc" },
};

export interface FailNext {
  readonly verb: string;
  readonly resource: string;
  readonly name: string;
}

export function nameOf({ metadata }: KubernetesObject): string {
  return metadata?.name ?? "";
}

function failed(reason: FailureReason, message: string): Reply {
  return { kind: "failed", reason, message };
}

/** False for an object that is being deleted and waits for nothing more. */
function isHeld(kind: Kind, { metadata, ...rest }: KubernetesObject): boolean {
  if (!metadata?.deletionTimestamp || (metadata.finalizers ?? []).length > 0) return true;
  if (kind === "PersistentVolumeClaim") return false;
  const { spec, status } = rest as Partial<Pod>;
  return kind !== "Pod" || (Boolean(spec?.nodeName) && !["Failed", "Succeeded"].includes(status?.phase ?? ""));
}

export class SetCluster {
  readonly objects: Readonly<Record<Kind, Objects>> = {
    StatefulSet: new Map(),
    Pod: new Map(),
    PersistentVolumeClaim: new Map(),
    ControllerRevision: new Map(),
    StorageClass: new Map(),
  };
  events: string[] = [];
  failNext: FailNext[] = [];
  private readonly created = new Map<string, number>();
  private version = 1;
  private readonly setName: string;
  private readonly readsSnapshot: boolean;
  /** the objects at the start of a pass */
  private snapshot: Pick<typeof this.objects, "Pod" | "PersistentVolumeClaim"> | undefined;

  constructor(setName: string, readsSnapshot: boolean) {
    this.setName = setName;
    this.readsSnapshot = readsSnapshot;
  }

  add(object: KubernetesObject): void {
    this.store(object.kind as Kind, object);
  }

  get set(): StatefulSet | undefined {
    return this.objects.StatefulSet.get(this.setName) as StatefulSet | undefined;
  }

  list<T extends KubernetesObject>(kind: Kind): readonly T[] {
    return [...this.objects[kind].values()].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)) as unknown as readonly T[];
  }

  change(kind: Kind, name: string, change: (object: KubernetesObject) => KubernetesObject): void {
    const object = this.objects[kind].get(name);
    if (object) this.store(kind, change(object));
  }

  /** Stores the object; every change increases the resourceVersion. */
  private store(kind: Kind, object: KubernetesObject): KubernetesObject {
    const resourceVersion = String(this.version++);
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion } };
    if (isHeld(kind, stored)) this.objects[kind].set(nameOf(object), stored);
    else this.objects[kind].delete(nameOf(object));
    return stored;
  }

  run<T>(steps: Steps<T>, now: string): T {
    this.events = [];
    const { Pod, PersistentVolumeClaim } = this.objects;
    this.snapshot = this.readsSnapshot
      ? { Pod: new Map(Pod), PersistentVolumeClaim: new Map(PersistentVolumeClaim) }
      : undefined;
    for (let step = steps.next(); ; ) {
      if (step.done) return step.value;
      step = steps.next(this.answer(step.value, now));
    }
  }

  private answer(request: Request, now: string): Reply {
    switch (request.kind) {
      case "GetSet":
        return this.read("StatefulSet", this.setName);
      case "GetPod":
        return this.read("Pod", request.name);
      case "GetClaim":
        return this.read("PersistentVolumeClaim", request.name);
      case "GetRevision":
        return this.read("ControllerRevision", request.name);
      case "GetStorageClass":
        return this.read("StorageClass", request.name);
      case "CreateRevision":
        return this.create("ControllerRevision", request.revision, now);
      case "CreateClaim":
        return this.create("PersistentVolumeClaim", request.claim, now);
      case "CreatePod":
        return this.create("Pod", { ...request.pod, status: { phase: "Pending" } } as KubernetesObject, now);
      case "RecordEvent":
        this.events.push(`${request.type} ${request.reason} default/${this.setName}: ${request.message}`);
        return { kind: "ok" };
      default:
        return this.write(request, now);
    }
  }

  private read(kind: Kind, name: string): Reply {
    const refusal = this.isInjected("get", kind, name);
    if (refusal) return refusal;
    const isSnapshot = kind === "Pod" || kind === "PersistentVolumeClaim";
    const objects = (isSnapshot ? this.snapshot?.[kind] : undefined) ?? this.objects[kind];
    const object = objects.get(name);
    return object ? { kind: "ok", object } : this.missing(kind, name);
  }

  private missing(kind: Kind, name: string): Reply {
    return failed("NotFound", `${RESOURCES[kind].plural} "${name}" not found`);
  }

  private isInjected(verb: string, kind: Kind, name: string): Reply | undefined {
    const { plural } = RESOURCES[kind];
    const index = this.failNext.findIndex((one) => one.verb === verb && one.resource === plural && one.name === name);
    if (index < 0) return undefined;
    this.failNext.splice(index, 1);
    return failed("Other", `injected failure: ${verb} ${plural} ${name}`);
  }

  private create(kind: Kind, object: KubernetesObject, now: string): Reply {
    const name = nameOf(object);
    const refusal = this.isInjected("create", kind, name);
    if (refusal) return refusal;
    const { plural, uid } = RESOURCES[kind];
    if (this.objects[kind].has(name)) return failed("AlreadyExists", `${plural} "${name}" already exists`);
    const count = (this.created.get(`${kind}/${name}`) ?? 0) + 1;
    this.created.set(`${kind}/${name}`, count);
    const metadata = { ...object.metadata, uid: `uid-${uid}-${name}-${count}`, creationTimestamp: now };
    return { kind: "ok", object: this.store(kind, { ...object, metadata }) };
  }

  private write(request: Request, now: string): Reply {
    switch (request.kind) {
      case "RenumberRevision":
        return this.update(
          "ControllerRevision",
          request.revision,
          (stored) => ({ ...stored, revision: request.number }) as ControllerRevision,
        );
      case "AdoptRevision":
        return this.adopt("ControllerRevision", request.revision, request);
      case "DeleteRevision":
        return this.deleteRevision(nameOf(request.revision));
      case "AdoptPod":
        return this.adopt("Pod", request.pod, request);
      case "ReleasePod":
        return this.patch("Pod", request.pod, ({ metadata, ...rest }) => {
          const ownerReferences = (metadata?.ownerReferences ?? []).filter(({ uid }) => uid !== request.ownerUid);
          return { ...rest, metadata: { ...metadata, ownerReferences } };
        });
      case "DeletePod":
        return this.delete(request.pod, now);
      case "UpdatePod":
        return this.update(
          "Pod",
          request.before,
          (stored) => ({ ...request.after, status: (stored as Pod).status }) as Pod,
          request.after,
        );
      case "UpdatePodStatus":
        return this.update("Pod", request.before, (stored) => ({ ...stored, status: request.after.status }) as Pod);
      case "UpdateClaim":
        return this.update("PersistentVolumeClaim", request.before, () => request.after, request.after);
      case "UpdateStatus":
        return this.updateStatus(request.status);
      default:
        throw new Error(`${request.kind} is no write`);
    }
  }

  private adopt(kind: Kind, before: KubernetesObject, { owner }: { readonly owner: OwnerReference }): Reply {
    return this.patch(kind, before, (stored) => {
      return { ...stored, metadata: { ...stored.metadata, ownerReferences: adoptedOwners(stored, owner) } };
    });
  }

  private updateStatus(status: StatefulSet["status"]): Reply {
    const refusal = this.isInjected("update", "StatefulSet", this.setName);
    if (refusal) return refusal;
    this.change("StatefulSet", this.setName, (set) => ({ ...set, status }) as StatefulSet);
    return { kind: "ok" };
  }

  private deleteRevision(name: string): Reply {
    const refusal = this.isInjected("delete", "ControllerRevision", name);
    if (refusal) return refusal;
    return this.objects.ControllerRevision.delete(name) ? { kind: "ok" } : this.missing("ControllerRevision", name);
  }

  /** Patches an owner as the reference does. Except for injected refusals a patch works like an update. */
  private patch(kind: Kind, before: KubernetesObject, change: (stored: KubernetesObject) => KubernetesObject): Reply {
    return this.isInjected("patch", kind, nameOf(before)) ?? this.update(kind, before, change);
  }

  private update(
    kind: Kind,
    before: KubernetesObject,
    change: (stored: KubernetesObject) => KubernetesObject,
    named: KubernetesObject = before,
  ): Reply {
    const name = nameOf(named);
    const refusal = this.isInjected("update", kind, name);
    if (refusal) return refusal;
    const stored = this.objects[kind].get(name);
    if (!stored) return this.missing(kind, name);
    if (stored.metadata?.resourceVersion !== before.metadata?.resourceVersion) {
      const { plural } = RESOURCES[kind];
      return failed("Conflict", `Operation cannot be fulfilled on ${plural} "${name}": object was modified`);
    }
    return { kind: "ok", object: this.store(kind, change(stored)) };
  }

  private delete(pod: Pod, now: string): Reply {
    const name = nameOf(pod);
    const refusal = this.isInjected("delete", "Pod", name);
    if (refusal) return refusal;
    const stored = this.objects.Pod.get(name) as Pod | undefined;
    if (!stored) return this.missing("Pod", name);
    const metadata = { ...stored.metadata, deletionTimestamp: stored.metadata?.deletionTimestamp ?? now };
    this.store("Pod", { ...stored, metadata });
    return { kind: "ok" };
  }
}
