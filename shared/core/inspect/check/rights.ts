/** Decides whether our accounts may do what they have to, and no more. */

import type { Pod } from "../../../api/kubernetes.ts";
import {
  CONTAINER_LAUNCH_PRIORITY_ANNOTATION,
  CONTAINER_PRIORITY_ENV,
  NEEDS_WEBHOOK_CONDITION,
  RELIED_ON_ANNOTATION,
  TERMINATE_SIDECAR_ENV,
} from "../../../api/names.ts";
import { counted } from "../../../go/counted.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { type Facts, type Right, seenOf } from "./facts.ts";
import { type Finding, finding, someOf, where } from "./finding.ts";

const APPLY = "kubectl apply -f infra/rbac/access.yaml";

export function checkRights(facts: Facts): readonly Finding[] {
  const rights = seenOf(facts.rights) ?? [];
  const accounts = [...new Set(rights.map(({ account }) => account))];
  return [...accounts.flatMap((account) => checkAccount(account, rights)), ...checkOptional(facts, rights)];
}

function checkAccount(account: string, rights: readonly Right[]): readonly Finding[] {
  const own = rights.filter((one) => one.account === account);
  const missing = own.filter(({ role, isAllowed }) => role === "base" && !isAllowed).map(({ what }) => what);
  const excess = own.filter(({ role, isAllowed }) => role === "none" && isAllowed).map(({ what }) => what);
  return [
    ...where(missing.length > 0, finding("RightMissing", account, `it may not ${someOf(missing)}`, APPLY)),
    ...where(
      excess.length > 0,
      finding(
        "RightTooWide",
        account,
        `it may ${someOf(excess)}, which nothing here needs`,
        "take the other bindings of this account away: infra/rbac has what it needs",
      ),
    ),
  ];
}

/** Features that are used, as far as the cluster tells, while their role is not there. */
function checkOptional(facts: Facts, rights: readonly Right[]): readonly Finding[] {
  return usedFeatures(facts).flatMap(({ feature, sign }) => {
    const lacking = rights.filter(({ role, isAllowed }) => role === feature && !isAllowed).map(({ what }) => what);
    return where(
      lacking.length > 0,
      finding(
        "OptionalRoleMissing",
        `role ${feature}`,
        `${sign}, but what that takes is not permitted: ${someOf(lacking)}`,
        `kubectl apply -f infra/rbac/optional/${feature}.yaml`,
      ),
    );
  });
}

/** Decides which optional features a cluster makes use of, as far as its objects tell. */
interface UsedFeature {
  /** name of its file in infra/rbac/optional */
  readonly feature: string;
  /** half a sentence */
  readonly sign: string;
}

function usedFeatures(facts: Facts): readonly UsedFeature[] {
  const pods = seenOf(facts.pods) ?? [];
  const [ordered, ending] = [
    pods.filter(hasLaunchOrder).length,
    pods.filter((pod) => hasEnv(pod, TERMINATE_SIDECAR_ENV)).length,
  ];
  const objects = Object.entries(seenOf(facts.optionalObjects) ?? {}).filter(([, count]) => count > 0);
  return [
    ...objects.map(([feature, count]) => ({
      feature,
      sign: `${counted(count, "object is", "objects are")} there that it serves`,
    })),
    ...(ordered > 0
      ? [{ feature: "launch-order", sign: `${counted(ordered, "pod has", "pods have")} a launch order` }]
      : []),
    ...(ending > 0
      ? [
          {
            feature: "sidecar-terminator",
            sign: `${counted(ending, "pod has", "pods have")} sidecars that are to be ended`,
          },
        ]
      : []),
    ...undoing(facts),
    ...pulling(facts),
    ...(isRegistrationKept(facts)
      ? [{ feature: "webhook-configuration", sign: "the registration is kept up to date with the SidecarSets" }]
      : []),
  ];
}

function undoing({ sidecarSets }: Facts): readonly UsedFeature[] {
  const sets = (seenOf(sidecarSets) ?? []).filter((one) => steeringOf(one).undoesOnHalt);
  if (sets.length === 0) return [];
  return [
    {
      feature: "undo",
      sign: `${counted(sets.length, "SidecarSet is", "SidecarSets are")} to be put back when ${sets.length === 1 ? "its rollout is" : "their rollouts are"} stopped`,
    },
  ];
}

function pulling({ sidecarSets }: Facts): readonly UsedFeature[] {
  const sets = (seenOf(sidecarSets) ?? []).filter((one) => steeringOf(one).prePull !== undefined);
  if (sets.length === 0) return [];
  return [
    { feature: "pre-pull", sign: `${counted(sets.length, "SidecarSet has", "SidecarSets have")} images pulled first` },
  ];
}

function hasLaunchOrder(pod: Pod): boolean {
  return (
    pod.metadata?.annotations?.[CONTAINER_LAUNCH_PRIORITY_ANNOTATION] !== undefined ||
    hasEnv(pod, CONTAINER_PRIORITY_ENV)
  );
}

function hasEnv({ spec }: Pod, name: string): boolean {
  return spec.containers.some(({ env = [] }) => env.some((one) => one.name === name));
}

/** Somebody relied on the condition, and it is there. */
function isRegistrationKept({ mutating }: Facts): boolean {
  return (seenOf(mutating) ?? []).some(
    ({ metadata, webhooks = [] }) =>
      metadata?.annotations?.[RELIED_ON_ANNOTATION] !== undefined &&
      webhooks.some(({ matchConditions = [] }) => matchConditions.some(({ name }) => name === NEEDS_WEBHOOK_CONDITION)),
  );
}
