/** The state of a pod's native sidecars for an upgrade in place: their images, and whether the node restarts them. */
import type { Container, ContainerStatus, Pod } from "../../api/kubernetes.ts";
import type { SidecarContainer, SidecarSet } from "../../api/sidecarset.ts";
import { areConsistent } from "./is-consistent.ts";
import { isHotUpgrade } from "./sidecar-containers.ts";

export interface NativeState {
  /** true: every native sidecar of the SidecarSet runs the image of the pod's spec */
  readonly isConsistent: boolean;
  /** false while a ready native sidecar does not match the spec yet */
  readonly hasSettled: boolean;
  /** the reason why the node would not run another image; undefined: it would */
  readonly hindrance?: string;
}

/** First version whose kubelet restarts a native sidecar when its image changes. */
const FIRST_VERSION = { major: 1, minor: 31 };

/** Init containers that run as long as the pod. A hot-upgrade pair keeps its injected images. */
export function nativeSidecars({ spec }: SidecarSet): readonly SidecarContainer[] {
  return (spec.initContainers ?? []).filter((one) => one.restartPolicy === "Always" && !isHotUpgrade(one));
}

/** True if the kubelet restarts native sidecars. `version`: as in a Node, `v1.31.4` or `v1.31.4-eks-1` */
function restartsNatives(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  if (Number(major) !== FIRST_VERSION.major) return Number(major) > FIRST_VERSION.major;
  return Number(minor) >= FIRST_VERSION.minor;
}

/** The reason why native sidecars cannot change in place. A pod without a node takes the spec at its start. */
function hindranceOf({ spec }: Pod, kubelets: ReadonlyMap<string, string>): string | undefined {
  const { nodeName } = spec;
  if (!nodeName) return undefined;
  const version = kubelets.get(nodeName);
  if (version === undefined) return `nothing is known of the kubelet of node ${nodeName}`;
  if (restartsNatives(version)) return undefined;
  return `node ${nodeName} has kubelet ${version}, which restarts native sidecars only from v1.31 on`;
}

function isConsistentIn(pod: Pod, sidecarSet: SidecarSet, names: ReadonlySet<string>): boolean {
  const containers = (pod.spec.initContainers ?? []).filter(({ name }) => names.has(name));
  const statuses = statusesOf(pod, names);
  if (containers.length !== statuses.length) return false;
  return areConsistent(pod, sidecarSet.metadata?.name ?? "", containers, statuses);
}

function statusesOf({ status }: Pod, names: ReadonlySet<string>): readonly ContainerStatus[] {
  return (status?.initContainerStatuses ?? []).filter(({ name }) => names.has(name));
}

/** The state of the pod's native sidecars. `kubelets`: versions by node. */
export function nativeStateOf(pod: Pod, sidecarSet: SidecarSet, kubelets: ReadonlyMap<string, string>): NativeState {
  const natives = nativeSidecars(sidecarSet);
  const inPod = new Map<string, Container>((pod.spec.initContainers ?? []).map((one) => [one.name, one]));
  const names = new Set(natives.map(({ name }) => name));
  const ready = statusesOf(pod, names).filter(({ ready }) => ready === true);
  const isOther = natives.some(({ name, image }) => inPod.get(name)?.image !== image);
  const hindrance = isOther ? hindranceOf(pod, kubelets) : undefined;
  return {
    isConsistent: isConsistentIn(pod, sidecarSet, names),
    hasSettled: ready.every(({ name }) => isConsistentIn(pod, sidecarSet, new Set([name]))),
    ...(hindrance === undefined ? {} : { hindrance }),
  };
}
