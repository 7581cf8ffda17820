/** Changes values in running pods: each container's environment and file. The kubelet is killed at random meanwhile. */
import { mkdir, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, IN_PLACE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { recordedHash } from "../../../shared/core/pod/pod-state.ts";
import { restartOnNode } from "../support/access.ts";
import { addFigure } from "../support/figures.ts";
import { scenes } from "../support/open-scene.ts";
import { APP, isReady, type Scene, SIDECAR } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { containersOnNode, type FirstProcess } from "./inside.ts";

const openScene = scenes();
/** `VALUES_RESTARTS=10000 npm run test:node -- values-in-place` runs the soak. */
const RESTARTS = Number(process.env["VALUES_RESTARTS"] ?? 24);
const IS_SOAK = RESTARTS > 200;
const PODS = IS_SOAK ? 16 : 4;
/** Containers cost a node less than pods do, and each restart is checked separately. */
const CONTAINERS = Array.from({ length: IS_SOAK ? 12 : 2 }, (_, index) => `${SIDECAR.name}-${index}`);
const UPDATES = Math.ceil(RESTARTS / (PODS * CONTAINERS.length));
const PATIENCE_MS = IS_SOAK ? 600_000 : 300_000;
/** A kubelet with many containers needs time between two kills to make progress. */
const MOST_MS_BETWEEN_KILLS = IS_SOAK ? 45_000 : 25_000;

const wantedValue = (container: string, update: number) => `${container}-v${update}`;
const envOf = (container: string, update: number) =>
  ["LEVEL", "COLOR"].map((name) => ({ name, value: wantedValue(container, update) }));

/** Writes a variable to a file at the start, as the recipes do for programs that only read files. */
const WRITES =
  "printf %s \"$COLOR\" >/tmp/color; touch /tmp/ready; trap 'exit 143' TERM; while :; do sleep 1000 & wait $!; done";
const WRITERS = CONTAINERS.map((name) => ({
  ...SIDECAR,
  name,
  command: ["/bin/sh", "-c", WRITES],
  env: envOf(name, 1),
}));

/** The values that a container's first process has, and its file; undefined while it starts, or when it has ended. */
async function valuesOf(first: FirstProcess): Promise<readonly string[] | undefined> {
  if ((await first.read("root/tmp/ready")) === undefined) return undefined;
  const environment = await first.read("environ");
  const values = ["LEVEL", "COLOR"].map((name) => new RegExp(`(?:^|\0)${name}=([^\0]*)`).exec(environment ?? "")?.[1]);
  const file = await first.read("root/tmp/color");
  return file === undefined ? undefined : [...values.map((value) => value ?? ""), file];
}

const statusOf = ({ status }: Pod, container: string) =>
  status?.containerStatuses?.find(({ name }) => name === container);

/** Reads the values of every container once, and kills the kubelet from time to time. */
function watch(scene: Scene) {
  const isOver = new AbortController();
  const seen = { valuesOf: new Map<string, readonly string[]>(), kills: 0 };
  const look = async (first: FirstProcess) => {
    const values = await valuesOf(first);
    if (values) seen.valuesOf.set(first.id, values);
  };
  const looking = async () => {
    for (; !isOver.signal.aborted; await sleep(200)) {
      const running = await containersOnNode(scene.name, CONTAINERS);
      for (const first of running.filter(({ id }) => !seen.valuesOf.has(id))) await look(first);
    }
  };
  const killing = async () => {
    for (; !isOver.signal.aborted; seen.kills++) {
      await sleep(5_000 + Math.random() * (MOST_MS_BETWEEN_KILLS - 5_000));
      await restartOnNode("kubelet");
    }
  };
  const both = Promise.all([looking(), killing()]);
  return {
    seen,
    end: async () => {
      isOver.abort();
      await both;
    },
  };
}

async function untilDone(scene: Scene, { metadata }: SidecarSet): Promise<void> {
  const isDone = async () => {
    await sleep(200);
    const { status } = await scene.set();
    return (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0) && status?.updatedReadyPods === PODS;
  };
  await until(`all pods run generation ${metadata?.generation}`, isDone, PATIENCE_MS).catch(async (cause: unknown) => {
    const stateOf = ({ metadata: { name, annotations } = {}, spec, status }: Pod) => ({
      ...{ name, conditions: status?.conditions, statuses: status?.containerStatuses },
      ...{ images: spec.containers.map(({ image }) => image), annotations },
    });
    const late = { why: (await scene.report())?.why, pods: (await scene.pods()).map(stateOf) };
    await mkdir("reports", { recursive: true });
    await writeFile("reports/values-in-place.json", JSON.stringify(late));
    throw new Error(`${late.why}; see reports/values-in-place.json`, { cause });
  });
}

/** Checks that the first process of every container has the values of the update that the pod's record names. */
async function checkContainers(pod: Pod, update: number, valuesOf: ReadonlyMap<string, readonly string[]>) {
  for (const name of CONTAINERS) {
    const id = statusOf(pod, name)?.containerID?.replace(/^.*:\/\//, "") ?? "";
    await until(`the values of ${id} were read`, async () => valuesOf.has(id));
    const wanted = wantedValue(name, update);
    expect(valuesOf.get(id), `${pod.metadata?.name} of update ${update}`).toEqual([wanted, wanted, wanted]);
  }
}

it("no container runs values of two revisions, and no app restarts, while the kubelet is killed at random", {
  timeout: 2 * PATIENCE_MS + RESTARTS * 10_000,
}, async () => {
  const scene = await openScene({
    containers: WRITERS,
    updateStrategy: { type: "RollingUpdate", maxUnavailable: PODS },
  });
  const key = IN_PLACE_ANNOTATION.replace("/", "~1");
  await scene.patchSet({ op: "add", path: `/metadata/annotations/${key}`, value: "Values" });
  await Promise.all(Array.from({ length: PODS }, (_, index) => scene.createPod(`pod-${index}`)));
  await until("all pods are ready", async () => (await scene.pods()).filter(isReady).length === PODS, PATIENCE_MS);
  const before = await scene.pods();
  const updateByHash = new Map<string, number>();
  const { seen, end } = watch(scene);

  for (let update = 2; update < UPDATES + 2; update++) {
    const written = await scene.patchSet(
      ...CONTAINERS.map((name, index) => ({
        op: "replace" as const,
        path: `/spec/containers/${index}/env`,
        value: envOf(name, update),
      })),
    );
    updateByHash.set(written.metadata?.annotations?.[HASH_ANNOTATION] ?? "", update);
    await untilDone(scene, written);
    for (const pod of await scene.pods()) {
      const recorded = updateByHash.get(recordedHash(pod.metadata?.annotations?.[HASH_ANNOTATION], scene.name));
      await checkContainers(pod, recorded ?? 0, seen.valuesOf);
    }
    if (IS_SOAK) process.stdout.write(`update ${update}: ${seen.valuesOf.size} read, ${seen.kills} kubelets killed\n`);
  }
  await end();

  const after = await scene.pods();
  const restarts = after
    .flatMap((pod) => CONTAINERS.map((name) => statusOf(pod, name)?.restartCount ?? 0))
    .reduce((sum, count) => sum + count, 0);
  const mixed = [...seen.valuesOf.values()].filter((values) => new Set(values).size > 1);
  addFigure("values in place: containers restarted", restarts);
  addFigure("values in place: environments read", seen.valuesOf.size);
  addFigure("values in place: kubelets killed", seen.kills);
  expect(mixed).toEqual([]);
  expect(restarts).toBeGreaterThanOrEqual(UPDATES * PODS * CONTAINERS.length);
  expect(seen.valuesOf.size).toBeGreaterThanOrEqual(UPDATES * PODS * CONTAINERS.length);
  expect(after.map((pod) => statusOf(pod, APP.name)?.restartCount)).toEqual(after.map(() => 0));
  expect(after.map(({ metadata }) => metadata?.uid).toSorted()).toEqual(
    before.map(({ metadata }) => metadata?.uid).toSorted(),
  );
});
