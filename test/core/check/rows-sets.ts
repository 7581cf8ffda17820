/** Installations with a fault in SidecarSets or pods. */
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { podOf, takenDown } from "../../support/rollout-fixture.ts";
import { LABELS, managed, type Row, SET, seen, setOf, updatedPod, withSets } from "./fixture.ts";
import { IN_FILES } from "./rows-registration.ts";

const FIRST_DAY = "2025-05-01T00:00:00Z";

const bare = (created: string) => ({
  metadata: { name: "bare", uid: "uid-bare", labels: LABELS, creationTimestamp: created },
  spec: { containers: [{ name: "main", image: "m" }] },
});
const failing = takenDown(
  updatedPod(SET, {
    isReady: false,
    statuses: [{ name: "sc", ready: false, state: { waiting: { reason: "ImagePullBackOff" } } }],
  }),
);
const old = (name: string) =>
  podOf({ name, labels: LABELS, hash: "older", withoutImage: hashWithoutImage(), creationTimestamp: FIRST_DAY });
const hashWithoutImage = () => SET.metadata?.annotations?.["kruise.io/sidecarset-hash-without-image"] ?? "";

const revisionsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => {
    const image = `reg/sc:${index}`;
    const one = setOf("ss", { containers: [{ name: "sc", image }] });
    return newRevision(one, { revision: index + 1, collisionCount: 0, namespace: "kruise-system" });
  });

const annotated = (annotations: Readonly<Record<string, string>>): SidecarSet => ({
  ...SET,
  metadata: { ...SET.metadata, annotations: { ...SET.metadata?.annotations, ...annotations } },
});
/** Returns a SidecarSet whose gate refused the last pass. */
function refused(message: string): SidecarSet {
  return blockedBy("GateDown", message, { "sidecarset.kruise.io/gate": "https://gate.example/batch" });
}

/** Returns a SidecarSet whose last pass was blocked. */
function blockedBy(reason: string, message: string, annotations: Readonly<Record<string, string>>): SidecarSet {
  const at = { lastTransitionTime: "2025-05-31T00:00:00Z" };
  const conditions = [{ type: "Blocked", status: "True", reason, message, ...at }];
  const set = annotated(annotations);
  return { ...set, status: { ...set.status, conditions } } as SidecarSet;
}

export const SETS: readonly Row[] = [
  [
    "HashMissing",
    "a SidecarSet has no hash annotations",
    withSets([{ ...SET, metadata: { name: "ss" } }]),
    /without its hashes/,
  ],
  [
    "HashWrong",
    "the hash of a SidecarSet belongs to other containers",
    withSets([{ ...SET, spec: { ...SET.spec, containers: [{ name: "sc", image: "other" }] } }]),
    /not that of its containers/,
  ],
  [
    "SidecarSetsConflict",
    "two SidecarSets have the same container",
    withSets([SET, setOf("too")]),
    /container sc already exist in/,
  ],
  [
    "SelectsNothing",
    "a SidecarSet has no selector",
    withSets([{ ...SET, spec: { ...SET.spec, selector: {} } }]),
    /meant for no pod/,
  ],
  [
    "PrivilegesShared",
    "a privileged sidecar shares the volumes of the pods",
    withSets([
      setOf("ss", {
        containers: [
          {
            name: "sc",
            image: "reg/sc:v1",
            shareVolumePolicy: { type: "enabled" },
            securityContext: { privileged: true },
          } as never,
        ],
      }),
    ]),
    /more privileges than others \(sc\)/,
  ],
  [
    "ContainerNameTaken",
    "a pod has a container of the same name",
    withSets([SET], [{ ...bare(FIRST_DAY), spec: { containers: [{ name: "sc", image: "m" }] } }]),
    /1 pod has a container of its own .+: /,
  ],
  ["MatchesNoPods", "a SidecarSet matches no pod", withSets([SET]), /matches no pod/],
  [
    "BudgetZero",
    "maxUnavailable is 0",
    withSets([setOf("ss", { updateStrategy: { maxUnavailable: 0 } })]),
    /no pod to be down/,
  ],
  [
    "AllAtOnce",
    "maxUnavailable is 100%",
    withSets([setOf("ss", { updateStrategy: { maxUnavailable: "100%" } })]),
    /all pods down at once/,
  ],
  [
    "PausedLong",
    "a rollout has been paused for a month",
    withSets([
      setOf("ss", { updateStrategy: { paused: true } }, managed(FIRST_DAY, "spec", "updateStrategy", "paused")),
    ]),
    /rollout is paused since 2025-05-01/,
  ],
  [
    "PausedLong",
    "injection has been paused for a month",
    withSets([
      setOf("ss", { injectionStrategy: { paused: true } }, managed(FIRST_DAY, "spec", "injectionStrategy", "paused")),
    ]),
    /injection is paused since 2025-05-01/,
  ],
  [
    "RevisionsBeyondLimit",
    "there are 3 revisions and the limit is 1",
    { ...withSets([setOf("ss", { revisionHistoryLimit: 1 })]), revisions: seen(revisionsOf(3)) },
    /3 revisions, its revisionHistoryLimit is 1/,
  ],
  [
    "RevisionMissing",
    "a SidecarSet names a revision that does not exist",
    withSets([setOf("ss", { injectionStrategy: { revision: { revisionName: "gone" } } })]),
    /names gone/,
  ],
  [
    "InjectionMissed",
    "a pod without sidecars was created after the SidecarSet",
    withSets([SET], [bare("2025-05-20T00:00:00Z")]),
    /1 pod was made after it.*default\/bare/,
  ],
  [
    "InjectionMissed",
    "a pod lacks its sidecars where files of API servers register the webhook",
    { ...withSets([SET], [bare("2025-05-20T00:00:00Z")]), mutating: IN_FILES },
    /1 pod was made after it.*default\/bare/,
  ],
  [
    "ContainersMissing",
    "a pod was injected before a container was added",
    withSets(
      [
        setOf("ss", {
          containers: [
            { name: "sc", image: "reg/sc:v2" },
            { name: "two", image: "two" },
          ],
        }),
      ],
      [updatedPod()],
    ),
    /1 pod was injected before/,
  ],
  [
    "PodsNotUpgradable",
    "a pod cannot be updated in place",
    withSets([SET], [podOf({ labels: LABELS, withoutImage: "other", creationTimestamp: FIRST_DAY })]),
    /1 pod cannot be updated in place/,
  ],
  [
    "PodsRefused",
    "the annotation of a pod cannot be merged",
    withSets(
      [setOf("ss", { patchPodMetadata: [{ annotations: { note: "{" }, patchPolicy: "MergePatchJson" }] })],
      [
        {
          ...old("p"),
          metadata: { ...old("p").metadata, annotations: { ...old("p").metadata?.annotations, note: "{}" } },
        },
      ],
    ),
    /1 pod is left alone/,
  ],
  ["RolloutBlocked", "an image cannot be pulled", withSets([SET], [failing, old("p2")]), /ImagePullBackOff/],
  [
    "PodsFail",
    "the only pod fails, and is updated",
    withSets([SET], [failing]),
    /1 pod with the newest .+ImagePullBackOff/,
  ],
  [
    "RolloutBlocked",
    "more pods fail than halt-on allows",
    withSets([annotated({ "sidecarset.kruise.io/halt-on": "0" })], [failing, old("p2")]),
    /is blocked \(RolloutHalted\): 1 of 1 updated pods fail/,
  ],
  [
    "RolloutBlocked",
    "a budget annotation is a word",
    withSets([annotated({ "sidecarset.kruise.io/max-unavailable-per-owner": "some" })]),
    /is blocked \(AnnotationUnreadable\): .+per-owner says some/,
  ],
  [
    "AnnotationIgnored",
    "undo-on-halt is a word",
    withSets([annotated({ "sidecarset.kruise.io/undo-on-halt": "perhaps" })]),
    /undo-on-halt says perhaps/,
  ],
  [
    "RolloutBlocked",
    "the host of a gate is not allowed",
    withSets([refused("the gate at gate.example may not be asked: GATE_HOSTS names no host")]),
    /is blocked since 2025-05-31T00:00:00Z \(GateUnanswered\): the gate at gate.example may not be asked/,
  ],
  [
    "RolloutBlocked",
    "the waves annotation is not a list",
    withSets([annotated({ "sidecarset.kruise.io/waves": "dev, production" })]),
    /waves is no list in JSON/,
  ],
  [
    "RolloutBlocked",
    "there are checks but no server for metrics",
    withSets([
      blockedBy(
        "Metrics",
        "the check errors says nothing: no server may be asked, since PROMETHEUS_SERVER names none; no batch begins until it passes",
        { "sidecarset.kruise.io/metrics": '[{"name":"errors","query":"up","max":1}]' },
      ),
    ]),
    /is blocked since 2025-05-31T00:00:00Z \(ChecksFirst\): the check errors says nothing: no server may be asked/,
  ],
  [
    "FieldsTooNew",
    "a SidecarSet has a field that its API server, of 1.32, drops",
    withSets([
      setOf("ss", { containers: [{ name: "sc", image: "i:1", lifecycle: { stopSignal: "SIGUSR1" } }] } as object),
    ]),
    /spec\.containers\[0\]\.lifecycle\.stopSignal: Kubernetes 1\.32 drops it/,
  ],
  [
    "NodesLackFeature",
    "a sidecar restarts all containers, which one of two nodes does not declare",
    {
      ...withSets([
        setOf("ss", {
          containers: [{ name: "sc", image: "i:1", restartPolicyRules: [{ action: "RestartAllContainers" }] }],
        } as object),
      ]),
      declaredFeatures: seen(
        new Map([
          ["new", ["RestartAllContainersOnContainerExits"]],
          ["old", ["UserNamespacesHostNetworkSupport"]],
        ]),
      ),
    },
    /do not declare RestartAllContainersOnContainerExits: old$/,
  ],
  [
    "WaveWithoutNamespaces",
    "no namespace has the label of a wave",
    withSets([
      annotated({
        "sidecarset.kruise.io/waves": JSON.stringify([
          { name: "dev", namespaceSelector: { matchLabels: { stage: "dev" } } },
          { name: "all", namespaceSelector: {} },
        ]),
      }),
    ]),
    /no namespace belongs to the wave dev: none has the labels/,
  ],
  [
    "OptionalRoleMissing",
    "no account may undo a release",
    {
      ...withSets([annotated({ "sidecarset.kruise.io/undo-on-halt": "true" })]),
      rights: seen([{ account: "a", what: "patch sidecarsets", role: "undo", isAllowed: false }]),
    },
    /1 SidecarSet is to be put back when its rollout is stopped.*patch sidecarsets/,
  ],
];
