/**
 * Values that change in running pods: the environment and the file of each container, while its kubelet is killed at
 * random.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, IN_PLACE_ANNOTATION } from "../../../shared/api/names.ts";
import { recordedHash } from "../../../shared/core/pod/recorded-hash.ts";
import { restartOnNode } from "../support/access.ts";
import { addFigure } from "../support/figures.ts";
import { scenes } from "../support/open-scene.ts";
import { APP, type Scene, SIDECAR } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { runInside } from "./inside.ts";

const openScene = scenes();
/** `VALUES_RESTARTS=10000 npm run test:node -- values-in-place` is the soak. */
const RESTARTS = Number(process.env["VALUES_RESTARTS"] ?? 24);
const PODS = RESTARTS > 200 ? 40 : 4;
const UPDATES = Math.ceil(RESTARTS / PODS);
const PATIENCE_MS = 120_000;

const envOf = (value: number) => ["LEVEL", "COLOR"].map((name) => ({ name, value: `v${value}` }));

/** Writes a variable to a file when it starts, as the recipes do for programs that read files only. */
const WRITES =
  "printf %s \"$COLOR\" >/tmp/color; touch /tmp/ready; trap 'exit 143' TERM; while :; do sleep 1000 & wait $!; done";
const WRITER = { ...SIDECAR, command: ["/bin/sh", "-c", WRITES], env: envOf(1) };

/** The values that its first process has, and its file; undefined: nothing runs in it just now. */
async function environmentOf(scene: Scene, { metadata }: Pod): Promise<readonly string[] | undefined> {
  try {
    const place = { namespace: scene.name, pod: metadata?.name ?? "", container: SIDECAR.name };
    const text = await runInside(place, "cat /tmp/ready /proc/1/environ /tmp/color");
    const values = ["LEVEL", "COLOR"].map((name) => new RegExp(`(?:^|\0)${name}=([^\0]*)`).exec(text)?.[1] ?? "");
    return [...values, text.slice(text.lastIndexOf("\0") + 1)];
  } catch {
    return undefined;
  }
}

/** A kubelet that was just killed answers nothing. */
async function whenItAnswers(scene: Scene, pod: Pod): Promise<readonly string[]> {
  for (;;) {
    const values = await environmentOf(scene, pod);
    if (values) return values;
    await sleep(500);
  }
}

const restartsOf = ({ status }: Pod, container: string) =>
  status?.containerStatuses?.find(({ name }) => name === container)?.restartCount ?? 0;

/** Reads environments all the time, and kills the kubelet now and then. */
function watch(scene: Scene, pods: readonly Pod[]) {
  const isOver = new AbortController();
  const seen = { mixed: [] as string[], looks: 0, kills: 0 };
  const look = async (pod: Pod) => {
    const values = (await environmentOf(scene, pod)) ?? [];
    if (values.length > 0) seen.looks++;
    if (new Set(values).size > 1) seen.mixed.push(`${pod.metadata?.name}: ${values}`);
  };
  const looking = async () => {
    for (; !isOver.signal.aborted; await sleep(50)) for (const pod of pods) await look(pod);
  };
  const killing = async () => {
    for (; !isOver.signal.aborted; seen.kills++) {
      await sleep(5_000 + Math.random() * 20_000);
      await restartOnNode("kubelet");
    }
  };
  const both = Promise.all([looking(), killing()]);
  return {
    end: async () => {
      isOver.abort();
      await both;
      return seen;
    },
  };
}

it("no container runs values of two revisions, and no app restarts, while the kubelet is killed at random", {
  timeout: 2 * PATIENCE_MS + RESTARTS * 10_000,
}, async () => {
  const scene = await openScene({
    containers: [WRITER],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: PODS },
  });
  const key = IN_PLACE_ANNOTATION.replace("/", "~1");
  await scene.patchSet({ op: "add", path: `/metadata/annotations/${key}`, value: "Values" });
  await Promise.all(Array.from({ length: PODS }, (_, index) => scene.createPod(`pod-${index}`)));
  const before = await scene.untilReady(PODS);
  const valuesByHash = new Map<string, string>();
  const watched = watch(scene, before);

  for (let update = 2; update < UPDATES + 2; update++) {
    const written = await scene.patchSet({ op: "replace", path: "/spec/containers/0/env", value: envOf(update) });
    valuesByHash.set(written.metadata?.annotations?.[HASH_ANNOTATION] ?? "", `v${update}`);
    const generation = written.metadata?.generation ?? 0;
    const isDone = async () => {
      const { status } = await scene.set();
      return (status?.observedGeneration ?? 0) >= generation && status?.updatedReadyPods === PODS;
    };
    await until(`all pods run the values of update ${update}`, isDone, PATIENCE_MS);
    for (const pod of await scene.pods()) {
      const release = recordedHash(pod.metadata?.annotations?.[HASH_ANNOTATION], scene.name);
      const wanted = valuesByHash.get(release) ?? "";
      expect(await whenItAnswers(scene, pod), `${pod.metadata?.name} after update ${update}`).toEqual([
        wanted,
        wanted,
        wanted,
      ]);
    }
  }
  const { mixed, looks, kills } = await watched.end();

  const after = await scene.pods();
  const restarts = after.reduce((sum, pod) => sum + restartsOf(pod, SIDECAR.name), 0);
  addFigure("values in place: containers restarted", restarts);
  addFigure("values in place: environments read", looks);
  addFigure("values in place: kubelets killed", kills);
  expect(mixed).toEqual([]);
  expect(restarts).toBeGreaterThanOrEqual(UPDATES * PODS);
  expect(after.map((pod) => restartsOf(pod, APP.name))).toEqual(after.map(() => 0));
  expect(after.map(({ metadata }) => metadata?.uid).toSorted()).toEqual(
    before.map(({ metadata }) => metadata?.uid).toSorted(),
  );
});
