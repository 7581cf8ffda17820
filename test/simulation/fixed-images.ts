/**
 * An API server that refuses to change a running pod's image. It records the passes that got this refusal, and which
 * pods they may replace for it.
 */

import type { ApiObject } from "../../infra/local/storage/json.ts";
import { type FieldError, forbiddenField } from "../../infra/local/storage/status-error.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { RESTARTED_AT_ANNOTATION } from "../../shared/api/names.ts";
import type { Write } from "./api-server.ts";
import type { WorkloadObject } from "./workload-objects.ts";

/** The message of Kubernetes, without the image fields that it allows today. */
const WORDS =
  "pod updates may not change fields other than `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)";

const imagesOf = (pod: Pod) => pod.spec.containers.map(({ image }) => image).join();

export class FixedImages {
  areFixed = false;
  /** uids of refused pods, and of their workloads */
  readonly #refused = new Set<string>();
  readonly #workloadOf: (pod: Pod) => string | undefined;

  constructor(workloadOf: (pod: Pod) => string | undefined) {
    this.#workloadOf = workloadOf;
  }

  /** Refuses the new images of a patch. */
  refuse(next: ApiObject, current: ApiObject): readonly FieldError[] {
    const [after, before] = [next, current].map((one) => imagesOf(one as unknown as Pod));
    if (!this.areFixed || after === before) return [];
    const pod = current as unknown as Pod;
    for (const uid of [pod.metadata?.uid, this.#workloadOf(pod)]) this.#refused.add(uid ?? "");
    return [forbiddenField("spec", WORDS)];
  }

  /**
   * Returns a sentence if a pass replaces a pod or restarts a workload although none of its images was refused.
   * `isInjected`: true if any SidecarSet injected the pod.
   */
  problemOf(
    { userAgent, resource, object, previous, isRemoved }: Write,
    isInjected: (pod: Pod) => boolean,
  ): string | undefined {
    if (!userAgent.startsWith("pass") || previous === undefined) return undefined;
    const { name, uid = "" } = object.metadata;
    if (resource === "pods") {
      const isGone = isRemoved || object.metadata.deletionTimestamp !== previous.metadata.deletionTimestamp;
      const isFree = !isInjected(previous as unknown as Pod) || this.#refused.has(uid);
      return isGone && !isFree ? `${userAgent}: ${name} is evicted, and no image was refused to it` : undefined;
    }
    const [is, was] = [object, previous].map((one) => restartedAt(one as unknown as WorkloadObject));
    return is === was || this.#refused.has(uid)
      ? undefined
      : `${userAgent}: ${name} is restarted, and no image was refused to its pods`;
  }
}

function restartedAt({ spec }: WorkloadObject): string | undefined {
  return spec?.template?.metadata?.annotations?.[RESTARTED_AT_ANNOTATION];
}
