/**
 * Tests that a pod's admission uses everything the API server answered before the pod's creation began. This covers
 * created, changed and deleted SidecarSets, and labels of Namespaces, while other pods are admitted.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { installation } from "../../shared/install/manifests.ts";
import { accessObjects, kruiseNamespace } from "../../shared/install/rbac/access.ts";
import { type Cluster, NAMESPACES, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { IN_FORCE_MS } from "../../shared/webhook/view/announcement-trust.ts";
import { median } from "../bench/measure.ts";
import { sendRaw } from "../contract/raw.ts";
import { newPod } from "../support/objects.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf, writeKubeconfig } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { createAll, removeAll, untilInForce } from "./support/installed.ts";
import { IS_SOAK, size } from "./support/size.ts";
import { until } from "./support/until.ts";
import {
  type BackendOptions,
  type Backends,
  type Front,
  lambdaEnvironments,
  openFront,
  serveProcesses,
} from "./support/webhook-front.ts";

/** Number of lanes. A lane writes its own SidecarSets, one after the other. */
const LANES = 10;
/** Rounds of a lane: four writes, each followed at once by a pod. */
const ROUNDS = size({ ci: 5, soak: 250 });
const PODS_PER_ROUND = 4;
/** Number of other pods a second. */
const OTHERS = 30;

let cluster: Cluster;
let folder: string;
beforeAll(async () => {
  cluster = clusterOf(controlPlane());
  folder = await mkdtemp(join(tmpdir(), "sidecarset-writes-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function sidecarSet(name: string, image: string, more: object = {}): SidecarSet {
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name },
    spec: { selector: { matchLabels: { round: name } }, containers: [{ name: "agent", image }], ...more },
  } as SidecarSet;
}

const UNSCHEDULED = { schedulerName: "nobody" };

async function createPod(namespace: string, labels: Record<string, string>): Promise<Pod> {
  return cluster.create<Pod>(
    PODS,
    newPod(
      { generateName: "p-", namespace, labels },
      { containers: [{ name: "main", image: "main:1" }], ...UNSCHEDULED },
    ),
  );
}

const agentOf = ({ spec }: Pod) => spec.containers.find(({ name }) => name === "agent")?.image;

interface Tally {
  readonly missed: string[];
  pods: number;
}

/** Makes the four writes, each followed at once by a new pod. */
async function round(name: string, namespace: string, tally: Tally): Promise<void> {
  const labels = { round: name };
  const expectAgent = async (what: string, image: string | undefined) => {
    const pod = await createPod(namespace, labels);
    tally.pods++;
    if (agentOf(pod) !== image) tally.missed.push(`${name}: ${what}: ${agentOf(pod)} instead of ${image}`);
  };
  const gated = { namespaceSelector: { matchLabels: { [name]: "on" } } };
  await cluster.create(SIDECARSETS, sidecarSet(name, "agent:1"));
  await expectAgent("created", "agent:1");
  const operations = [
    { op: "replace", path: "/spec/containers/0/image", value: "agent:2" },
    { op: "add", path: "/spec/namespaceSelector", value: gated.namespaceSelector },
  ] as const;
  await cluster.patch(SIDECARSETS, { name }, { type: "json", operations });
  await expectAgent("another namespaceSelector", undefined);
  await cluster.patch(
    NAMESPACES,
    { name: namespace },
    { type: "merge", body: { metadata: { labels: { [name]: "on" } } } },
  );
  await expectAgent("a label of the Namespace", "agent:2");
  await cluster.delete(SIDECARSETS, { name });
  await expectAgent("deleted", undefined);
  await cluster.patch(
    NAMESPACES,
    { name: namespace },
    { type: "merge", body: { metadata: { labels: { [name]: null } } } },
  );
}

/** Creates pods until it is stopped. Resolves with their number, and the milliseconds of each. */
function createOthers(namespace: string) {
  const milliseconds: number[] = [];
  let isOver = false;
  const all = Array.from({ length: 3 }, async () => {
    while (!isOver) {
      const begun = performance.now();
      await createPod(namespace, { app: "other" });
      milliseconds.push(performance.now() - begun);
      await sleep(Math.max(0, 3_000 / OTHERS - (performance.now() - begun)));
    }
  });
  return async () => {
    isOver = true;
    await Promise.all(all);
    return milliseconds;
  };
}

async function createOthersFor(namespace: string, milliseconds: number): Promise<readonly number[]> {
  const stop = createOthers(namespace);
  await sleep(milliseconds);
  return stop();
}

/** Returns how many reads of SidecarSets the API server has answered so far, without watches. */
async function asked(): Promise<number> {
  const { text } = await sendRaw(controlPlane(), { path: "/metrics" });
  const lines = text.split("\n").filter((line) => /^apiserver_request_total{.*resource="sidecarsets"/.test(line));
  const reads = lines.filter((line) => /verb="(GET|LIST)"/.test(line));
  return reads.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}

const WAYS: readonly (readonly [string, (options: BackendOptions) => Promise<Backends>, number])[] = [
  ["one serve process", serveProcesses, 1],
  ["three serve processes", serveProcesses, 3],
  ["8 environments of the Lambda function", lambdaEnvironments, 8],
];

async function untilNobodyAsks(namespace: string): Promise<void> {
  const isQuiet = async () => {
    const before = await asked();
    await createOthersFor(namespace, 1_000);
    return (await asked()) === before;
  };
  await until("nobody asks", isQuiet, 2 * IN_FORCE_MS);
}

describe.each(WAYS)("with %s", (title, begin, count) => {
  const namespace = `writes-${count}`;
  /** Announcements are used only after some minutes. */
  const isAnnounced = IS_SOAK || title === "one serve process";
  let front: Front;
  let installed: readonly KubernetesObject[];
  beforeAll(async () => {
    const admin = controlPlane();
    const access = [kruiseNamespace(), ...accessObjects()];
    await createAll(cluster, access);
    const account = await asServiceAccount(admin, KRUISE_NAMESPACE, "sidecarset-webhooks");
    const kubeconfig = await writeKubeconfig(join(folder, `kubeconfig-${count}`), account);
    front = await openFront(await begin({ folder, kubeconfig, count }));
    const address = { url: front.url, caBundle: front.caBundle };
    installed = installation(address, { podFailurePolicy: "Fail" }).slice(access.length);
    await createAll(cluster, installed);
    await untilInForce(cluster);
    await createAll(cluster, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }]);
    await until("its service account", async () => Boolean(await createPod(namespace, { app: "first" })));
    // Until then the webhook lists SidecarSets for each pod, as without announcements.
    if (isAnnounced) await untilNobodyAsks(namespace);
  }, 3 * IN_FORCE_MS);
  afterAll(async () => {
    await cluster.delete(NAMESPACES, { name: namespace });
    await removeAll(cluster, [...installed].reverse());
    await front.close();
  });

  it(
    "no pod misses what was written before it",
    async () => {
      const tally: Tally = { missed: [], pods: 0 };
      const stop = createOthers(namespace);
      const lanes = Array.from({ length: LANES }, async (_, lane) => {
        for (let at = 0; at < ROUNDS; at++) await round(`lane-${lane}-${at}`, namespace, tally);
      });
      await Promise.all(lanes);
      const others = await stop();
      expect(tally.missed).toEqual([]);
      expect(tally.pods).toBe(LANES * ROUNDS * PODS_PER_ROUND);
      addFigure(`pods created right after a write that none of them missed, with ${title}`, tally.pods);
      addFigure(`others' pods meanwhile, with ${title}`, others.length);
    },
    size({ ci: 180_000, soak: 3_600_000 }),
  );

  it.runIf(isAnnounced)(
    "SidecarSets are not read while nobody changes them",
    async () => {
      // Webhooks stop waiting for a SidecarSet that was never stored.
      await untilNobodyAsks(namespace);
      const before = await asked();
      const milliseconds = await createOthersFor(namespace, 4_000);
      expect(milliseconds.length).toBeGreaterThan(20);
      expect((await asked()) - before).toBeLessThanOrEqual(count);
      addFigure(
        `a pod's creation while nobody writes SidecarSets, p50 in ms, with ${title}`,
        rounded(median(milliseconds)),
      );
    },
    3 * IN_FORCE_MS,
  );
});
