/** Tests which lists a pass needs for a SidecarSet, and which it can leave out. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { WAVES_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { listRevisions, observeInTime, observePods } from "../../shared/controller/rollout/observe-pods.ts";
import { Reading } from "../../shared/controller/rollout/reading.ts";
import { openPodFeed } from "../../shared/controller/rollout/rollout.ts";
import { NOTHING_ELSE } from "../../shared/core/rollout/upgrade/project-pod.ts";
import { NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { callOf } from "../simulation/api-server.ts";
import { bareCluster } from "./bare-cluster.ts";
import { faultyCluster } from "./faults.ts";
import { injectedPod, KRUISE_NAMESPACE, startTestCluster, type TestCluster } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(() => test?.close());

it("a SidecarSet without a selector has no pods", async () => {
  const { view, scope, ...rest } = await observePods(test.cluster, { spec: {} });
  expect([Array.from(view.pods), rest]).toEqual([[], { namespaceLabels: new Map(), leftOut: new Map() }]);
  expect(scope.isSelected(injectedPod("any", "any-0"))).toBe(false);
});

it.each([
  [63, ["LIST controllerrevisions"]],
  [64, []],
])(
  "listRevisions lists revisions only when the SidecarSet's name fits into a label: a name with %i characters",
  async (length, calls) => {
    const counted = faultyCluster(test.cluster, "unavailable", () => false);
    expect(await listRevisions(counted, KRUISE_NAMESPACE, "n".repeat(length))).toEqual([]);
    expect(counted.calls).toEqual(calls);
  },
);

/** Returns namespaces "a", "b" and "other", each with one pod of SidecarSet "set" and one of another. */
function bare() {
  const stepped = steppedClock();
  const on = bareCluster(stepped);
  for (const name of ["b", "other", "a"]) {
    const labels: Readonly<Record<string, string>> = name === "other" ? {} : { team: "shop", tier: name };
    on.server.put("test", NAMESPACES, { metadata: { name, uid: name, labels } });
    for (const set of ["set", "else"]) {
      const pod = injectedPod(set, `${set}-${name}`);
      on.server.put("test", PODS, { ...pod, metadata: { ...pod.metadata, namespace: name, uid: `${set}-${name}` } });
    }
  }
  const namesIn = (view: { readonly pods: Iterable<Pod> }) =>
    Array.from(view.pods, ({ metadata }) => metadata?.name).toSorted();
  return { ...stepped, ...on, namesIn };
}

function setOf(spec: SidecarSet["spec"], annotations: Readonly<Record<string, string>> = {}): SidecarSet {
  return { metadata: { name: "set", annotations }, spec: { selector: { matchLabels: { app: "set" } }, ...spec } };
}

const OF_SHOP = { namespaceSelector: { matchLabels: { team: "shop" } } };

it("pods of selected namespaces are listed per namespace and watched in all namespaces", async () => {
  const { cluster, server, clock, calls, lists, watches, namesIn } = bare();
  const observed = await observePods(cluster, setOf(OF_SHOP));
  expect(namesIn(observed.view)).toEqual(["set-a", "set-b"]);
  expect(calls.map(([, call]) => call)).toEqual(["LIST namespaces", "LIST pods", "LIST pods"]);
  expect(lists.map(({ labelSelector }) => labelSelector)).toEqual(["team in (shop)", "app in (set)", "app in (set)"]);
  const feed = openPodFeed({ cluster, clock }, observed);
  await feed?.wait(0);
  expect(watches).toMatchObject([{ labelSelector: "app in (set)", resourceVersion: observed.resourceVersion }]);
  expect(watches[0]).not.toHaveProperty("namespace");
  const label = (namespace: string, labels: object) =>
    server.patch(
      callOf("test", PODS, { namespace, name: `set-${namespace}` }),
      { type: "merge", body: { metadata: { labels } } },
      "metadata",
    );
  await label("other", { seen: "1" });
  await feed?.wait(100);
  expect([feed?.applyToView(), namesIn(observed.view)]).toEqual([0, ["set-a", "set-b"]]);
  await label("a", { seen: "1" });
  await feed?.wait(100);
  expect([feed?.applyToView(), namesIn(observed.view)]).toEqual([1, ["set-a", "set-b"]]);
  await label("b", { app: "else" });
  await feed?.wait(100);
  expect([feed?.applyToView(), namesIn(observed.view)]).toEqual([1, ["set-a"]]);
  feed?.close();
});

it("pods are watched in one namespace when only that one is selected", async () => {
  const { cluster, clock, watches } = bare();
  const observed = await observePods(cluster, setOf({ namespaceSelector: { matchLabels: { tier: "a" } } }));
  openPodFeed({ cluster, clock }, observed)?.close();
  expect(watches).toMatchObject([{ namespace: "a", labelSelector: "app in (set)" }]);
});

it("an empty selector selects all pods, and nothing is watched when no namespace is selected", async () => {
  const { cluster, clock, namesIn } = bare();
  const all = await observePods(cluster, setOf({ selector: {} }));
  expect(namesIn(all.view)).toHaveLength(6);
  const none = await observePods(cluster, setOf({ namespaceSelector: { matchLabels: { team: "none" } } }));
  expect([namesIn(none.view), none.resourceVersion]).toEqual([[], undefined]);
  expect(openPodFeed({ cluster, clock }, none)).toBeUndefined();
});

it("observePods keeps the namespace labels that the waves select by, and no others", async () => {
  const { cluster } = bare();
  const waves = JSON.stringify([{ name: "first", namespaceSelector: { matchLabels: { tier: "a" } } }]);
  const { namespaceLabels } = await observePods(cluster, setOf({}, { [WAVES_ANNOTATION]: waves }));
  expect([...namespaceLabels]).toEqual([
    ["a", { tier: "a" }],
    ["b", { tier: "b" }],
    ["kruise-system", {}],
    ["other", {}],
    ["shop", {}],
  ]);
});

it("observePods fails and names the field when a selector is invalid", async () => {
  const { cluster } = bare();
  const matchExpressions = [{ key: "app", operator: "Near", values: [] }] as never;
  await expect(observePods(cluster, setOf({ selector: { matchExpressions } }))).rejects.toThrow(/^spec\.selector: /);
  const wrong = observePods(cluster, setOf({ namespaceSelector: { matchExpressions } }));
  await expect(wrong).rejects.toThrow(/^spec\.namespaceSelector: /);
});

describe("a slow list of pods:", () => {
  /** Runs a pass that ends `leftMs` after it has read for twenty seconds. */
  const read = (leftMs: number) => {
    const { cluster, clock, plan } = bare();
    plan(20_000, () => undefined);
    const slow: typeof cluster = {
      ...cluster,
      list: async (...call) => {
        if (call[0] === PODS) await clock.sleep(20_000);
        return await cluster.list(...call);
      },
    };
    const set = setOf({});
    return observeInTime({ cluster: slow, clock, endsAtMs: 20_000 + leftMs }, set, new Reading(set, NOTHING_ELSE));
  };

  it("a pass decides if it has a twentieth of the time left that it needed to read the pods", async () => {
    expect((await read(1_000)).resourceVersion).toBeDefined();
  });

  it("a pass leaves the decision to the next pass if it has less than a twentieth of the read time left", async () => {
    await expect(read(999)).rejects.toMatchObject({ message: expect.stringContaining("decide"), isOutcomeKnown: true });
  });
});
