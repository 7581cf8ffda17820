/** Every label, annotation, variable, condition and reason, written once, as OpenKruise and Kubernetes spell it. */

export const SIDECARSET_GROUP = "apps.kruise.io";
export const SIDECARSET_KIND = "SidecarSet";
export const SIDECARSET_V1BETA1 = "apps.kruise.io/v1beta1";
export const SIDECARSET_V1ALPHA1 = "apps.kruise.io/v1alpha1";

/** The default namespace of revisions, ledgers and the whitelist. */
export const KRUISE_NAMESPACE = "kruise-system";

// annotations of a SidecarSet; the two hashes are also keys of a pod's annotations
export const HASH_ANNOTATION = "kruise.io/sidecarset-hash";
export const HASH_WITHOUT_IMAGE_ANNOTATION = "kruise.io/sidecarset-hash-without-image";
export const CANARY_ANNOTATION = "apps.kruise.io/sidecarset-canary";
/** ours: how many updated pods may fail before the rollout stops, such as `3`, `10%` or `10% within 5m` */
export const HALT_ON_ANNOTATION = "sidecarset.kruise.io/halt-on";
/** ours: "true" puts the SidecarSet back to the revision before when halt-on stops its rollout */
export const UNDO_ON_HALT_ANNOTATION = "sidecarset.kruise.io/undo-on-halt";
/** ours, written by a pass: the releases that it took back, as JSON */
export const UNDONE_ANNOTATION = "sidecarset.kruise.io/undone";
/** ours, written by `undo` and `abort`: the releases that were given up, as JSON */
export const GIVEN_UP_ANNOTATION = "sidecarset.kruise.io/given-up";
/** ours, of a ControllerRevision, written by a pass: when its rollout was first complete, RFC3339 */
export const READY_AT_ANNOTATION = "sidecarset.kruise.io/ready-at";
/** The release that `fleet apply` wrote to a SidecarSet, its time, and the previous content. Passes do not read it. */
export const FLEET_ANNOTATION = "sidecarset.kruise.io/fleet";
/** ours: URL that is asked before each batch */
export const GATE_ANNOTATION = "sidecarset.kruise.io/gate";
/** ours: queries to Prometheus, each with a bound, that have to pass before each batch, as JSON */
export const METRICS_ANNOTATION = "sidecarset.kruise.io/metrics";
/** ours: how many pods of one owner may be down at once, such as `1` or `25%` */
export const OWNER_BUDGET_ANNOTATION = "sidecarset.kruise.io/max-unavailable-per-owner";
/** ours: which namespaces get a release first, and how long it has to hold there, as a list in JSON */
export const WAVES_ANNOTATION = "sidecarset.kruise.io/waves";
/** ours: hash of the release that does not wait for waves */
export const SKIP_WAVES_ANNOTATION = "sidecarset.kruise.io/skip-waves";
/** OpenKruise's: name of the PodUnavailableBudget that is about the pod */
export const RELATED_PUB_ANNOTATION = "kruise.io/related-pub";
/** OpenKruise's: "true" leaves the pod out of its PodUnavailableBudget */
export const PUB_NO_PROTECTION_ANNOTATION = "pod.kruise.io/pub-no-protect";
/** OpenKruise's, on a PodUnavailableBudget: the operations that it covers, of DELETE, EVICT and UPDATE */
export const PUB_OPERATIONS_ANNOTATION = "kruise.io/pub-protect-operations";
/** ours: "true" leaves pods that have never been ready out of maxUnavailable */
export const IGNORE_NEVER_READY_ANNOTATION = "sidecarset.kruise.io/ignore-never-ready";
/** ours: "true" evicts pods that missed their sidecars, within maxUnavailable */
export const EVICT_MISSED_ANNOTATION = "sidecarset.kruise.io/evict-missed";
/** ours: which pods are evicted, within maxUnavailable, so that their controllers create others: `NotUpgradable`, `Missed` */
export const REPLACE_ANNOTATION = "sidecarset.kruise.io/replace";
/** On a workload: the SidecarSets and versions of its last restart, as NAME=HASH, separated by commas. */
export const RESTARTED_FOR_ANNOTATION = "sidecarset.kruise.io/restarted-for";
/** On a pod template: the annotation that `kubectl rollout restart` writes. */
export const RESTARTED_AT_ANNOTATION = "kubectl.kubernetes.io/restartedAt";
/** ours: "true" upgrades pods of StatefulSets one at a time, set after set, from the highest ordinal down */
export const FOLLOW_ORDINALS_ANNOTATION = "sidecarset.kruise.io/follow-ordinals";
/** ours: "Values" lets literal values of variables change in pods that run */
export const IN_PLACE_ANNOTATION = "sidecarset.kruise.io/in-place";
/** the only value of the annotation in-place */
export const IN_PLACE_VALUES = "Values";
/** ours: how long a pod is out of endpoints before its sidecars restart, such as "10s" */
export const DRAIN_ANNOTATION = "sidecarset.kruise.io/drain";
/** On a SidecarSet: images are pulled before pods are updated, on this many nodes at once. */
export const PRE_PULL_ANNOTATION = "sidecarset.kruise.io/pre-pull";
/** On a pull pod: the uid of its SidecarSet, and a digest of the images. */
export const PRE_PULL_LABEL = "sidecarset.kruise.io/pre-pull";
export const PRE_PULL_DIGEST_LABEL = "sidecarset.kruise.io/pre-pull-digest";
export const BASE_ANNOTATION = "apps.kruise.io/sidecarset-base";

// annotations of a pod
export const INJECTED_LIST_ANNOTATION = "kruise.io/sidecarset-injected-list";
export const IN_PLACE_UPDATE_STATE_ANNOTATION = "kruise.io/sidecarset-inplace-update-state";
export const WORKING_HOT_UPGRADE_ANNOTATION = "kruise.io/sidecarset-working-hotupgrade-container";
/** prefix of a key, before the name of the pod's container */
export const VERSION_ANNOTATION_PREFIX = "version.sidecarset.kruise.io/";
/** prefix of a key, before the name of the pod's container */
export const VERSION_ALT_ANNOTATION_PREFIX = "versionalt.sidecarset.kruise.io/";
/** ours, of a pod: SidecarSet → hash of the release to which its resources are, or were, changed in place */
export const RESIZE_ANNOTATION = "sidecarset.kruise.io/resize";
/** ours, of a pod, after the SidecarSet's name and before the variable's: the value that a container reads when it starts */
export const VALUE_ANNOTATION_SUFFIX = ".value.sidecarset.kruise.io";
/** ours, on a pod, before the SidecarSet's name: a digest of its values, and the containers before their change */
export const VALUES_ANNOTATION_PREFIX = "values.sidecarset.kruise.io/";
/** ours, a label of a pod that its people give it, and by which Services select: passes change its value to drain the pod */
export const TRAFFIC_LABEL = "sidecarset.kruise.io/traffic";
export const SERVING = "serving";
export const DRAINED = "drained";
/** ours, of a pod: SidecarSet → since when it keeps the pod drained */
export const DRAINED_BY_ANNOTATION = "sidecarset.kruise.io/drained-by";
/** ours: moves a pod's resourceVersion so that a late patch fails (the fence of the ledger protocol) */
export const FENCE_ANNOTATION = "sidecarset.kruise.io/fence";
/** Condition of a pod whose annotations cannot be written, in place of the annotation. */
export const FENCE_CONDITION = "sidecarset.kruise.io/fence";
/** On a ledger: digest of the annotations in effect for all its reservations. */
export const STEERING_ANNOTATION = "sidecarset.kruise.io/steering";
/** On a ledger with reservations: its deletion waits until none is left. */
export const LEDGER_FINALIZER = "sidecarset.kruise.io/reservations";

/** ours, a label or an annotation of a pod: "false" declines all sidecars, where the feature gate PodOptOut lets pods do that */
export const INJECT_KEY = "sidecarset.kruise.io/inject";
/** ours: "true" for a pod without sidecars on purpose: it does not count among pods that missed them */
export const IGNORE_MISSED_ANNOTATION = "sidecarset.kruise.io/ignore-missed";
export const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

// annotations of a pod that a workload updates in place; the old keys are read, never written
export const IN_PLACE_STATE_ANNOTATION = "apps.kruise.io/inplace-update-state";
export const IN_PLACE_STATE_OLD_ANNOTATION = "inplace-update-state";
export const IN_PLACE_GRACE_ANNOTATION = "apps.kruise.io/inplace-update-grace";
export const IN_PLACE_GRACE_OLD_ANNOTATION = "inplace-update-grace";
/** hashes of the containers as a node agent started them */
export const RUNTIME_CONTAINERS_ANNOTATION = "apps.kruise.io/runtime-containers-meta";

// labels
export const CUSTOM_VERSION_LABEL = "apps.kruise.io/sidecarset-custom-version";
export const REVISION_HASH_LABEL = "controller.kubernetes.io/hash";
export const SIDECARSET_NAME_LABEL = "kruise.io/sidecarset-name";
export const NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name";
export const CONTROL_PLANE_LABEL = "control-plane";
/** label of a Node, which is copied to requests for its pods */
export const NODE_TYPE_LABEL = "type";
export const VIRTUAL_KUBELET = "virtual-kubelet";

// the registration of the webhooks in a cluster
/** API servers call mutating webhooks in the order of these names: right after OpenKruise's, before judging ones */
export const WEBHOOK_CONFIGURATION = "kruise-sidecarset-mutating-webhook-configuration";
/** former name of the configuration above; every write of that one empties this one */
export const FORMER_WEBHOOK_CONFIGURATION = "sidecarset-mutating-webhook-configuration";
export const POD_WEBHOOK = "mpod.kb.io";
/** suffix of every registration that an API server reads from a file; the API refuses such names */
export const STATIC_SUFFIX = ".static.k8s.io";
/** ours, of an empty registration: where the webhooks are registered instead */
export const REGISTERED_IN_ANNOTATION = "sidecarset.kruise.io/registered-in";
export const REGISTERED_IN_FILES = "files-of-api-servers";
export const VALIDATING_CONFIGURATION = "sidecarset-validating-webhook-configuration";
export const SIDECARSET_VALIDATION_WEBHOOK = "vsidecarset.kb.io";
/** ours: its path; validates as OpenKruise's does, and announces what it admits; also asked about deletions */
export const ANNOUNCE_SIDECARSET_PATH = "/announce-apps-kruise-io-sidecarset";
/** name of the match condition that excludes most writes of a status */
export const ANNOUNCED_WRITES_CONDITION = "changes-what-pods-get";
/** ours: the ConfigMap that names the SidecarSets which are about to be written */
export const ANNOUNCEMENTS_CONFIG_MAP = "sidecarset-announcements";
/** name of the match condition that is made from SidecarSets */
export const NEEDS_WEBHOOK_CONDITION = "needs-the-webhook";
/** ours, on a registration: the AWS deployment that it belongs to, REGION/STACK */
export const DEPLOYED_BY_ANNOTATION = "sidecarset.kruise.io/deployed-by";
/** ours, on the registration: time of the last admission of a SidecarSet that relied on its condition */
export const RELIED_ON_ANNOTATION = "sidecarset.kruise.io/relied-on-at";

// ContainerRecreateRequest: its labels, and the finalizer that keeps it until the pod may be ready again
export const RECREATE_REQUEST_KIND = "ContainerRecreateRequest";
export const RECREATE_POD_UID_LABEL = "crr.apps.kruise.io/pod-uid";
export const RECREATE_NODE_NAME_LABEL = "crr.apps.kruise.io/node-name";
export const RECREATE_ACTIVE_LABEL = "crr.apps.kruise.io/active";
/** ours: requests of one namespace with the same value are one batch */
export const RECREATE_BATCH_LABEL = "crr.sidecarset.kruise.io/batch";
/** ours: number or percentage of a batch's requests that recreate containers at the same time */
export const RECREATE_MAX_UNAVAILABLE_ANNOTATION = "crr.sidecarset.kruise.io/max-unavailable";
/** ours, of a request: "original" writes images as they were written before the first recreation */
export const RECREATE_IMAGE_ANNOTATION = "crr.sidecarset.kruise.io/image";
/** ours, on a pod: the request that recreated a container last, and the first spelling of its image */
export const RECREATED_CONTAINERS_ANNOTATION = "sidecarset.kruise.io/recreated-containers";
export const UNREADY_ACQUIRED = "crr.apps.kruise.io/unready-acquired";
/** condition of a pod whose sidecars were told to stop, so that containers of a finished pod may be recreated */
export const SIDECAR_TERMINATED_CONDITION = "SidecarTerminated";
/** ours: time since which a pass serves the request, if it has a deadline */
export const RECREATE_TAKEN_UP_CONDITION = "TakenUp";
export const PRE_RECREATE_GRACE_CONDITION = "PreRecreateGrace";

// Advanced StatefulSets: labels and annotations of their pods and claims
export const STATEFUL_SET_KIND = "StatefulSet";
export const POD_REVISION_LABEL = "controller-revision-hash";
export const POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name";
export const POD_INDEX_LABEL = "apps.kubernetes.io/pod-index";
export const SPECIFIED_DELETE_LABEL = "apps.kruise.io/specified-delete";
export const LIFECYCLE_STATE_LABEL = "lifecycle.apps.kruise.io/state";
export const LIFECYCLE_TIMESTAMP_ANNOTATION = "lifecycle.apps.kruise.io/timestamp";
/** on a claim that a set has enlarged: the set's name */
export const RESIZED_CLAIM_ANNOTATION = "apps.kruise.io/owned-by-asts";

/** "Always", or "Cascading": no deletion while there are replicas */
export const DELETE_PROTECTION_LABEL = "policy.kruise.io/delete-protection";
export const DEFAULT_STORAGE_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class";

// environment variables of containers
export const IS_INJECTED_ENV = "IS_INJECTED";
export const SIDECARSET_VERSION_ENV = "SIDECARSET_VERSION";
export const SIDECARSET_VERSION_ALT_ENV = "SIDECARSET_VERSION_ALT";
export const CONTAINER_PRIORITY_ENV = "KRUISE_CONTAINER_PRIORITY";
export const CONTAINER_BARRIER_ENV = "KRUISE_CONTAINER_BARRIER";
export const CONTAINER_LAUNCH_PRIORITY_ANNOTATION = "apps.kruise.io/container-launch-priority";
/** "true" when no barrier is left to open for this pod */
export const LAUNCH_COMPLETED_ANNOTATION = "apps.kruise.io/container-launch-priority-completed";
export const TERMINATE_SIDECAR_ENV = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
export const TERMINATE_SIDECAR_WITH_IMAGE_ENV = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
export const IGNORE_EXIT_CODE_ENV = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";

// conditions, reasons, events
export const SIDECAR_TERMINATOR_EVENT = "SidecarTerminator";
export const POD_READY_CONDITION = "KruisePodReady";
export const IN_PLACE_READY_CONDITION = "InPlaceUpdateReady";
export const UPGRADABLE_CONDITION = "SidecarSetUpgradable";
export const ALL_UPGRADABLE_REASON = "AllSidecarsetUpgradable";
export const IMMUTABLE_FIELD_REASON = "UpdateImmutableField";
export const NOT_UPGRADABLE_EVENT = "NotUpgradablePods";
export const RESET_CONTAINER_SUCCEED_EVENT = "ResetContainerSucceed";
export const RESET_CONTAINER_FAILED_EVENT = "ResetContainerFailed";
