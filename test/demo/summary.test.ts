import { describe, expect, it } from "vitest";
import { countPods, maxUnavailableSum, replay } from "../../infra/demo/summary.ts";
import type { RecordedWrite } from "../../infra/local/storage/store.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECTED_LIST_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { listedPod } from "../support/objects.ts";

const sidecarSet: SidecarSet = {
  metadata: { name: "logs", annotations: { [HASH_ANNOTATION]: "new" } },
  spec: { updateStrategy: { maxUnavailable: "50%" } },
};

interface Facts {
  readonly hash?: string;
  readonly ready?: boolean;
  readonly image?: string;
  readonly running?: string;
  readonly appRestarts?: number;
}

function pod(name: string, facts: Facts = {}): Pod {
  const { hash = "old", ready = true, image = "agent:1", running = image, appRestarts = 0 } = facts;
  return listedPod(
    {
      name,
      uid: name,
      annotations: { [INJECTED_LIST_ANNOTATION]: "logs", [HASH_ANNOTATION]: JSON.stringify({ logs: { hash } }) },
    },
    {
      containers: [
        { name: "app", image: "app:1" },
        { name: "agent", image, env: [{ name: "IS_INJECTED", value: "true" }] },
      ],
    },
    {
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
      containerStatuses: [
        { name: "app", image: "app:1", restartCount: appRestarts },
        { name: "agent", image: running, restartCount: 7 },
      ],
    },
  );
}

function history(...pods: readonly Pod[]): readonly RecordedWrite[] {
  return pods.map((object, index) => ({
    sequence: index + 1,
    time: "2026-11-21T00:00:00.000Z",
    verb: "patch",
    userAgent: "kubelet",
    group: "",
    resource: "pods",
    subresource: "",
    namespace: "default",
    name: object.metadata?.name ?? "",
    resourceVersion: String(index + 1),
    isRemoved: false,
    object: object as unknown as RecordedWrite["object"],
    previous: undefined,
  }));
}

describe("replay:", () => {
  it("replay counts two pods that were unready at the same time, also if both are ready again at the end", () => {
    const writes = history(
      pod("a"),
      pod("b"),
      pod("a", { ready: false }),
      pod("b", { ready: false }),
      pod("a"),
      pod("b"),
    );
    expect(replay(writes, 2, [sidecarSet])).toMatchObject({ maxUnavailable: 1, maxUnavailableObserved: 2 });
  });

  it("replay counts a pod as unavailable from the write of its new image, before its container restarts", () => {
    const writes = history(pod("a"), pod("a", { image: "agent:2", running: "agent:1" }));
    expect(replay(writes, 1, [sidecarSet]).maxUnavailableObserved).toBe(1);
  });

  it("replay ignores pods that were unready before the rollout", () => {
    const writes = history(pod("a", { ready: false }), pod("b", { ready: false }), pod("a"), pod("b"));
    expect(replay(writes, 4, [sidecarSet]).maxUnavailableObserved).toBe(0);
  });

  it("replay adds up the restarts of app containers without the restarts of sidecars", () => {
    const writes = history(pod("a"), pod("a", { appRestarts: 2 }), pod("b", { appRestarts: 1 }));
    expect(replay(writes, 0, [sidecarSet]).appContainerRestarts).toBe(3);
  });

  it("replay keeps the restarts of a deleted pod and does not count the pod as unavailable", () => {
    const [first, second] = history(
      pod("a", { ready: false, appRestarts: 1 }),
      pod("a", { ready: false, appRestarts: 1 }),
    );
    const writes = [first, { ...second, isRemoved: true }] as readonly RecordedWrite[];
    expect(replay(writes, 1, [sidecarSet])).toEqual({
      maxUnavailable: 0,
      maxUnavailableObserved: 0,
      appContainerRestarts: 1,
    });
  });
});

describe("countPods:", () => {
  it("countPods counts injected, updated, ready and unavailable pods", () => {
    const lone: Pod = listedPod({ name: "lone" });
    const pods = [lone, pod("a"), pod("b", { hash: "new" }), pod("c", { hash: "new", ready: false })];
    expect(countPods(pods, [sidecarSet])).toEqual({
      pods: 4,
      injected: 3,
      updated: 2,
      updatedReady: 1,
      ready: 2,
      unavailable: 1,
    });
    expect(maxUnavailableSum([sidecarSet], pods)).toBe(2);
  });
});
