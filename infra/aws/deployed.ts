/** The functions that are deployed, and the paths that each answers. */
import { ANNOUNCE_SIDECARSET_PATH } from "../../shared/api/names.ts";
import type { TokenUse } from "../../shared/settings/cluster-table.ts";
import * as PATHS from "../../shared/webhook/server/paths.ts";

export interface DeployedFunction {
  readonly name: string;
  /** admissions are called with the proof that the settings ask for, conversions by secret path */
  readonly isCalledFor?: "admission" | "conversion";
  /** paths of the webhooks that it answers */
  readonly paths?: readonly string[];
  /** reads the cluster */
  readonly isInCluster: boolean;
  /** puts work into the queue of rollouts, where there is one; a worker takes it out too */
  readonly queue?: "sender" | "worker";
  /** reads or writes the registration of the pod webhook, where it is kept up to date */
  readonly isKeepingRegistration?: true;
  /** true: the caller only reads the cluster, and has no rights to write */
  readonly isReadOnly?: true;
}

/** The use of the token in the function. */
export function tokenUse({ isCalledFor, isReadOnly }: DeployedFunction): TokenUse {
  if (isCalledFor !== undefined) return "webhooks";
  return isReadOnly ? "dry runs" : "passes";
}

/**
 * The functions that are built, deployed, given rights, called, sized and drawn. Only serverless.yml lists them too.
 */
export const DEPLOYED: readonly DeployedFunction[] = [
  { name: "mutate-pod", isCalledFor: "admission", paths: [PATHS.MUTATE_POD_PATH], isInCluster: true },
  {
    name: "mutate-sidecarset",
    isCalledFor: "admission",
    paths: [PATHS.MUTATE_SIDECARSET_PATH, PATHS.OLDER_MUTATE_SIDECARSET_PATH, PATHS.MUTATE_STATEFUL_SET_PATH],
    isInCluster: false,
  },
  {
    name: "validate-sidecarset",
    isCalledFor: "admission",
    paths: [
      ANNOUNCE_SIDECARSET_PATH,
      PATHS.VALIDATE_SIDECARSET_PATH,
      PATHS.OLDER_VALIDATE_SIDECARSET_PATH,
      PATHS.POD_STATUS_PATH,
      PATHS.MUTATE_RECREATE_REQUEST_PATH,
      PATHS.OLDER_MUTATE_RECREATE_REQUEST_PATH,
      PATHS.VALIDATE_STATEFUL_SET_PATH,
    ],
    isInCluster: true,
    queue: "sender",
    isKeepingRegistration: true,
  },
  { name: "convert-sidecarset", isCalledFor: "conversion", paths: [PATHS.CONVERT_PATH], isInCluster: false },
  { name: "rollout", isInCluster: true, queue: "worker", isKeepingRegistration: true },
  { name: "dry-run", isInCluster: true, isKeepingRegistration: true, isReadOnly: true },
  { name: "ordered-set", isInCluster: true },
];

/** Conversions have a door of their own: API servers show no certificate there. */
export const BEHIND_DOOR = DEPLOYED.filter(({ isCalledFor }) => isCalledFor === "admission");

/** Names of the functions that a schedule calls. */
export function tickingFunctions({
  isServingStatefulSets,
}: {
  readonly isServingStatefulSets?: true;
}): readonly string[] {
  return isServingStatefulSets ? ["rollout", "ordered-set"] : ["rollout"];
}
