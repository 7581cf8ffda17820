/** Decides which news of a pod are none for its set: a node reports far more often than anything changes that a pass asks for. */
import type { Pod } from "../../api/kubernetes.ts";
import { isFinished, isHealthy, isTerminating, waitsForPass } from "../../core/statefulset/pods/pod-phase.ts";

/** The same for two states of a pod between which no pass would tell a difference. */
export function signatureOf(pod: Pod): string {
  const { uid, labels, annotations, finalizers } = pod.metadata ?? {};
  if (isTerminating(pod)) return JSON.stringify([uid, "terminating", finalizers]);
  const runs = (pod.status?.containerStatuses ?? []).map(({ image, imageID, containerID }) => [
    image,
    imageID,
    containerID,
  ]);
  const states = [
    isHealthy(pod),
    isFinished(pod),
    pod.status?.phase !== undefined && waitsForPass(pod),
    isUpdating(pod) ? runs : [],
  ];
  return JSON.stringify([uid, labels, annotations, finalizers, states]);
}

function isUpdating({ metadata }: Pod): boolean {
  return Object.keys(metadata?.annotations ?? {}).some((key) => key.includes("inplace-update-"));
}
