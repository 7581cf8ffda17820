/** What an admission decided: the object as wanted, or why not. The webhook turns it into a patch or a Status. */
import type { KubernetesObject } from "../../api/kubernetes.ts";

/** One cause of a denial, as apimachinery's field.Error: `type` is its ErrorType ("FieldValueRequired", …). */
export interface FieldError {
  readonly type: string;
  /** path such as spec.containers[0].image */
  readonly field: string;
  readonly detail: string;
  readonly badValue?: unknown;
}

export type Admission =
  /** `object` is the whole wanted object; absent means: leave it as it is. */
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
