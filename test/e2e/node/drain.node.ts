/** Restarts sidecars that serve clients on a real node, with a drain and without one. */
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import type { Resource } from "../../../shared/kube/port.ts";
import { addFigure } from "../support/figures.ts";
import { scenes } from "../support/open-scene.ts";
import { type Scene, setImage } from "../support/scene.ts";
import { until } from "../support/until.ts";

const openScene = scenes();
/** `DRAIN_RESTARTS=100 npm run test:node -- drain` runs the soak. */
const RESTARTS = Number(process.env["DRAIN_RESTARTS"] ?? 16);
const PODS = RESTARTS > 50 ? 10 : 4;
const CLIENTS = 4;
const PATIENCE_MS = 120_000;
const TRAFFIC = { "sidecarset.kruise.io/traffic": "serving" };
const PROXY = {
  name: "proxy",
  image: "proxy-serves:v1",
  readinessProbe: { httpGet: { path: "/", port: 8080 }, periodSeconds: 1 },
  // The server changes a kernel setting: how waiting connections move to another listener.
  securityContext: { privileged: true },
};

const SERVICES: Resource = { group: "", version: "v1", plural: "services", namespaced: true };
const SLICES: Resource = { group: "discovery.k8s.io", version: "v1", plural: "endpointslices", namespaced: true };

interface Slice extends KubernetesObject {
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean };
  }[];
}

/** Sends a request on its own connection. */
function ask(host: string): Promise<string> {
  return new Promise((done, failed) => {
    const asked = request({ host, port: 8080, agent: false, timeout: 10_000 }, (answer) =>
      text(answer).then(done, failed),
    );
    asked.on("timeout", () => asked.destroy(new Error("no answer within 10 s")));
    asked.on("error", failed);
    asked.end();
  });
}

/**
 * Simulates clients of the Service. No kube-proxy runs on the node, so they follow the EndpointSlices themselves, as a
 * mesh does.
 */
async function traffic({ cluster, name: namespace }: Scene) {
  const metadata = { name: "web", namespace };
  const selector = { scene: namespace, ...TRAFFIC };
  await cluster.create(SERVICES, { metadata, spec: { selector, ports: [{ port: 8080 }] } } as KubernetesObject);
  const seen = { answers: 0, failures: [] as string[], fewest: PODS };
  let addresses: readonly string[] = [];
  let isOver = false;
  const look = async () => {
    const { items } = await cluster.list<Slice>(SLICES, { namespace, labelSelector: "kubernetes.io/service-name=web" });
    const ready = items.flatMap(({ endpoints = [] }) =>
      endpoints.filter(({ conditions }) => conditions?.ready !== false),
    );
    addresses = ready.flatMap((one) => one.addresses);
  };
  const following = async () => {
    for (; !isOver; await sleep(50)) {
      await look();
      seen.fewest = Math.min(seen.fewest, addresses.length);
    }
  };
  const client = async () => {
    for (let turn = 0; !isOver; turn++) {
      const host = addresses[turn % Math.max(1, addresses.length)];
      if (host === undefined) await sleep(20);
      else
        await ask(host).then(
          () => seen.answers++,
          (error: Error) => seen.failures.push(error.message),
        );
    }
  };
  await until("all pods are in endpoints", async () => look().then(() => addresses.length === PODS), PATIENCE_MS);
  const all = Promise.all([following(), ...Array.from({ length: CLIENTS }, client)]);
  return {
    end: async () => {
      isOver = true;
      await all;
      return seen;
    },
  };
}

const restartsOf = ({ status }: Pod) =>
  status?.containerStatuses?.find(({ name }) => name === PROXY.name)?.restartCount ?? 0;

async function restarted(drain: string | undefined) {
  const scene = await openScene({
    containers: [PROXY],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: PODS / 2 },
  });
  const path = "/metadata/annotations/sidecarset.kruise.io~1drain";
  if (drain !== undefined) await scene.patchSet({ op: "add", path, value: drain });
  const labels = { ...scene.labels, ...TRAFFIC };
  await Promise.all(Array.from({ length: PODS }, (_, index) => scene.createPod(`pod-${index}`, {}, { labels })));
  await scene.untilReady(PODS);
  const clients = await traffic(scene);
  for (let update = 1; update <= RESTARTS / PODS; update++) {
    const { metadata } = await scene.patchSet(setImage(`proxy-serves:v${update + 1}`));
    const isDone = async () => {
      const { status } = await scene.set();
      const pods = await scene.pods();
      const areServing = pods.every((pod) => pod.metadata?.labels?.["sidecarset.kruise.io/traffic"] === "serving");
      return areServing && status?.observedGeneration === metadata?.generation && status?.updatedReadyPods === PODS;
    };
    await until(`all pods have update ${update}`, isDone, PATIENCE_MS);
  }
  const seen = await clients.end();
  const restarts = (await scene.pods()).reduce((sum, pod) => sum + restartsOf(pod), 0);
  return { ...seen, restarts };
}

const timeout = PATIENCE_MS + RESTARTS * 15_000;

it("no request fails while sidecars that serve are drained and restarted", { timeout }, async () => {
  const { answers, failures, fewest, restarts } = await restarted("3s");
  addFigure("drain: sidecars restarted under traffic", restarts);
  addFigure("drain: requests answered meanwhile", answers);
  addFigure("drain: requests failed", failures.length);
  expect(failures).toEqual([]);
  expect(restarts).toBeGreaterThanOrEqual(RESTARTS);
  expect(fewest).toBeGreaterThanOrEqual(PODS / 2);
});

it("requests fail while the same sidecars restart without a drain", { timeout }, async () => {
  const { failures, restarts } = await restarted(undefined);
  addFigure("without a drain: sidecars restarted under traffic", restarts);
  addFigure("without a drain: requests failed", failures.length);
  expect(restarts).toBeGreaterThanOrEqual(RESTARTS);
  expect(failures.length).toBeGreaterThan(0);
});
