/**
 * Changes the configuration in running pods. In the recipes it is a value. For a file of a ConfigMap the value is the
 * file's digest.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { parse } from "yaml";
import type { KubernetesObject, Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarContainer, SidecarSet } from "../../../shared/api/sidecarset.ts";
import { CONFIG_MAPS, type JsonPatchOperation } from "../../../shared/kube/port.ts";
import { scenes } from "../support/open-scene.ts";
import { APP, type Scene, SIDECAR } from "../support/scene.ts";
import { until } from "../support/until.ts";
import { runInside } from "./inside.ts";

const openScene = scenes();
const PODS = 3;
const PATIENCE_MS = 180_000;
/** The script that replaces each recipe's program, because every image is BusyBox. */
const STANDS_FOR = "exec /shell/busybox sleep 100000";

/** Runs a command in a container. A kubelet that restarts the container answers only after that. */
async function inside(scene: Scene, { metadata }: Pod, container: string, command: string): Promise<string> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await runInside({ namespace: scene.name, pod: metadata?.name ?? "", container }, command);
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await sleep(500);
    }
  }
}

async function createPods(scene: Scene): Promise<readonly Pod[]> {
  const spec = { terminationGracePeriodSeconds: 1 };
  await Promise.all(Array.from({ length: PODS }, (_, index) => scene.createPod(`pod-${index}`, spec)));
  return scene.untilReady(PODS);
}

/** Changes the SidecarSet, and waits until every pod runs the change. */
async function release(scene: Scene, name: string, ...operations: readonly JsonPatchOperation[]): Promise<void> {
  const { metadata } = await scene.patchOther(name, ...operations);
  const isDone = async () => {
    const { status } = await scene.set(name);
    return (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0) && status?.updatedReadyPods === PODS;
  };
  await until(`all pods run the new release of ${name}`, isDone, PATIENCE_MS);
}

const restartsOf = (pods: readonly Pod[], container: string) =>
  pods.map(({ status }) => status?.containerStatuses?.find(({ name }) => name === container)?.restartCount);

interface Restarted {
  readonly state?: { readonly running?: { readonly startedAt?: string } };
  readonly lastState?: { readonly terminated?: { readonly finishedAt?: string } };
}

/** Returns how long the container did not run, as its kubelet reports it, in ms. */
function absenceOf({ status }: Pod, container: string) {
  const seen = status?.containerStatuses?.find(({ name }) => name === container) as Restarted | undefined;
  const { state, lastState } = seen ?? {};
  return {
    from: Date.parse(lastState?.terminated?.finishedAt ?? ""),
    to: Date.parse(state?.running?.startedAt ?? ""),
  };
}

const uidsOf = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata?.uid).toSorted();

interface Recipe {
  readonly name: string;
  readonly variable: string;
  /** the file that the program reads; absent: it reads the variable itself */
  readonly file?: string;
}

const RECIPES: readonly Recipe[] = [
  { name: "otel-collector", variable: "OTELCOL_CONFIG" },
  { name: "fluent-bit-config", variable: "CONFIG", file: "/shell/config.yaml" },
];

it.each(RECIPES)(
  "a changed configuration of the recipe $name is rolled out pod by pod, and no app restarts",
  { timeout: 3 * PATIENCE_MS },
  async ({ name, variable, file }) => {
    const scene = await openScene();
    const text = await readFile(`infra/recipes/${name}.yaml`, "utf8");
    const { metadata, spec } = parse(text.replace(/exec \/fluent-bit\/.*(?=')/, STANDS_FOR)) as SidecarSet;
    await scene.createSet(
      name,
      { ...spec, selector: { matchLabels: scene.labels }, updateStrategy: { maxUnavailable: 1 } },
      { annotations: metadata?.annotations },
    );
    const before = await createPods(scene);
    const config = "changed: true # $HOME 'quoted' \"twice\"\n";
    await release(scene, name, { op: "replace", path: "/spec/containers/0/env/0/value", value: config });

    const after = await scene.pods();
    expect(uidsOf(after)).toEqual(uidsOf(before));
    expect(restartsOf(after, name)).toEqual(after.map(() => 1));
    expect(restartsOf(after, APP.name)).toEqual(after.map(() => 0));
    const absences = after.map((pod) => absenceOf(pod, name)).toSorted((one, other) => one.from - other.from);
    for (const [at, { from }] of absences.entries()) expect(from).toBeGreaterThanOrEqual(absences[at - 1]?.to ?? 0);
    for (const pod of after) {
      expect((await inside(scene, pod, name, "cat /proc/1/environ")).split("\0")).toContain(`${variable}=${config}`);
      if (file !== undefined) expect(await inside(scene, pod, name, `cat ${file}`)).toBe(config);
    }
  },
);

it("a changed digest restarts a sidecar, which reads the file of a ConfigMap that its node has written before", {
  timeout: 4 * PATIENCE_MS,
}, async () => {
  const scene = await openScene({
    containers: [
      {
        ...SIDECAR,
        command: ["/bin/sh", "-c", "cat /settings/color >/tmp/color && exec sleep 100000"],
        env: [{ name: "DIGEST", value: "v1" }],
        volumeMounts: [{ name: "settings", mountPath: "/settings" }],
      } as SidecarContainer,
    ],
    volumes: SETTINGS,
    updateStrategy: { maxUnavailable: PODS },
  });
  const key = IN_PLACE_ANNOTATION.replace("/", "~1");
  await scene.patchSet({ op: "add", path: `/metadata/annotations/${key}`, value: "Values" });
  const settings = { namespace: scene.name, name: "settings" };
  await scene.cluster.create(CONFIG_MAPS, { metadata: settings, ...{ data: { color: "v1" } } } as KubernetesObject);
  const before = await createPods(scene);
  const colours = (path: string) => Promise.all(before.map((pod) => inside(scene, pod, SIDECAR.name, `cat ${path}`)));
  const all = (value: string) => before.map(() => value);

  await scene.cluster.patch(CONFIG_MAPS, settings, { type: "merge", body: { data: { color: "v2" } } });
  const isWritten = async () => (await colours("/settings/color")).every((colour) => colour === "v2");
  await until("the node has written the file", isWritten, PATIENCE_MS);
  expect(await colours("/tmp/color")).toEqual(all("v1"));
  await release(scene, scene.name, { op: "replace", path: "/spec/containers/0/env/0/value", value: "v2" });

  expect(await colours("/tmp/color")).toEqual(all("v2"));
  const after = await scene.pods();
  expect([uidsOf(after), restartsOf(after, APP.name)]).toEqual([uidsOf(before), after.map(() => 0)]);
});

const SETTINGS = [{ name: "settings", configMap: { name: "settings" } }];
