/** Tests the whole pod webhook: its answer, and the pod that the API server then stores. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { goPod } from "../../support/go-pod.ts";
import { compare, type Difference } from "../compare.ts";
import { admit, fillIn, type PodInput } from "./pod-request.ts";

interface Expected {
  readonly allowed: boolean;
  readonly code?: number;
  readonly message?: string;
  readonly patches: readonly unknown[] | null;
  readonly podAfterPatch: KubernetesObject;
}

/** Code of decode errors, whose texts are Go's own. */
const BAD_REQUEST = 400;

export function podHandleSuite(input: PodInput, expected: Expected): readonly Difference[] {
  const admission = admit(input);
  if (admission.kind === "denied") {
    const { code, message } = admission;
    const wanted = { allowed: expected.allowed, code: expected.code, message: expected.message };
    return compare({ allowed: false, code, message: code === BAD_REQUEST ? expected.message : message }, wanted);
  }
  const { object } = admission;
  return compare(
    { allowed: true, isPatched: object !== undefined, pod: goPod(object ?? input.pod, undefined) },
    {
      allowed: expected.allowed,
      isPatched: expected.patches !== null,
      pod: goPod(fillIn(expected.podAfterPatch), undefined),
    },
  );
}
