/** The library: an admission policy that injects a SidecarSet without any webhook. Objects in, values out, no I/O. */
import type { ControllerRevision, KubernetesObject } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import { type CompiledSidecarSet, compileSidecarSet } from "../../shared/core/injection/compile/compile.ts";
import { gates, NOW, OBJECT, OBJECTS, oneOf, optionally, REVISIONS, readArguments, within } from "./arguments.ts";
import { storedSidecarSet } from "./pass-input.ts";

export interface CompileInput {
  /** the SidecarSet from a manifest, or from the API server */
  readonly sidecarSet: KubernetesObject;
  /** all SidecarSets of the cluster, for canaries; absent: there is no other one */
  readonly sidecarSets?: readonly KubernetesObject[];
  /** the revisions that injectionStrategy.revision may name */
  readonly revisions?: readonly ControllerRevision[];
  /** RFC 3339: the time that every injection gets */
  readonly now: string;
  /** what happens to a pod if the policy cannot be evaluated; absent: Ignore */
  readonly failurePolicy?: "Ignore" | "Fail";
  /** FEATURE_GATES of the webhooks; an absent gate is off */
  readonly featureGates?: { readonly EnableSortSidecarContainerByName?: boolean; readonly PodOptOut?: boolean };
}

const ARGUMENTS = {
  sidecarSet: OBJECT,
  sidecarSets: optionally(OBJECTS),
  revisions: REVISIONS,
  now: NOW,
  failurePolicy: oneOf("Ignore", "Fail"),
  featureGates: gates("EnableSortSidecarContainerByName", "PodOptOut"),
};

/** The policy. @throws TypeError that says in one sentence which argument is wrong */
export function compile(given: CompileInput): CompiledSidecarSet {
  const input = readArguments("compile", given, ARGUMENTS);
  const { revisions = [], now, failurePolicy = "Ignore", featureGates } = input;
  const sidecarSet = within("compile", "sidecarSet", () => storedSidecarSet(input.sidecarSet));
  const others = (input.sidecarSets ?? []).map((one, index) =>
    within("compile", `sidecarSets[${index}]`, () => storedSidecarSet(one)),
  );
  const sortContainersByName = featureGates?.EnableSortSidecarContainerByName ?? false;
  return compileSidecarSet(sidecarSet, {
    ...{ now, failurePolicy, sortContainersByName, revisions, others },
    mayDecline: featureGates?.PodOptOut ?? false,
    kruiseNamespace: KRUISE_NAMESPACE,
  });
}
