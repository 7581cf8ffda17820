/**
 * Tests the registration that follows the SidecarSets: the API server sends every pod that is created right after its
 * SidecarSet.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION, KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { optionalAccess } from "../../shared/install/rbac/optional-access.ts";
import { readPodRegistration } from "../../shared/kube/pod-registration.ts";
import { type Cluster, NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { controlPlane } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { createAll, removeAll } from "./support/installed.ts";
import { size } from "./support/size.ts";
import { until } from "./support/until.ts";

const NAMESPACE = "keep-registration";
const ROUNDS = size({ ci: 5, soak: 60 });
const PODS_AT_ONCE = 5;

let functions: Functions;
/** Registrations may not be in force yet at the first probe. */
let errorsBefore = 0;
let cluster: Cluster;
const access: readonly KubernetesObject[] =
  optionalAccess().find(({ feature }) => feature === "webhook-configuration")?.objects ?? [];

beforeAll(async () => {
  const admin = controlPlane();
  cluster = clusterOf(admin);
  await createAll(cluster, access);
  functions = await startFunctions(admin, { isKeepingRegistration: true });
  errorsBefore = functions.errors.length;
  await cluster.create(NAMESPACES, { metadata: { name: NAMESPACE } });
});
afterAll(async () => {
  await cluster.delete(NAMESPACES, { name: NAMESPACE });
  await functions?.close();
  await removeAll(cluster, access);
});

async function createSet(name: string): Promise<void> {
  await cluster.create<SidecarSet>(SIDECARSETS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name },
    spec: { selector: { matchLabels: { round: name } }, containers: [{ name: "agent", image: "agent:1" }] },
  });
}

async function createPod(set: string, index: number): Promise<Pod> {
  const metadata = { name: `${set}-${index}`, namespace: NAMESPACE, labels: { round: set } };
  const spec = { containers: [{ name: "main", image: "main:1" }], schedulerName: "nobody" };
  return cluster.create<Pod>(PODS, newPod(metadata, spec));
}

const condition = async () => (await readPodRegistration(cluster))?.condition ?? "";
const isInjected = ({ metadata }: Pod) => metadata?.annotations?.[INJECTED_LIST_ANNOTATION] !== undefined;

describe("with passes that keep the registration", () => {
  it("the condition appears soon, and without SidecarSets the webhook is called for no pod", async () => {
    await until("a condition", async () => (await condition()) !== "");
    expect(await condition()).not.toContain("round");
  });

  it("pods that are created right after their SidecarSet have its sidecar, while other SidecarSets come and go", async () => {
    const missed: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const name = `round-${round}`;
      await createSet(name);
      const pods = await Promise.all(Array.from({ length: PODS_AT_ONCE }, (_, index) => createPod(name, index)));
      missed.push(...pods.filter((pod) => !isInjected(pod)).map(({ metadata }) => metadata?.name ?? ""));
      if (round % 2 === 0) await cluster.delete(SIDECARSETS, { name });
    }
    expect(missed).toEqual([]);
    addFigure(
      "pods created right after a write that none of them missed, with a registration that is kept",
      ROUNDS * PODS_AT_ONCE,
    );
  });

  it("conditions of SidecarSets that were deleted long ago are removed, and the others stay", async () => {
    const clock = { ...systemClock, epochMs: () => Date.now() + 600_000 };
    const options = {
      kruiseNamespace: KRUISE_NAMESPACE,
      deadlineMs: 10_000,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: false,
      clock,
    };
    await until("the condition is narrow", async () => {
      await runPass(cluster, { ...options, withoutSidecarSets: true, isKeepingRegistration: true });
      return !(await condition()).includes('"round-0"');
    });
    expect(await condition()).toContain('"round-1"');
    expect(isInjected(await createPod("round-1", PODS_AT_ONCE))).toBe(true);
    for (let round = 1; round < ROUNDS; round += 2) await cluster.delete(SIDECARSETS, { name: `round-${round}` });
    expect(functions.errors.slice(errorsBefore)).toEqual([]);
  });
});
