/** Decides what comes in the place of a pod that is evicted: another one, with the SidecarSet as it is, which is not ready yet. */
import type { Container, Pod } from "../../../api/kubernetes.ts";
import type { SidecarContainer, SidecarSet } from "../../../api/sidecarset.ts";
import { recordHash, recordWithoutImage, type UpgradeFacts } from "../upgrade/record-upgrade.ts";
import { stopped } from "./simulated-kubelet.ts";

/** Under the name of the one before, which most controllers would not give it. */
export function successorOf(pod: Pod, sidecarSet: SidecarSet, facts: UpgradeFacts): Pod {
  const { metadata, spec, status } = pod;
  const wanted = new Map((sidecarSet.spec.containers ?? []).map((container) => [container.name, container]));
  const containers = spec.containers.map((container) => withImage(container, wanted.get(container.name)));
  const known = new Set(containers.map(({ name }) => name));
  const added = [...wanted.values()].filter(({ name }) => !known.has(name));
  const all = [...containers, ...added];
  const annotations = {
    ...metadata?.annotations,
    ...recordHash(pod, sidecarSet, facts),
    ...recordWithoutImage(pod, sidecarSet, facts),
  };
  const conditions = (status?.conditions ?? []).map((one) =>
    one.type === "Ready" ? { ...one, status: "False" } : one,
  );
  const containerStatuses = all.map(({ name, image = "" }) => stopped({ name, image }));
  return {
    ...pod,
    metadata: { ...metadata, uid: `${metadata?.uid}-successor`, annotations },
    spec: { ...spec, containers: all },
    status: { ...status, conditions, containerStatuses },
  };
}

function withImage(container: Container, wanted: SidecarContainer | undefined): Container {
  return wanted?.image === undefined ? container : { ...container, image: wanted.image };
}
