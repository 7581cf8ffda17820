/** All feature gates, and their defaults. */
import { DEFAULT_ROLLOUT_SETTINGS } from "../core/rollout/rollout-settings.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../core/statefulset/step.ts";

/** OpenKruise's feature gates that matter here, with OpenKruise's defaults, and some of this project. */
export const DEFAULT_FEATURE_GATES = {
  ...DEFAULT_STATEFUL_SET_FEATURE_GATES,
  ...DEFAULT_ROLLOUT_SETTINGS,
  EnableSortSidecarContainerByName: false,
  /** ContainerRecreateRequests are admitted. This project has no daemon: docs/container-recreate.md */
  KruiseDaemon: true,
  /** objects with a label of delete protection are not deleted: Advanced StatefulSets */
  ResourcesDeletionProtection: true,
  SidecarSetPatchPodMetadataDefaultsAllowed: false,
  /** the templates of Advanced StatefulSets are stored as they are given */
  TemplateNoDefaults: false,
};

export type FeatureGates = Readonly<Record<keyof typeof DEFAULT_FEATURE_GATES, boolean>>;
