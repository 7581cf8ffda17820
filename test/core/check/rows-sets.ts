/** Installations whose SidecarSets or pods have something wrong with them. */
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/new-revision.ts";
import { podOf, takenDown } from "../../support/rollout-fixture.ts";
import { LABELS, managed, type Row, SET, seen, setOf, updatedPod, withSets } from "./fixture.ts";

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
/** Its gate was asked by the last pass. */
function refused(message: string): SidecarSet {
  return blockedBy("Gate", message, { "sidecarset.kruise.io/gate": "https://gate.example/batch" });
}

/** Its last pass was kept from going on. */
function blockedBy(reason: string, message: string, annotations: Readonly<Record<string, string>>): SidecarSet {
  const at = { lastTransitionTime: "2025-05-31T00:00:00Z" };
  const conditions = [{ type: "Blocked", status: "True", reason, message, ...at }];
  const set = annotated(annotations);
  return { ...set, status: { ...set.status, conditions } } as SidecarSet;
}

export const SETS: readonly Row[] = [
  ["HashMissing", "no annotation", withSets([{ ...SET, metadata: { name: "ss" } }]), /without its hashes/],
  [
    "HashWrong",
    "of other containers",
    withSets([{ ...SET, spec: { ...SET.spec, containers: [{ name: "sc", image: "other" }] } }]),
    /not that of its containers/,
  ],
  ["SidecarSetsConflict", "the same container", withSets([SET, setOf("too")]), /container sc already exist in/],
  ["SelectsNothing", "no selector", withSets([{ ...SET, spec: { ...SET.spec, selector: {} } }]), /meant for no pod/],
  [
    "PrivilegesShared",
    "a privileged sidecar with the pods' volumes",
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
    "a container of the pod's own",
    withSets([SET], [{ ...bare(FIRST_DAY), spec: { containers: [{ name: "sc", image: "m" }] } }]),
    /1 pod has a container of its own .+: /,
  ],
  ["MatchesNoPods", "no pod", withSets([SET]), /matches no pod/],
  ["BudgetZero", "0", withSets([setOf("ss", { updateStrategy: { maxUnavailable: 0 } })]), /no pod to be down/],
  [
    "AllAtOnce",
    "100%",
    withSets([setOf("ss", { updateStrategy: { maxUnavailable: "100%" } })]),
    /all pods down at once/,
  ],
  [
    "PausedLong",
    "its rollout",
    withSets([
      setOf("ss", { updateStrategy: { paused: true } }, managed(FIRST_DAY, "spec", "updateStrategy", "paused")),
    ]),
    /rollout is paused since 2025-05-01/,
  ],
  [
    "PausedLong",
    "its injection",
    withSets([
      setOf("ss", { injectionStrategy: { paused: true } }, managed(FIRST_DAY, "spec", "injectionStrategy", "paused")),
    ]),
    /injection is paused since 2025-05-01/,
  ],
  [
    "RevisionsBeyondLimit",
    "3 of 1",
    { ...withSets([setOf("ss", { revisionHistoryLimit: 1 })]), revisions: seen(revisionsOf(3)) },
    /3 revisions, its revisionHistoryLimit is 1/,
  ],
  [
    "RevisionMissing",
    "a name that is not there",
    withSets([setOf("ss", { injectionStrategy: { revision: { revisionName: "gone" } } })]),
    /names gone/,
  ],
  [
    "InjectionMissed",
    "made after it",
    withSets([SET], [bare("2025-05-20T00:00:00Z")]),
    /1 pod was made after it.*default\/bare/,
  ],
  [
    "ContainersMissing",
    "of a former version",
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
    "more than images",
    withSets([SET], [podOf({ labels: LABELS, withoutImage: "other", creationTimestamp: FIRST_DAY })]),
    /1 pod cannot be updated in place/,
  ],
  [
    "PodsRefused",
    "a pod whose annotation cannot be merged with",
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
  ["RolloutBlocked", "an image that nobody can pull", withSets([SET], [failing, old("p2")]), /ImagePullBackOff/],
  [
    "RolloutHalted",
    "more fail than may",
    withSets([annotated({ "sidecarset.kruise.io/halt-on": "0" })], [failing, old("p2")]),
    /was stopped: 1 of 1 updated pods fail/,
  ],
  [
    "AnnotationUnreadable",
    "a budget in words",
    withSets([annotated({ "sidecarset.kruise.io/max-unavailable-per-owner": "some" })]),
    /per-owner says some/,
  ],
  [
    "GateNotAsked",
    "a gate that nobody allowed",
    withSets([refused("the gate at gate.example may not be asked: GATE_HOSTS names no host")]),
    /gives no answer since 2025-05-31T00:00:00Z: the gate at gate.example may not be asked/,
  ],
  [
    "AnnotationUnreadable",
    "waves that are no list",
    withSets([annotated({ "sidecarset.kruise.io/waves": "dev, production" })]),
    /waves is no list in JSON/,
  ],
  [
    "MetricsSayNothing",
    "checks without a server that could be asked",
    withSets([
      blockedBy(
        "Metrics",
        "the check errors says nothing: no server may be asked, since PROMETHEUS_SERVER names none; no batch begins until it passes",
        { "sidecarset.kruise.io/metrics": '[{"name":"errors","query":"up","max":1}]' },
      ),
    ]),
    /waits for metrics since 2025-05-31T00:00:00Z: the check errors says nothing: no server may be asked/,
  ],
  [
    "WaveWithoutNamespaces",
    "a wave by a label that no namespace has",
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
    "releases that nobody may take back",
    {
      ...withSets([annotated({ "sidecarset.kruise.io/undo-on-halt": "true" })]),
      rights: seen([{ account: "a", what: "patch sidecarsets", role: "undo", isAllowed: false }]),
    },
    /1 SidecarSet is to be put back when its rollout is stopped.*patch sidecarsets/,
  ],
];
