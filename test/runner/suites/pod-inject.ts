/** Tests pod injection and launch priority: the resulting pod, or why it is refused. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { Admission } from "../../../shared/core/admission/admission.ts";
import { goPod } from "../../support/go-pod.ts";
import { compare, type Difference } from "../compare.ts";
import type { VectorCase } from "../suite.ts";
import { podHandleSuite } from "./pod-handle.ts";
import { admit, fillIn, type PodInput } from "./pod-request.ts";

interface Outcome {
  readonly error?: string | null;
  readonly panic?: string;
  readonly skip: boolean;
  readonly pod?: KubernetesObject;
}

type Expected =
  | Outcome
  | { readonly nondeterministic: true; readonly outcomes: readonly { readonly outcome: Outcome }[] };

const PANIC = "the reference panics";

/** Returns both sides as Go prints the pod. Where the reference panics, the product must refuse. */
function expectedOutcome({ error, panic, skip, pod }: Outcome, { namespace }: PodInput) {
  if (panic !== undefined) return { refused: PANIC };
  if (error) return { refused: error };
  return { skip, pod: pod && goPod(fillIn(pod), namespace) };
}

function actualOutcome(admission: Admission, { pod, namespace }: PodInput, { panic, pod: hasPod }: Outcome) {
  if (admission.kind === "denied") return { refused: panic === undefined ? admission.message : PANIC };
  const { object } = admission;
  return { skip: object === undefined, pod: hasPod && goPod(object ?? pod, namespace) };
}

function differences(input: PodInput, outcome: Outcome, random?: () => number): readonly Difference[] {
  return compare(actualOutcome(admit(input, random), input, outcome), expectedOutcome(outcome, input));
}

const SHARES = Array.from({ length: 20 }, (_, index) => index / 20);

/** Every random number must give one of the outcomes. Every outcome must come from some number. */
function compareOutcomes(input: PodInput, outcomes: readonly Outcome[]): readonly Difference[] {
  const results = SHARES.map((share) => outcomes.map((outcome) => differences(input, outcome, () => share)));
  const strays = results.filter((result) => result.every((difference) => difference.length > 0));
  const unseen = outcomes.filter((_, index) => results.every((result) => (result[index] ?? []).length > 0));
  return [...strays.flatMap(([first]) => first ?? []), ...compare(unseen, [], "$.unseen")];
}

function podStepSuite(input: PodInput, expected: Expected): readonly Difference[] {
  if (!("nondeterministic" in expected)) return differences(input, expected);
  return compareOutcomes(
    input,
    expected.outcomes.map(({ outcome }) => outcome),
  );
}

/** Runs one case; such a file may also contain cases of the whole webhook. */
export function podInjectSuite(input: PodInput, expected: never, { kind }: VectorCase): readonly Difference[] {
  return kind === "pod-handle" ? podHandleSuite(input, expected) : podStepSuite(input, expected);
}
