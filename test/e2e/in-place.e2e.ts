/**
 * Tests on a real control plane that an ordered set updates pods in place where its template allows that, and recreates
 * them otherwise.
 */
import { expect, it, onTestFinished } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { addFigure } from "./support/figures.ts";
import { orderedSets } from "./support/ordered-sets.ts";
import { recordPods } from "./support/pod-history.ts";
import { atMost, imageOf, isReady } from "./support/scene.ts";

const COUNT = 3;
const READS_RELEASE = [{ name: "RELEASE", valueFrom: { fieldRef: { fieldPath: "metadata.labels['release']" } } }];
const SET = {
  replicas: COUNT,
  template: {
    metadata: { labels: { release: "1" } },
    spec: {
      containers: [{ name: "main", image: "app:1", env: READS_RELEASE }],
      readinessGates: [{ conditionType: "InPlaceUpdateReady" }],
    },
  },
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { podUpdatePolicy: "InPlaceIfPossible" } },
};
const { pass, open } = orderedSets();

function factsOf(pods: readonly Pod[]) {
  const sorted = pods.toSorted((a, b) => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1));
  return {
    uids: sorted.map(({ metadata }) => metadata?.uid),
    images: sorted.map((pod) => imageOf(pod, "main")),
    releases: sorted.map(({ metadata }) => metadata?.labels?.["release"]),
    restarts: sorted.map(({ status }) => status?.containerStatuses?.[0]?.restartCount),
    ready: sorted.filter(isReady).length,
  };
}

const withImage = (value: string) =>
  ({ op: "replace", path: "/spec/template/spec/containers/0/image", value }) as const;
const three = (value: unknown) => Array(COUNT).fill(value);

it("pods get the newest template in place when the template changes again before the first pod is done", async () => {
  const { scene, patch } = await open(SET);
  const { uids } = factsOf(await scene.pods());
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  await patch(withImage("app:2"));
  await pass(false);
  expect(factsOf(await scene.pods()).images).toEqual(["app:1", "app:1", "app:2"]);
  await patch(withImage("app:3"));
  await pass();
  const { restarts, ...facts } = factsOf(await scene.untilReady(COUNT));
  expect(facts).toEqual({ uids, images: three("app:3"), releases: three("1"), ready: COUNT });
  expect(restarts.slice(0, 2)).toEqual([1, 1]);
  const middle = (await history.versions()).filter(
    ({ object }) => imageOf(object as unknown as Pod, "main") === "app:2",
  );
  expect(new Set(middle.map(({ object }) => object.metadata.name))).toEqual(new Set(["db-2"]));
});

it("images and labels are updated in place, even labels that a container reads, and a new environment needs new pods", async () => {
  const { scene, patch } = await open(SET);
  const { uids } = factsOf(await scene.pods());
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  const beganMs = performance.now();
  await patch(withImage("app:2"), { op: "replace", path: "/spec/template/metadata/labels/release", value: "2" });
  await pass();
  expect(factsOf(await scene.untilReady(COUNT))).toEqual({
    uids,
    images: three("app:2"),
    releases: three("2"),
    restarts: three(1),
    ready: COUNT,
  });
  addFigure("3 pods of an ordered set are updated in place, 1 at once, in ms", Math.round(performance.now() - beganMs));
  const down = new Set<string>();
  let most = 0;
  for (const { object } of await history.versions()) {
    if (isReady(object as unknown as Pod)) down.delete(object.metadata.name ?? "");
    else down.add(object.metadata.name ?? "");
    most = Math.max(most, down.size);
  }
  expect(most).toEqual(atMost(1));

  // The container reads only this label. Another spelling of its image restarts it.
  await patch({ op: "replace", path: "/spec/template/metadata/labels/release", value: "3" });
  await pass();
  expect(factsOf(await scene.untilReady(COUNT))).toEqual({
    uids,
    images: three("docker.io/library/app:2"),
    releases: three("3"),
    restarts: three(2),
    ready: COUNT,
  });

  await patch({ op: "add", path: "/spec/template/spec/containers/0/env", value: [{ name: "A", value: "b" }] });
  await pass();
  const again = factsOf(await scene.untilReady(COUNT));
  expect(again.uids.filter((uid) => uids.includes(uid))).toEqual([]);
  expect(again.restarts).toEqual(three(0));
});
