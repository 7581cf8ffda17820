/** Runs several small rollouts at once, each in its own namespace, and reads their histories from etcd. */
import { expect } from "vitest";
import { replay } from "../../../infra/demo/summary.ts";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { FENCE_ANNOTATION, HASH_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { parseUpgradeRecords } from "../../../shared/core/pod/pod-records.ts";
import { PODS } from "../../../shared/kube/port.ts";
import { controlPlane } from "./access.ts";
import { podVersions, type StoredVersion } from "./etcd-history.ts";
import type { Functions } from "./functions.ts";
import { isReady, Scene, setImage } from "./scene.ts";

const PODS_EACH = 8;
const MAX_UNAVAILABLE = 2;
const PARTITION = 2;
/** Number of updated pods of each rollout. */
export const UPDATED = PODS_EACH - PARTITION;

/** The time limit of a disturbed rollout, which does not measure speed. */
const PATIENCE = { timeout: 150_000, interval: 200 };

export interface Rolled {
  readonly namespace: string;
  /** number of states of pods that were checked */
  readonly states: number;
  /** number of the states that the reconciler wrote */
  readonly podWrites: number;
  /** number of fences among these writes: for pods whose patch got no clear answer */
  readonly fences: number;
  /** the most pods that were unavailable at once */
  readonly unavailable: number;
  readonly updated: number;
  readonly appContainerRestarts: number;
}

interface Around {
  readonly ready: () => Promise<void>;
  /** Called when all SidecarSets have their new image. */
  readonly begun: () => void;
}

export interface Fleet {
  readonly scenes: readonly Scene[];
  /**
   * Gives all SidecarSets a new image after `ready` resolves. Resolves when each rollout ends where its strategy says.
   */
  roll(around?: Around): Promise<readonly Rolled[]>;
  close(): Promise<void>;
}

interface Base {
  readonly scene: Scene;
  readonly pods: readonly Pod[];
  /** the resourceVersion at the start */
  readonly since: number;
}

/** Returns why the wanted state is not reached; "" if it is. */
async function missing(scene: Scene): Promise<string> {
  try {
    const { metadata, status } = await scene.set();
    const updated = (await scene.updated()).filter(isReady).length;
    const seen = { ...status, isObserved: status?.observedGeneration === metadata?.generation, updated };
    const counts = { matchedPods: PODS_EACH, readyPods: PODS_EACH, updatedPods: UPDATED, updatedReadyPods: UPDATED };
    const wanted = Object.entries({ ...counts, isObserved: true, updated: UPDATED });
    const wrong = wanted.filter(([key, value]) => seen[key as keyof typeof seen] !== value);
    return wrong.map(([key]) => `${key} ${seen[key as keyof typeof seen]}`).join(", ");
  } catch (error) {
    return String(error);
  }
}

/** Returns the part of a pod that only passes may change, and no kubelet. */
function ownPart({ metadata, spec }: Pod): string {
  return JSON.stringify([metadata?.annotations, spec.containers.map(({ image }) => image)]);
}

/** Counts the versions in which `part` of a pod differs from the version before. */
function countChanges(before: readonly Pod[], versions: readonly StoredVersion[], part: (pod: Pod) => unknown): number {
  const last = new Map(before.map((pod) => [pod.metadata?.uid, part(pod)]));
  const isChange = ({ object }: StoredVersion) => {
    const pod = object as unknown as Pod;
    const isChanged = last.get(pod.metadata?.uid) !== part(pod);
    last.set(pod.metadata?.uid, part(pod));
    return isChanged;
  };
  return versions.filter(isChange).length;
}

const fenceOf = ({ metadata }: Pod) => metadata?.annotations?.[FENCE_ANNOTATION];

function mostUpdated({ metadata }: SidecarSet, versions: readonly StoredVersion[]): number {
  const wanted = metadata?.annotations?.[HASH_ANNOTATION];
  const updated = new Set<string>();
  let most = 0;
  for (const { object } of versions) {
    const { records } = parseUpgradeRecords(object.metadata.annotations?.[HASH_ANNOTATION]);
    if (records[metadata?.name ?? ""]?.hash === wanted) updated.add(object.metadata.uid ?? "");
    else updated.delete(object.metadata.uid ?? "");
    most = Math.max(most, updated.size);
  }
  return most;
}

/**
 * Checks that every rollout ended as planned. At no time were more pods unavailable or updated than allowed. Each pod
 * was written to once, except for fences.
 */
export function expectHeld(rolled: readonly Rolled[]): void {
  expect(rolled).not.toEqual([]);
  for (const { states, podWrites, fences, unavailable, updated, appContainerRestarts } of rolled) {
    expect(states).toBeGreaterThan(UPDATED);
    expect({ podWrites: podWrites - fences, updated, appContainerRestarts }).toEqual({
      podWrites: UPDATED,
      updated: UPDATED,
      appContainerRestarts: 0,
    });
    expect(unavailable).toBeGreaterThan(0);
    expect(unavailable).toBeLessThanOrEqual(MAX_UNAVAILABLE);
  }
}

async function baseOf(scene: Scene): Promise<Base> {
  const { items, metadata } = await scene.cluster.list<Pod>(PODS, { namespace: scene.name });
  return { scene, pods: items, since: Number(metadata.resourceVersion) };
}

async function judge({ scene, pods, since }: Base): Promise<Rolled> {
  const until = Math.max(...(await scene.pods()).map(({ metadata }) => Number(metadata?.resourceVersion)));
  const { etcdUrl } = controlPlane();
  const versions = await podVersions(etcdUrl, { namespace: scene.name, after: since, until });
  const before = pods.map((object) => ({
    ...{ sequence: Number(object.metadata?.resourceVersion), group: "", resource: "pods", isRemoved: false },
    object: object as unknown as StoredVersion["object"],
  }));
  const set = await scene.set();
  const { maxUnavailableObserved, appContainerRestarts } = replay([...before, ...versions], since, [set]);
  return {
    namespace: scene.name,
    states: versions.length,
    podWrites: countChanges(pods, versions, ownPart),
    fences: countChanges(pods, versions, fenceOf),
    unavailable: maxUnavailableObserved,
    updated: mostUpdated(set, versions),
    appContainerRestarts,
  };
}

/** Resolves when the pods of all rollouts run. */
export async function openFleet(functions: Functions, size: number): Promise<Fleet> {
  const scenes = Array.from({ length: size }, () => new Scene(functions));
  let version = 1;
  await Promise.all(
    scenes.map(async (scene) => {
      await scene.open({
        updateStrategy: { type: "RollingUpdate", maxUnavailable: MAX_UNAVAILABLE, partition: PARTITION },
      });
      await scene.deploy(PODS_EACH);
    }),
  );
  return {
    scenes,
    roll: async (around) => {
      version += 1;
      const bases = await Promise.all(scenes.map(baseOf));
      await around?.ready();
      await Promise.all(scenes.map((scene) => scene.patchSet(setImage(`agent:v${version}`))));
      around?.begun();
      await expect
        .poll(async () => (await Promise.all(scenes.map(missing))).filter((text) => text !== ""), PATIENCE)
        .toEqual([]);
      return Promise.all(bases.map(judge));
    },
    close: async () => void (await Promise.all(scenes.map((scene) => scene.close()))),
  };
}
