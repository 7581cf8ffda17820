/** Tests the recipes whose configuration is a value: a change reaches running pods in batches, and no app restarts. */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { injectSidecarSets } from "../../shared/core/injection/inject-sidecar-sets.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { allReady, fastClock, isReady, KRUISE_NAMESPACE, NAMESPACE, readPods, startTestCluster } from "./fixture.ts";

type TestCluster = Awaited<ReturnType<typeof startTestCluster>>;
let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
});
afterAll(() => test.close());

const NOW = "2026-11-30T10:00:00Z";
const COUNT = 20;
/** The most pods that may be down: the recipes allow a tenth. */
const MOST = 2;
const NEW_CONFIGURATION = "changed: true\n";

/** Returns a SidecarSet as the webhook stores it, with its own pods. */
function stored(object: KubernetesObject): SidecarSet {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const admission = mutateSidecarSet({ uid: "1", operation: "CREATE", resource, object });
  if (admission.kind !== "allowed") throw new Error(JSON.stringify(admission));
  return (admission.object ?? object) as SidecarSet;
}

async function recipe(file: string): Promise<SidecarSet> {
  const text = await readFile(new URL(`../../infra/recipes/${file}.yaml`, import.meta.url), "utf8");
  const given = parse(text) as SidecarSet;
  return { ...given, spec: { ...given.spec, selector: { matchLabels: { app: file } } } };
}

/** Returns the recipe with another configuration, which is the value of its only variable. */
function changed({ spec, ...others }: SidecarSet): SidecarSet {
  const containers = (spec.containers ?? []).map((one) => ({
    ...one,
    env: (one.env ?? []).map(({ name }) => ({ name, value: NEW_CONFIGURATION })),
  }));
  return { ...others, spec: { ...spec, containers } };
}

const restartsOf = (pods: readonly Pod[], container: string) =>
  pods.map(({ status }) => status?.containerStatuses?.find(({ name }) => name === container)?.restartCount);

/** Returns the most pods of the app that were not ready at once. */
function mostDown(writes: readonly { readonly object: unknown }[], app: string): number {
  const down = new Set<string>();
  const counts = writes.map(({ object }) => {
    const { metadata, ...rest } = object as Pod;
    if (metadata?.labels?.["app"] !== app) return 0;
    if (isReady({ metadata, ...rest })) down.delete(metadata.name ?? "");
    else down.add(metadata.name ?? "");
    return down.size;
  });
  return Math.max(...counts);
}

it.each(["otel-collector", "fluent-bit-config"])(
  "a changed configuration of %s reaches every pod in batches, and no app restarts",
  async (name) => {
    const { cluster, history } = test;
    const given = await recipe(name);
    const first = await cluster.create<SidecarSet>(SIDECARSETS, stored(given));
    const options = { now: NOW, namespace: NAMESPACE, sortContainersByName: false };
    for (let index = 0; index < COUNT; index++) {
      const asked = newPod(
        { name: `${name}-${index}`, namespace: NAMESPACE, labels: { app: name } },
        { containers: [{ name: "main", image: "web:1" }] },
      );
      const pod = injectSidecarSets(asked, [first], options);
      if ("message" in pod) throw new Error(pod.message);
      await cluster.create<Pod>(PODS, pod);
    }
    await allReady(cluster, name);

    const next = stored(changed(given));
    const body = { metadata: { annotations: next.metadata?.annotations }, spec: next.spec };
    await cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body });
    const begun = history().length;
    const { sidecarSets } = await runPass(cluster, {
      ...{ deadlineMs: 600_000, kruiseNamespace: KRUISE_NAMESPACE, sidecarSet: name, follow: true },
      ...{ settings: DEFAULT_ROLLOUT_SETTINGS, clock: fastClock(1), memory: newPassMemory() },
    });
    expect(sidecarSets).toMatchObject([{ stop: "settled" }]);

    const after = await readPods(cluster, name);
    const configuration = JSON.stringify(NEW_CONFIGURATION);
    for (const { metadata } of after) expect(JSON.stringify(metadata?.annotations)).toContain(`:${configuration}`);
    expect(restartsOf(after, name)).toEqual(after.map(() => 1));
    expect(restartsOf(after, "main")).toEqual(after.map(() => 0));
    const most = mostDown(history().slice(begun), name);
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(MOST);
  },
);
