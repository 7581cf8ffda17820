/** Tests that every command predicts what a pass does: with the same feature gates and the same nodes. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { storedSidecarSet } from "../../functions/library/pass-input.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import type { SidecarSet, SidecarSetSpec } from "../../shared/api/sidecarset.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, LEASES, NODES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  allReady,
  fastClock,
  type HttpsCluster,
  KRUISE_NAMESPACE,
  NAMESPACE,
  startHttpsCluster,
} from "../controller/fixture.ts";
import { injectedBy, newPod } from "../support/objects.ts";
import { runHere } from "./run-cli.ts";

const SETTINGS = { ...DEFAULT_ROLLOUT_SETTINGS, NativeSidecarInPlaceUpdate: true, InPlaceResize: true };
const GATES = "NativeSidecarInPlaceUpdate=true,InPlaceResize=true";
const TOO_OLD = "v1.30.11";

let test: HttpsCluster;
let cluster: Cluster;
let folder: string;

beforeAll(async () => {
  test = await startHttpsCluster();
  cluster = test.cluster;
  folder = await mkdtemp(join(tmpdir(), "readers-"));
  await writeFile(join(folder, "kubeconfig"), test.kubeconfig);
  const { items } = await cluster.list(NODES);
  const body = { status: { nodeInfo: { kubeletVersion: TOO_OLD } } };
  for (const { metadata } of items)
    await cluster.patch(NODES, { name: metadata?.name ?? "" }, { type: "merge", body }, { subresource: "status" });
  for (const name of Object.keys(RELEASES)) await deploy(name);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
  await test.close();
});

const proxy = (version: number, memory: string) => ({
  name: "proxy",
  image: `registry.example/proxy:${version}`,
  resources: { requests: { cpu: "100m", memory }, limits: { memory } },
});
const native = (version: number) =>
  ({ name: "mesh", image: `registry.example/mesh:${version}`, restartPolicy: "Always" }) as const;

/** The spec that the pods were created with, the spec to roll out, and the next spec. */
const RELEASES: Readonly<Record<string, readonly [SidecarSetSpec, SidecarSetSpec, SidecarSetSpec]>> = {
  native: [{ initContainers: [native(1)] }, { initContainers: [native(2)] }, { initContainers: [native(3)] }],
  resized: [
    { containers: [proxy(1, "64Mi")] },
    { containers: [proxy(1, "128Mi")] },
    { containers: [proxy(2, "128Mi")] },
  ],
};

const manifestOf = (name: string, spec: SidecarSetSpec | undefined) => ({
  apiVersion: SIDECARSET_V1BETA1,
  kind: "SidecarSet",
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 },
    ...spec,
  },
});

/** Returns the pod as the webhook stores it. */
function podOf(set: SidecarSet): Pod {
  const { name = "", annotations = {} } = set.metadata ?? {};
  const { [HASH_ANNOTATION]: hash = "", [HASH_WITHOUT_IMAGE_ANNOTATION]: withoutImage = "" } = annotations;
  const { initContainers = [], containers = [] } = set.spec;
  return newPod(
    {
      name: `${name}-0`,
      namespace: NAMESPACE,
      labels: { app: name },
      annotations: injectedBy(name, { hash, withoutImage, sidecars: ["proxy"] }),
    },
    { initContainers, containers: [{ name: "main", image: "registry.example/main:1" }, ...containers] },
  );
}

async function deploy(name: string): Promise<void> {
  const [made, released, next] = (RELEASES[name] ?? []).map((spec) => manifestOf(name, spec));
  const before = storedSidecarSet(made ?? {});
  await cluster.create<SidecarSet>(SIDECARSETS, before);
  await cluster.create<Pod>(PODS, podOf(before));
  await allReady(cluster, name);
  // The pass records the first revision, so that later passes know the change.
  await pass(name, false);
  const { metadata, spec } = storedSidecarSet(released ?? {});
  const body = { metadata: { annotations: metadata?.annotations }, spec };
  await cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body });
  await writeFile(join(folder, `${name}.yaml`), stringify(next));
}

async function pass(sidecarSet: string, dryRun: boolean) {
  const options = { deadlineMs: 600_000, kruiseNamespace: KRUISE_NAMESPACE, settings: SETTINGS, follow: false };
  const report = await runPass(cluster, { ...options, sidecarSet, dryRun, clock: fastClock(20) });
  return report.sidecarSets[0];
}

/** FEATURE_GATES for the commands. */
let gatesHere = GATES;

async function cli(...args: readonly string[]): Promise<string> {
  vi.stubEnv("FEATURE_GATES", gatesHere);
  const { stdout, stderr } = await runHere([...args, "--kubeconfig", join(folder, "kubeconfig")]);
  expect(stderr).toBe("");
  return stdout;
}

const json = async (...args: readonly string[]) => JSON.parse(await cli(...args, "-o", "json"));

/** Reader → returns true if the reader says that the pod can be updated. */
const READERS: Readonly<Record<string, (name: string) => Promise<boolean>>> = {
  "a dry run": async (name) => (await pass(name, true))?.summary?.notUpgradable === 0,
  plan: async (name) => (await json("plan", name)).sidecarSets[0].plan.steps.length > 0,
  "plan of a change": async (name) =>
    (await json("plan", name, "-f", join(folder, `${name}.yaml`))).sidecarSets[0].plan.isComplete,
  "the final state in plan": async (name) => (await json("plan", name)).sidecarSets[0].plan.isComplete,
  diff: async (name) => (await json("diff", name, "-f", join(folder, `${name}.yaml`))).pods[0].kind === "inPlace",
  status: async (name) => (await json("status", name)).summary.notUpgradable === 0,
  "the pod in status": async (name) => (await json("status", name)).pods[0].state === "waiting for its turn",
  pods: async (name) => (await json("pods", name))[0].state === "waiting for its turn",
  "explain of the SidecarSet": async (name) => !(await cli("explain", `sidecarset/${name}`)).includes("NotUpgradable"),
  "explain of the pod": async (name) => {
    const told = await cli("explain", `pod/${NAMESPACE}/${name}-0`, "--sidecarset", name);
    expect(told).toMatch(/NotUpgradable|NextInLine/);
    return told.includes("NextInLine");
  },
  report: async (name) => {
    const file = join(folder, `${name}.html`);
    await cli("report", name, "-o", file);
    return !(await readFile(file, "utf8")).includes("cannot be updated in place");
  },
  check: async (name) => {
    const { findings } = await json("check");
    return !findings.some(
      (one: { id: string; about: string }) => one.id === "PodsNotUpgradable" && one.about === `SidecarSet ${name}`,
    );
  },
};

describe.each(Object.keys(READERS))("%s:", (reader) => {
  it("a native sidecar cannot be updated when the node's kubelet is too old", async () => {
    expect(await READERS[reader]?.("native")).toBe(false);
  });

  it("cpu and memory can be updated in place", async () => {
    expect(await READERS[reader]?.("resized")).toBe(true);
  });
});

describe("feature gates of the last pass:", () => {
  const status = async () => {
    const { stdout, stderr } = await runHere([
      "status",
      "resized",
      "-o",
      "json",
      "--kubeconfig",
      join(folder, "kubeconfig"),
    ]);
    return { notUpgradable: JSON.parse(stdout).summary.notUpgradable, stderr };
  };
  const LEASE = { namespace: KRUISE_NAMESPACE, name: "sidecarset-rollout" };
  const passOverNone = (settings: typeof SETTINGS) =>
    runPass(cluster, {
      deadlineMs: 600_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      settings,
      follow: false,
      withoutSidecarSets: true,
      memory: newPassMemory(),
    });
  afterEach(() => {
    gatesHere = GATES;
    return cluster.delete(LEASES, LEASE);
  });

  it("status uses the feature gates of the last pass, not those of the environment", async () => {
    vi.stubEnv("FEATURE_GATES", "");
    await passOverNone(SETTINGS);
    expect(await status()).toEqual({ notUpgradable: 0, stderr: "" });
    expect(await cli("status", "resized", "-o", "json")).toContain('"notUpgradable": 0');
  });

  it.each(Object.keys(READERS))("%s uses the feature gates of the last pass", async (reader) => {
    gatesHere = "";
    await passOverNone(SETTINGS);
    expect(await READERS[reader]?.("resized")).toBe(true);
    expect(await READERS[reader]?.("native")).toBe(false);
  });

  it("status warns when the gates of the last pass differ from those of the environment", async () => {
    vi.stubEnv("FEATURE_GATES", "InPlaceResize=true");
    await passOverNone({ ...SETTINGS, InPlaceResize: false });
    expect(await status()).toEqual({
      notUpgradable: 1,
      stderr: expect.stringMatching(/^The last pass ran without InPlaceResize, /),
    });
  });

  it("status warns that the gates of the passes are unknown when the last pass did not record them", async () => {
    vi.stubEnv("FEATURE_GATES", "InPlaceResize=true");
    await passOverNone(SETTINGS);
    const body = { metadata: { annotations: { "sidecarset.kruise.io/feature-gates": null } } };
    await cluster.patch(LEASES, LEASE, { type: "merge", body });
    expect(await status()).toEqual({
      notUpgradable: 0,
      stderr: expect.stringMatching(/^It is not known with which feature gates passes run: /),
    });
  });
});

it("without feature gates a change of resources cannot be updated in place, as in OpenKruise", async () => {
  vi.stubEnv("FEATURE_GATES", "");
  const { stdout } = await runHere(["status", "resized", "-o", "json", "--kubeconfig", join(folder, "kubeconfig")]);
  expect(JSON.parse(stdout).summary.notUpgradable).toBe(1);
});

it("with feature gates a plan resizes the pod before it upgrades it, and then finishes", async () => {
  const { plan } = (await json("plan", "resized")).sidecarSets[0];
  expect(plan.steps.map(({ purpose }: { purpose: string }) => purpose)).toEqual(["resize", "resize", "upgrade"]);
  expect(plan.after).toMatchObject({ hold: "finished", updated: 1, updatedReady: 1 });
});
