/** Tests that pods leave the EndpointSlices of a real control plane before their sidecars restart, within the fence. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { Resource } from "../../shared/kube/port.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import { recordPods } from "./support/pod-history.ts";
import { imageOf, type Scene, SIDECAR, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const openScene = scenes();
const PODS = 4;
const TRAFFIC = "sidecarset.kruise.io/traffic";
const DRAIN = { op: "add", path: "/metadata/annotations/sidecarset.kruise.io~1drain" } as const;

const SERVICES: Resource = { group: "", version: "v1", plural: "services", namespaced: true };
const SLICES: Resource = { group: "discovery.k8s.io", version: "v1", plural: "endpointslices", namespaced: true };

interface Slice extends KubernetesObject {
  readonly endpoints?: readonly { readonly targetRef?: { readonly name?: string } }[];
}

/** Returns the names of the Service's pods, ready or not. */
async function endpointsOf({ cluster, name: namespace }: Scene): Promise<ReadonlySet<string>> {
  const { items } = await cluster.list<Slice>(SLICES, { namespace, labelSelector: "kubernetes.io/service-name=web" });
  return new Set(items.flatMap(({ endpoints = [] }) => endpoints.map(({ targetRef }) => targetRef?.name ?? "")));
}

async function opened(drain: string): Promise<Scene> {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } });
  await scene.patchSet({ ...DRAIN, value: drain });
  const labels = { ...scene.labels, [TRAFFIC]: "serving" };
  await Promise.all(Array.from({ length: PODS }, (_, index) => scene.createPod(`pod-${index}`, {}, { labels })));
  await scene.untilReady(PODS);
  const metadata = { name: "web", namespace: scene.name };
  await scene.cluster.create(SERVICES, {
    metadata,
    spec: { selector: labels, ports: [{ port: 80 }] },
  } as KubernetesObject);
  await eventually(
    () => endpointsOf(scene),
    (names) => expect(names.size).toBe(PODS),
  );
  return scene;
}

const trafficOf = ({ metadata }: Pod) => metadata?.labels?.[TRAFFIC] ?? "";

it("a rollout takes two pods at a time out of endpoints while their sidecars restart, and puts them back", async () => {
  const scene = await opened("3s");
  const history = recordPods(scene.cluster, scene.name);
  onTestFinished(() => history.close());
  let looks = 0;
  let isOver = false;
  const early: string[] = [];
  const watching = (async () => {
    for (; !isOver; await sleep(100), looks++) {
      // The pods are read before the endpoints: a drained pod leaves the endpoints within a second.
      const drained = (await scene.pods()).filter(
        (pod) => imageOf(pod, SIDECAR.name) === "agent:v2" && trafficOf(pod) === "drained",
      );
      const names = await endpointsOf(scene);
      const serving = new Set((await scene.pods()).filter((pod) => trafficOf(pod) === "serving").map(nameOf));
      early.push(...drained.map(nameOf).filter((name) => names.has(name) && !serving.has(name)));
    }
  })();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(PODS);
  await eventually(
    () => scene.pods(),
    (pods) => expect(pods.map(trafficOf)).toEqual(Array(PODS).fill("serving")),
  );
  isOver = true;
  await watching;
  expect(early).toEqual([]);
  for (let index = 0; index < PODS; index++) {
    const states = (await history.versions())
      .map(({ object }) => object as unknown as Pod)
      .filter((pod) => nameOf(pod) === `pod-${index}`)
      .map((pod) => `${trafficOf(pod)} ${imageOf(pod, SIDECAR.name)}`);
    expect(states.filter((state, at) => state !== states[at - 1])).toEqual([
      "serving agent:v1",
      "drained agent:v1",
      "drained agent:v2",
      "serving agent:v2",
    ]);
  }
  await eventually(
    () => endpointsOf(scene),
    (names) => expect(names.size).toBe(PODS),
  );
  addFigure("drain: looks at EndpointSlices during a rollout", looks);
});

const nameOf = ({ metadata }: Pod) => metadata?.name ?? "";

it("drained pods are put back when the rollout is paused and when the SidecarSet is deleted", async () => {
  const scene = await opened("10m");
  const untilDrained = (count: number) =>
    eventually(
      () => scene.pods(),
      (pods) => expect(pods.filter((pod) => trafficOf(pod) === "drained")).toHaveLength(count),
    );
  await scene.patchSet(setImage("agent:v2"));
  await untilDrained(2);
  await scene.patchSet({ op: "add", path: "/spec/updateStrategy/paused", value: true });
  await untilDrained(0);
  await scene.patchSet({ op: "replace", path: "/spec/updateStrategy/paused", value: false });
  await untilDrained(2);
  await scene.deleteSet(scene.name);
  await untilDrained(0);
  expect((await scene.pods()).map((pod) => imageOf(pod, SIDECAR.name))).toEqual(Array(PODS).fill("agent:v1"));
});
