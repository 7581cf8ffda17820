/** ContainerRecreateRequest as stored (v1beta1). v1alpha1 lacks the conditions and the snapshot of the status. */

import type { KubernetesObject } from "./kubernetes.ts";
import type { ContainerPort, Handler } from "./pod-parts.ts";

export interface RecreatedContainer {
  readonly name: string;
  /** action before the stop; admission fills in the next three fields from the pod */
  readonly preStop?: Pick<Handler, "exec" | "httpGet" | "tcpSocket">;
  readonly ports?: readonly ContainerPort[];
  readonly statusContext?: { readonly containerID: string; readonly restartCount?: number };
}

export interface RecreateStrategy {
  /** policy after a failure: Fail or Ignore */
  readonly failurePolicy?: string;
  readonly orderedRecreate?: boolean;
  readonly forceRecreate?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly unreadyGracePeriodSeconds?: number;
  readonly minStartedSeconds?: number;
}

type RecreatePhase = "" | "Pending" | "Recreating" | "Succeeded" | "Failed" | "Completed";

export interface ContainerRecreateState {
  readonly name: string;
  readonly phase: RecreatePhase;
  readonly message?: string;
  readonly isKilled?: boolean;
}

export interface ContainerStatusSnapshot {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly containerID?: string;
}

/** metav1.Condition */
export interface RecreateCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

export interface ContainerRecreateRequestSpec {
  readonly podName: string;
  readonly containers: readonly RecreatedContainer[];
  readonly strategy?: RecreateStrategy;
  readonly activeDeadlineSeconds?: number;
  readonly ttlSecondsAfterFinished?: number;
}

export interface ContainerRecreateRequestStatus {
  readonly phase: RecreatePhase;
  readonly completionTime?: string;
  readonly message?: string;
  readonly containerRecreateStates?: readonly ContainerRecreateState[];
  readonly containerStatusSnapshot?: readonly ContainerStatusSnapshot[];
  readonly conditions?: readonly RecreateCondition[];
}

export interface ContainerRecreateRequest extends KubernetesObject {
  readonly spec: ContainerRecreateRequestSpec;
  readonly status?: ContainerRecreateRequestStatus;
}
