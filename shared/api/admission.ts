/** AdmissionReview and ConversionReview, v1 (also v1beta1 of AdmissionReview, which has the same shape). */
import type { KubernetesObject } from "./kubernetes.ts";

interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

export interface AdmissionRequest {
  readonly uid: string;
  readonly kind?: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subResource?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly operation: string;
  readonly object?: KubernetesObject | null;
  readonly oldObject?: KubernetesObject | null;
  readonly dryRun?: boolean;
}

/** `metav1.Status`, with the fields that webhooks and the API server's errors use. */
export interface Status {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly status?: string;
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: {
    readonly name?: string;
    readonly group?: string;
    readonly kind?: string;
    readonly uid?: string;
    readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[];
    readonly retryAfterSeconds?: number;
  };
}

export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: Status;
  /** JSON patch in base64 */
  readonly patch?: string;
  readonly patchType?: "JSONPatch";
  readonly warnings?: readonly string[];
}

export interface AdmissionReview {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request?: AdmissionRequest;
  readonly response?: AdmissionResponse;
}

export interface ConversionReview {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request?: {
    readonly uid: string;
    readonly desiredAPIVersion: string;
    readonly objects: readonly KubernetesObject[];
  };
  readonly response?: {
    readonly uid: string;
    readonly convertedObjects: readonly KubernetesObject[];
    readonly result: Status;
  };
}
