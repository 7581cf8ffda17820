/** The result of an admission: the wanted object, or a refusal. The webhook turns it into a patch or a Status. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import type { FieldError } from "../../go/field-error.ts";

export type Admission =
  /** `object`: the whole wanted object; absent: leave it unchanged. */
  | { readonly kind: "allowed"; readonly object?: KubernetesObject; readonly warnings?: readonly string[] }
  | {
      readonly kind: "denied";
      /** HTTP code for the Status: 400 cannot be decoded, 422 invalid, 500 refused for a cluster reason */
      readonly code: number;
      /** metav1.StatusReason: BadRequest, Invalid, InternalError, … */
      readonly reason: string;
      readonly message: string;
      readonly errors?: readonly FieldError[];
    };

export function badRequest(message: string): Admission {
  return { kind: "denied", code: 400, reason: "BadRequest", message };
}

// Why a pod cannot be admitted.

/** A value, not an exception. It is a class so that no annotation or container can look like one. */
export class Refusal {
  /** OpenKruise's text where it has one */
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
