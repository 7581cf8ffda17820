/** All feature gates, and their defaults. */
import { DEFAULT_ROLLOUT_SETTINGS } from "../core/rollout/rollout-settings.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../core/statefulset/step.ts";

/** OpenKruise's feature gates that change what is decided here, with OpenKruise's defaults, and some of our own. */
export const DEFAULT_FEATURE_GATES = {
  ...DEFAULT_STATEFUL_SET_FEATURE_GATES,
  ...DEFAULT_ROLLOUT_SETTINGS,
  EnableSortSidecarContainerByName: false,
  /** ContainerRecreateRequests are admitted. There is no daemon here: docs/container-recreate.md */
  KruiseDaemon: true,
  /** what carries a label of delete protection is not deleted: Advanced StatefulSets */
  ResourcesDeletionProtection: true,
  SidecarSetPatchPodMetadataDefaultsAllowed: false,
  /** the templates of Advanced StatefulSets are stored as they are given */
  TemplateNoDefaults: false,
};

export type FeatureGates = Readonly<Record<keyof typeof DEFAULT_FEATURE_GATES, boolean>>;
