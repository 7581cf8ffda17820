/** Generates rollouts in progress: some version of a SidecarSet really injected and upgraded the pods. */
import fc from "fast-check";
import type { IntOrString, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../shared/api/sidecarset.ts";
import { planUpgrade } from "../../shared/core/rollout/upgrade/plan-upgrade.ts";
import { projectPod } from "../../shared/core/rollout/upgrade/project-pod.ts";
import { admitted } from "./admission.ts";
import { defaulted } from "./arbitraries.ts";

const NOW = "2026-01-02T03:04:05Z";

/** Facts about a pod that are enough to apply the rules. */
export interface Facts {
  /** version of the pod; `other` differs in more than the image */
  readonly version: "old" | "new" | "other";
  /** false: the kubelet has not seen the pod's last upgrade */
  readonly isSettled: boolean;
  /** true if a hot upgrade is complete except for the slot that must be emptied */
  readonly isFlipDue: boolean;
  readonly isReady: boolean;
  /** true if the update selector selects the pod */
  readonly isSelected: boolean;
  /** true if the pod's annotation cannot be merged with the SidecarSet's patch */
  readonly isBroken: boolean;
  readonly isReserved: boolean;
  readonly zone: string;
  readonly restarts: number;
}

export interface Rollout {
  readonly sidecarSet: SidecarSet;
  readonly facts: readonly Facts[];
  /** the pods of `facts` in the same order, each with another creation time */
  readonly pods: readonly Pod[];
  readonly reserved: ReadonlySet<string>;
}

type Upgrade = "ColdUpgrade" | "HotUpgrade";

/** Returns a version of a SidecarSet that annotates every pod it touches. */
function version(image: string, upgradeType: Upgrade, env: readonly object[] = []): SidecarSet {
  return defaulted({
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: "agent", uid: "uid-agent", resourceVersion: "100", generation: 3 },
    spec: {
      selector: { matchLabels: { app: "web" } },
      containers: [
        { name: "agent", image, env, upgradeStrategy: { upgradeType, hotUpgradeEmptyImage: "reg/empty:1" } },
        { name: "second", image: "reg/second:1" },
      ],
      patchPodMetadata: [{ annotations: { merged: '{"agent":1}' }, patchPolicy: "MergePatchJson" }],
    },
  });
}

const VERSIONS = Object.fromEntries(
  (["ColdUpgrade", "HotUpgrade"] as const).map((upgrade) => [
    upgrade,
    {
      older: version("reg/agent:0", upgrade),
      old: version("reg/agent:1", upgrade),
      new: version("reg/agent:2", upgrade),
      other: version("reg/agent:1", upgrade, [{ name: "A", value: "1" }]),
    },
  ]),
) as Record<Upgrade, Readonly<Record<"older" | "old" | "new" | "other", SidecarSet>>>;

const injections = new Map<SidecarSet, Pod>();

/** Injects once for each version; later changes make the pods different. */
function injected(sidecarSet: SidecarSet): Pod {
  const known = injections.get(sidecarSet);
  if (known !== undefined) return known;
  const pod = { metadata: { labels: { app: "web" } }, spec: { nodeName: "n", containers: [{ name: "main" }] } };
  const after = admitted({ pod, sidecarSets: [sidecarSet], revisions: [] });
  if (after === undefined) throw new Error("the pod is refused");
  injections.set(sidecarSet, after);
  return after;
}

/** Returns the upgraded pod as the API server stores it. */
function upgraded(pod: Pod, sidecarSet: SidecarSet): Pod {
  const plan = planUpgrade(projectPod(pod, sidecarSet), sidecarSet, { now: NOW, latestRevision: "agent-1" });
  if (plan.kind === "refused") throw new Error(plan.message);
  const images = new Map(plan.images.map(({ index, to }) => [index, to]));
  const containers = pod.spec.containers.map((container, index) => ({
    ...container,
    image: images.get(index) ?? container.image ?? "",
  }));
  const annotations = { ...pod.metadata?.annotations, ...plan.annotations };
  return { ...pod, metadata: { ...pod.metadata, annotations }, spec: { ...pod.spec, containers } };
}

function statusOf({ spec }: Pod, isReady: boolean, restartCount: number): NonNullable<Pod["status"]> {
  return {
    phase: "Running",
    conditions: [{ type: "Ready", status: isReady ? "True" : "False", lastTransitionTime: "2025-01-01T00:00:00Z" }],
    containerStatuses: spec.containers.map(({ name, image = "" }) => ({
      name,
      image,
      imageID: `cri://${image}@id`,
      ready: isReady,
      restartCount,
    })),
  };
}

function podOf(facts: Facts, upgrade: Upgrade, index: number): Pod {
  const versions = VERSIONS[upgrade];
  const current = versions[facts.version];
  const before = injected(facts.version === "new" ? versions.old : versions.older);
  const settled = injected(current);
  // The pod was upgraded just now: the status still shows the old containers.
  const inFlight = () => ({
    ...upgraded({ ...before, status: statusOf(before, facts.isReady, facts.restarts) }, current),
    status: statusOf(before, facts.isReady, facts.restarts),
  });
  const justUpgraded = () => ({ ...inFlight(), status: statusOf(inFlight(), true, 0) });
  const running = facts.isSettled || facts.version === "other" ? settled : inFlight();
  const pod = facts.isFlipDue ? justUpgraded() : running;
  const name = `web-${index}`;
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      namespace: "shop",
      name,
      uid: `uid-${name}`,
      resourceVersion: "7",
      creationTimestamp: `2025-01-01T00:00:${String(index).padStart(2, "0")}Z`,
      labels: { app: "web", zone: facts.zone, canary: String(facts.isSelected) },
      annotations: { ...pod.metadata?.annotations, ...(facts.isBroken ? { merged: "no JSON" } : {}) },
    },
    status: pod.status ?? statusOf(pod, facts.isReady, facts.restarts),
  };
}

const SELECTOR = { matchLabels: { canary: "true" } };

const anyLimit = fc.oneof(
  fc.nat(12),
  fc.nat(120).map((percent) => `${percent}%`),
  fc.constantFrom<IntOrString>(100, "100%", "99%", "33.4%", "x"),
);

const strategies = fc
  .record({
    partition: fc.oneof(fc.constant<IntOrString>(0), anyLimit),
    maxUnavailable: anyLimit,
    isSelective: fc.boolean(),
    priorityStrategy: fc.constantFrom(
      undefined,
      { weightPriority: [{ weight: 5, matchSelector: { matchLabels: { zone: "b" } } }] },
      { orderPriority: [{ orderedKey: "zone" }] },
    ),
    scatterStrategy: fc.constantFrom(undefined, [{ key: "zone", value: "a" }]),
  })
  .map(
    ({ isSelective, priorityStrategy, scatterStrategy, ...limits }): UpdateStrategy => ({
      type: "RollingUpdate",
      ...limits,
      ...(isSelective ? { selector: SELECTOR } : {}),
      ...(priorityStrategy ? { priorityStrategy } : {}),
      ...(scatterStrategy ? { scatterStrategy } : {}),
    }),
  );

const often = fc.nat(9).map((draw) => draw < 8);
const rarely = often.map((isOften) => !isOften);

const anyFacts: fc.Arbitrary<Facts> = fc.record({
  version: fc.constantFrom("old", "old", "old", "new", "other"),
  isSettled: often,
  isFlipDue: fc.constant(false),
  isReady: often,
  isSelected: fc.boolean(),
  isBroken: rarely,
  isReserved: rarely,
  zone: fc.constantFrom("a", "b", "c10", "c9"),
  restarts: fc.nat(1),
});

/** Returns the pods of hot upgrades, one of them with an old slot that can be emptied. */
function withFlip(all: readonly Facts[], upgrade: Upgrade, isFlipping: boolean): readonly Facts[] {
  const [first, ...others] = all;
  if (first === undefined || upgrade === "ColdUpgrade" || !isFlipping) return all;
  return [{ ...first, version: "new", isSettled: true, isReady: true, isFlipDue: true }, ...others];
}

/** Returns the pods as an API server lists them, and as a pass stores them. */
function rolloutOf(upgrade: Upgrade, updateStrategy: UpdateStrategy, facts: readonly Facts[]): Rollout {
  const current = VERSIONS[upgrade].new;
  const sidecarSet = { ...current, spec: { ...current.spec, updateStrategy } };
  const pods = facts.map((each, index) => projectPod(podOf(each, upgrade, index), sidecarSet));
  const reserved = pods.filter((_, index) => facts[index]?.isReserved).map(({ metadata }) => metadata?.uid ?? "");
  return { sidecarSet, facts, pods, reserved: new Set(reserved) };
}

export const rollouts: fc.Arbitrary<Rollout> = fc
  .record({
    upgrade: fc.constantFrom<Upgrade>("ColdUpgrade", "HotUpgrade"),
    strategy: strategies,
    all: fc.array(anyFacts, { maxLength: 20, size: "max" }),
    isFlipping: rarely,
  })
  .map(({ upgrade, strategy, all, isFlipping }) => rolloutOf(upgrade, strategy, withFlip(all, upgrade, isFlipping)));
