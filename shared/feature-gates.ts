/** Which feature gates are on, as FEATURE_GATES says: OpenKruise's by its names, and ours. */
import { ConfigError } from "./config-error.ts";
import { DEFAULT_ORDERED_SET_GATES } from "./core/ordered-set/gates.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "./core/upgrade/rollout-settings.ts";

/** OpenKruise's feature gates that change what is decided here, with OpenKruise's defaults, and some of our own. */
const DEFAULT_FEATURE_GATES = {
  ...DEFAULT_ORDERED_SET_GATES,
  ...DEFAULT_ROLLOUT_SETTINGS,
  EnableSortSidecarContainerByName: false,
  /** ContainerRecreateRequests are admitted. There is no daemon here: docs/container-recreate.md */
  KruiseDaemon: true,
  /** what carries a label of delete protection is not deleted: ordered sets */
  ResourcesDeletionProtection: false,
  SidecarSetPatchPodMetadataDefaultsAllowed: false,
  /** the templates of ordered sets are stored as they are given */
  TemplateNoDefaults: false,
};

export type FeatureGates = Readonly<Record<keyof typeof DEFAULT_FEATURE_GATES, boolean>>;

type Gate = keyof FeatureGates;

/** What AllAlpha and AllBeta stand for. Ours have no stage: they are on only where they are named. Source: OpenKruise pkg/features. */
const STAGES: Readonly<Record<string, readonly Gate[]>> = {
  AllAlpha: [
    "EnableSortSidecarContainerByName",
    "KruisePodReadinessGate",
    "PreparingUpdateAsUpdate",
    "SidecarSetPatchPodMetadataDefaultsAllowed",
    "SidecarTerminator",
    "StatefulSetAutoResizePVCGate",
    "StatefulSetStartOrdinal",
    "TemplateNoDefaults",
  ],
  AllBeta: [
    "InPlaceUpdateEnvFromMetadata",
    "KruiseDaemon",
    "PodIndexLabel",
    "ResourcesDeletionProtection",
    "StatefulSetAutoDeletePVC",
  ],
};

/** OpenKruise's own manager turns these off without its daemon, whatever is said of them. */
const NEED_DAEMON: readonly Gate[] = ["InPlaceUpdateEnvFromMetadata", "SidecarTerminator"];

/** OpenKruise's gates for what is not served here. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  "CloneSetEventHandlerOptimization",
  "CloneSetPartitionRollback",
  "CloneSetShortHash",
  "DaemonWatchingPod",
  "DeletionProtectionForCRDCascadingGate",
  "EnableExternalCerts",
  "EnablePodProbeMarkerOnServerless",
  "EnhancedLivenessProbe",
  "ForceDeleteTimeoutExpectationGate",
  "ImagePullJobGate",
  "InPlaceWorkloadVerticalScaling",
  "PodProbeMarkerGate",
  "PodUnavailableBudgetDeleteGate",
  "PodUnavailableBudgetUpdateGate",
  "PreDownloadImageForDaemonSetUpdate",
  "PreDownloadImageForInPlaceUpdate",
  "RecreatePodWhenChangeVCTInCloneSetGate",
  "ResourceDistributionGate",
  "WorkloadSpread",
]);

/**
 * Such as `AllAlpha=true,SidecarTerminator=false`: what is said of one gate goes before what is said of all of a stage,
 * wherever it stands.
 * @throws ConfigError for the first that cannot be used
 */
export function parseFeatureGates(variable: string, text: string): FeatureGates {
  const said = new Map(text.split(",").flatMap((entry) => (entry.trim() === "" ? [] : [parseEntry(variable, entry)])));
  const gates = { ...DEFAULT_FEATURE_GATES };
  for (const [stage, members] of Object.entries(STAGES))
    for (const gate of members) gates[gate] = said.get(stage) ?? gates[gate];
  for (const [name, isOn] of said) if (isFeatureGate(name)) gates[name] = isOn;
  if (!gates.KruiseDaemon) for (const gate of NEED_DAEMON) gates[gate] = false;
  return gates;
}

function parseEntry(variable: string, entry: string): readonly [string, boolean] {
  const [name = "", value = ""] = entry.split("=").map((part) => part.trim());
  const isKnown = isFeatureGate(name) || Object.hasOwn(STAGES, name) || name === "PodWebhook" || ELSEWHERE.has(name);
  if (!isKnown)
    throw new ConfigError(
      `${variable} names ${name}, which is none of ${[...Object.keys(STAGES), ...Object.keys(DEFAULT_FEATURE_GATES)].join(", ")}.`,
    );
  if (value !== "true" && value !== "false")
    throw new ConfigError(`${variable} sets ${name} to "${value}", which is neither true nor false.`);
  if (name === "PodWebhook" && value === "false")
    throw new ConfigError(`${variable} turns PodWebhook off: leave the pod webhook out of the registration instead.`);
  if (ELSEWHERE.has(name) && value === "true")
    throw new ConfigError(`${variable} turns ${name} on, a gate of OpenKruise's for what is not served here.`);
  return [name, value === "true"];
}

function isFeatureGate(name: string): name is Gate {
  return Object.hasOwn(DEFAULT_FEATURE_GATES, name);
}
