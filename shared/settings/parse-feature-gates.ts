/**
 * The feature gates by FEATURE_GATES: OpenKruise's with their names, and this project's. It imports only types, because
 * a bundle loads it before its imports have started.
 */
import type { FeatureGates } from "./feature-gates.ts";

type Gate = keyof FeatureGates;

/** The gates of AllAlpha and AllBeta. This project's are on only by name. Source: OpenKruise pkg/features. */
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

/** OpenKruise's own manager turns these off without its daemon, whatever their setting. */
const NEED_DAEMON: readonly Gate[] = ["InPlaceUpdateEnvFromMetadata", "SidecarTerminator"];

/** OpenKruise's gates for features that this project does not have. */
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
 * The fault of a text such as `AllAlpha=true,SidecarTerminator=false`: the first unusable entry, in a sentence that
 * follows the variable's name.
 */
export function featureGatesProblem(text: string, defaults: FeatureGates): string | undefined {
  for (const [name, value] of entriesOf(text)) {
    const problem = problemOf(name, value, defaults);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Parses a text without faults. A single gate wins over its stage, in any order. */
export function parseFeatureGates(text: string, defaults: FeatureGates): FeatureGates {
  const said = new Map(entriesOf(text).map(([name, value]) => [name, value === "true"]));
  const gates = { ...defaults };
  for (const [stage, members] of Object.entries(STAGES))
    for (const gate of members) gates[gate] = said.get(stage) ?? gates[gate];
  for (const [name, isOn] of said) if (isFeatureGate(name, defaults)) gates[name] = isOn;
  if (!gates.KruiseDaemon) for (const gate of NEED_DAEMON) gates[gate] = false;
  return gates;
}

function entriesOf(text: string): readonly (readonly [string, string])[] {
  const entries = text.split(",").filter((entry) => entry.trim() !== "");
  return entries.map((entry) => {
    const [name = "", value = ""] = entry.split("=").map((part) => part.trim());
    return [name, value];
  });
}

function problemOf(name: string, value: string, defaults: FeatureGates): string | undefined {
  const isOurs = isFeatureGate(name, defaults) || Object.hasOwn(STAGES, name);
  if (!isOurs && name !== "PodWebhook" && !ELSEWHERE.has(name))
    return `names ${name}, which is none of ${[...Object.keys(STAGES), ...Object.keys(defaults)].join(", ")}.`;
  if (value !== "true" && value !== "false") return `sets ${name} to "${value}", which is neither true nor false.`;
  if (name === "PodWebhook" && value === "false")
    return "turns PodWebhook off: leave the pod webhook out of the registration instead.";
  if (ELSEWHERE.has(name) && value === "true")
    return `turns ${name} on, OpenKruise's gate for a feature that is not served here.`;
  return undefined;
}

function isFeatureGate(name: string, defaults: FeatureGates): name is Gate {
  return Object.hasOwn(defaults, name);
}
