/**
 * Tests people's writes to a SidecarSet while a pass works: the pass obeys annotations that steer, and ignores others.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  eventually,
  fastClock,
  injectedPod,
  isReady,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  release,
  sidecarSet,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

let test: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
});
afterAll(() => test?.close());

const pass = (through: Cluster, sidecarSet: string, more: object = {}) =>
  runPass(through, {
    kruiseNamespace: KRUISE_NAMESPACE,
    deadlineMs: 120_000,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: true,
    sidecarSet,
    clock: fastClock(20),
    ...more,
  });

const annotate = (name: string, annotations: Readonly<Record<string, string | null>>) =>
  cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });

const STATEFUL_SETS = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };

/** Creates pods of a StatefulSet, and a SidecarSet that is released to one pod at a time. */
async function ofStatefulSet(name: string, replicas: number): Promise<void> {
  await cluster.create<SidecarSet>(SIDECARSETS, sidecarSet(name, 1, { maxUnavailable: 1 }));
  const { metadata, spec } = injectedPod(name, name);
  const { labels, annotations } = metadata ?? {};
  const template = { metadata: { labels, annotations }, spec };
  const matchLabels = { app: name };
  const set = { replicas, serviceName: name, podManagementPolicy: "Parallel", selector: { matchLabels }, template };
  await cluster.create(STATEFUL_SETS, { metadata: { namespace: NAMESPACE, name }, spec: set } as KubernetesObject);
  await eventually(async () => expect((await readPods(cluster, name)).filter(isReady)).toHaveLength(replicas));
  await release(cluster, name, 2, { maxUnavailable: 1 });
}

/** Returns the pods of a set in the order in which they got their image. */
const upgradedPods = (set: string) => {
  const writes = test.history().filter(({ resource, subresource, verb }) => {
    return resource === "pods" && subresource === "" && verb === "patch";
  });
  return writes.flatMap(({ name, object }) => (object.metadata.labels?.["app"] === set ? [name] : []));
};

describe("an annotation that steers:", () => {
  it("the annotation follow-ordinals orders the remaining upgrades when it is added during a pass", async () => {
    await ofStatefulSet("db", 6);
    const [first] = await Promise.all([pass(cluster, "db"), annotateOnceBegun("db")]);
    expect(first.sidecarSets).toMatchObject([{ stop: "settled" }]);
    const order = upgradedPods("db").map((name) => Number(name.split("-")[1]));
    expect(order).toHaveLength(6);
    const rest = order.slice(2);
    expect(rest).toEqual(rest.toSorted((a, b) => b - a));
  });

  async function annotateOnceBegun(name: string): Promise<void> {
    await eventually(() => expect(upgradedPods(name)).not.toHaveLength(0));
    await annotate(name, { "sidecarset.kruise.io/follow-ordinals": "true" });
  }
});

describe("a write that does not steer:", () => {
  /** Returns a cluster where another client writes whenever pods are listed. */
  function busy(name: string): Cluster {
    let writes = 0;
    return {
      ...cluster,
      async list(resource, options) {
        const page = await cluster.list(resource, options);
        if (resource.plural === "pods") await annotate(name, { "example.com/note": String(++writes) });
        return page as never;
      },
    };
  }

  it("an unrelated annotation during a slow list does not make the round start again", async () => {
    await ofStatefulSet("noted", 1);
    const { sidecarSets } = await pass(busy("noted"), "noted", { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false });
    expect(sidecarSets).toMatchObject([{ stop: "oneRound", tally: { restarts: 0, upgraded: 1 } }]);
    expect(versionsOf(await readPods(cluster, "noted"))).toEqual(["2"]);
    const { status, metadata } = await readSet(cluster, "noted");
    expect(status?.observedGeneration).toBe(metadata?.generation);
  });

  it("newer counts that another pass wrote during a slow list make the round start again", async () => {
    await ofStatefulSet("counted", 1);
    let isWritten = false;
    const overtaken: Cluster = {
      ...cluster,
      async list(resource, options) {
        const page = await cluster.list(resource, options);
        if (resource.plural === "pods" && !isWritten) {
          isWritten = true;
          const body = { status: { matchedPods: 7, updatedPods: 7, readyPods: 7 } };
          await cluster.patch(SIDECARSETS, { name: "counted" }, { type: "merge", body }, { subresource: "status" });
        }
        return page as never;
      },
    };
    const { sidecarSets } = await pass(overtaken, "counted", { settings: DEFAULT_ROLLOUT_SETTINGS, follow: false });
    expect(sidecarSets).toMatchObject([{ tally: { restarts: 1 }, status: { matchedPods: 1 } }]);
  });
});
