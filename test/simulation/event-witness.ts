/** Judges Events about SidecarSets: their texts must agree with the status that the same pass wrote. */
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet, StatusCondition } from "../../shared/api/sidecarset.ts";
import type { Write } from "./api-server.ts";

/** Reasons of Events about a change of a condition. */
const TELLING: ReadonlySet<string> = new Set(["RolloutFinished", "Blocked", "Degraded", "MissedInjection"]);

/** Conditions that summarize others. Only the others have Events. */
const SUMS: ReadonlySet<string> = new Set(["Ready", "Reconciling", "Stalled"]);

interface Event extends KubernetesObject {
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly uid?: string };
}

/** Returns the reason of the Event that a pass may write about this change of a condition. */
function turnOf({ type, status, reason }: StatusCondition, before: SidecarSet | undefined): string | undefined {
  const was = before?.status?.conditions?.find((one) => one.type === type);
  if (was?.status === status && was.reason === reason) return undefined;
  if (type === "Progressing" && reason === "Finished") return was && "RolloutFinished";
  return status === "True" ? type : undefined;
}

export class EventWitness {
  /**
   * "pass uid reason" → messages of each condition that a pass has turned to True. The Event may arrive later than the
   * next change.
   */
  readonly #turned = new Map<string, string[]>();
  /** pod's uid → "mesh-proxy to registry.example/mesh:2" for each image that a pass gave it */
  readonly #given = new Map<string, Set<string>>();

  /** Records the images of a write that only a pass makes. */
  seePod({ object, previous }: Write): void {
    const [next, before] = [object, previous].map((one) => one as unknown as Pod | undefined);
    const given = this.#given.get(next?.metadata?.uid ?? "") ?? new Set<string>();
    const was = new Map(before?.spec.containers.map(({ name, image }) => [name, image]));
    for (const { name, image } of next?.spec.containers ?? [])
      if (was.get(name) !== image) given.add(`${name} to ${image}`);
    this.#given.set(next?.metadata?.uid ?? "", given);
  }

  seeStatus({ object, previous, userAgent }: Write): void {
    const [next, before] = [object, previous].map((one) => one as unknown as SidecarSet | undefined);
    const conditions = (next?.status?.conditions ?? []).filter(({ type }) => !SUMS.has(type));
    for (const condition of conditions) {
      const reason = turnOf(condition, before);
      if (reason === undefined) continue;
      const key = `${userAgent} ${next?.metadata?.uid} ${reason}`;
      this.#turned.set(key, [...(this.#turned.get(key) ?? []), condition.message]);
    }
  }

  /** Returns a sentence if the Event contradicts the cluster. */
  problemOf({ object, userAgent, verb }: Write): string | undefined {
    const { reason = "", message, involvedObject } = object as unknown as Event;
    if (reason === "SidecarUpdated") return this.#imageProblem(involvedObject?.uid ?? "", message ?? "");
    if (!TELLING.has(reason) || verb !== "create") return undefined;
    const told = this.#turned.get(`${userAgent} ${involvedObject?.uid} ${reason}`);
    if (told?.includes(message ?? "")) return undefined;
    return `tells of ${reason}: ${message}, and the status ${told === undefined ? "does not" : `of: ${told.at(-1)}`}`;
  }

  #imageProblem(uid: string, message: string): string | undefined {
    const given = this.#given.get(uid);
    const [images = "", values] = message.split(": ").slice(1).join(": ").split("; new values of ");
    const changes = images.split(", ");
    // A release that changes a value may also write its container's image differently.
    const isOfOne = (value: string) => changes.some((change) => change.startsWith(`${value.split(".")[0]} to `));
    return changes.every((change) => given?.has(change)) && (values?.split(", ").every(isOfOne) ?? true)
      ? undefined
      : `names an image that no pass wrote to the pod: ${message}`;
  }
}
