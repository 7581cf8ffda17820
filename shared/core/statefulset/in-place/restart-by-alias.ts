/** Decides how containers that read changed labels or annotations into their environment are restarted without a daemon: by their images, written in another way. */
import type { Container, ContainerStatus, Pod } from "../../../api/kubernetes.ts";
import { aliasOf } from "../../container-recreate/image-alias.ts";
import { hasRuntimeMeta } from "./runtime-meta.ts";
import { type InPlaceState, type RanBefore, readState, type UpdateSpec } from "./update-spec.ts";

type Parts = Pick<UpdateSpec, "containerImages" | "containerRefMetadata">;

export type Aliases =
  | { readonly kind: "aliases"; readonly images: Readonly<Record<string, string>> }
  /** one sentence */
  | { readonly kind: "none"; readonly why: string };

/** Undefined where a daemon reports of the pod's containers: it restarts them. */
export function aliasesFor(pod: Pod, parts: Parts): Aliases | undefined {
  if (hasRuntimeMeta(pod)) return undefined;
  const images: [string, string][] = [];
  for (const name of restartedBy(pod, parts)) {
    const running = statusOf(pod, name);
    const alias = running?.containerID ? aliasOf(containerOf(pod, name), running) : NEVER_RAN;
    if (alias.kind === "none") return { kind: "none", why: `container ${name} reads changed metadata: ${alias.why}` };
    images.push([name, alias.image]);
  }
  return { kind: "aliases", images: Object.fromEntries(images) };
}

/** It may be about to start with what it read before. */
const NEVER_RAN = { kind: "none", why: "it has not run yet" } as const;

/**
 * An alias that was written before has not restarted its container yet. Written back before the kubelet has seen it, the
 * image would be the one that runs, and nothing restarted.
 */
export function isRestartUnderWay(pod: Pod, parts: Parts): boolean {
  const state = readState(pod);
  const restarted = (state.kind === "present" && state.value.restartedContainers) || {};
  return restartedBy(pod, parts).some((name) => restarted[name] && !isAnother(pod, name, restarted[name]));
}

/** What runs in them now, for `whyNotRestarted` to compare with. */
export function runningIn(pod: Pod, names: readonly string[]): Readonly<Record<string, RanBefore>> {
  const statuses = (pod.status?.containerStatuses ?? []).filter(({ name }) => names.includes(name));
  return Object.fromEntries(
    statuses.map(({ name, containerID, restartCount }) => [
      name,
      { ...(containerID ? { containerID } : {}), ...(restartCount ? { restartCount } : {}) },
    ]),
  );
}

export function whyNotRestarted(pod: Pod, state: InPlaceState): string | undefined {
  const waiting = Object.entries(state.restartedContainers ?? {}).find(
    ([name, before]) => !isAnother(pod, name, before),
  );
  return waiting && `container ${waiting[0]} not restarted for its environment`;
}

function isAnother(pod: Pod, name: string, before: RanBefore): boolean {
  const { containerID, restartCount = 0 } = statusOf(pod, name) ?? {};
  if (restartCount > (before.restartCount ?? 0)) return true;
  return containerID !== undefined && containerID !== before.containerID;
}

/** Containers of the pod that read what changes, and get no other image. */
function restartedBy(pod: Pod, { containerImages, containerRefMetadata }: Parts): readonly string[] {
  return pod.spec.containers.flatMap(({ name, image = "" }) =>
    Object.hasOwn(containerRefMetadata, name) && (containerImages[name] ?? image) === image ? [name] : [],
  );
}

function containerOf({ spec }: Pod, name: string): Pick<Container, "image" | "imagePullPolicy"> {
  return spec.containers.find((container) => container.name === name) ?? {};
}

function statusOf({ status }: Pod, name: string): ContainerStatus | undefined {
  return status?.containerStatuses?.find((candidate) => candidate.name === name);
}
