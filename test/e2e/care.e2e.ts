/** Actions that annotations make passes take, on a real control plane: undo, gates, owners' budgets. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import {
  GATE_ANNOTATION,
  HALT_ON_ANNOTATION,
  OWNER_BUDGET_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
} from "../../shared/api/names.ts";
import type { StatusCondition } from "../../shared/api/sidecarset.ts";
import { type Gates, gateAsker } from "../../shared/approval/batch-gates.ts";
import type { GateRequest } from "../../shared/core/rollout/rules/gate/approval.ts";
import type { JsonPatchOperation, Resource } from "../../shared/kube/port.ts";
import { parseGateHosts } from "../../shared/settings/called-services.ts";
import { runHere } from "../cli/run-cli.ts";
import { apiServer } from "./support/access.ts";
import { writeKubeconfig } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { scenes } from "./support/open-scene.ts";
import { type PodHistory, recordPods } from "./support/pod-history.ts";
import { APP, atMost, imageOf, isReady, type Scene, setImage } from "./support/scene.ts";
import { eventually } from "./support/until.ts";

const STATEFUL_SETS: Resource = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };

let folder: string;
let kubeconfig: string;
let server: Server;
let isOpen = false;
const asked: GateRequest[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "care-e2e-"));
  kubeconfig = await writeKubeconfig(join(folder, "kubeconfig"), apiServer());
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      asked.push(JSON.parse(body) as GateRequest);
      response.end(JSON.stringify(isOpen ? { allow: true } : { allow: false, reason: "freeze" }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

const gateUrl = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const batchGates: Gates = {
  ask: async (...question) => {
    const ask = gateAsker(parseGateHosts(`${gateUrl()}=private`));
    return ask ? ask(...question) : { allow: false, reason: "nobody may be asked" };
  },
  refusals: new Map(),
};
const openScene = scenes({ roles: ["undo"], batchGates });

const annotation = (name: string, value: string): JsonPatchOperation => ({
  op: "add",
  path: `/metadata/annotations/${name.replace("/", "~1")}`,
  value,
});

async function untilCondition(scene: Scene, type: string, wanted: Partial<Record<keyof StatusCondition, unknown>>) {
  await eventually(
    async () => (await scene.set()).status?.conditions?.find((one) => one.type === type),
    (condition) => expect(condition).toMatchObject(wanted),
  );
}

async function explained(scene: Scene): Promise<string> {
  const args = ["--kubeconfig", kubeconfig, "explain", `sidecarset/${scene.name}`, "-o", "json"];
  return (await runHere(args)).stdout;
}

it("the commands of docs/rollout-status.md wait until a change is obeyed", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } });
  await scene.deploy(2);
  await scene.untilSettled();
  const page = await readFile(join(import.meta.dirname, "../../docs/rollout-status.md"), "utf8");
  const [, block = ""] = /## Waiting until a change is obeyed.*?```sh\n(.*?)```/s.exec(page) ?? [];
  const commands = block.trim().replaceAll("NAME", scene.name).split("\n");
  expect(commands).toHaveLength(2);
  await scene.patchSet(annotation(HALT_ON_ANNOTATION, "3"), setImage("agent:v2"));
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  const waited = await Promise.all(commands.map((command) => promisify(execFile)("bash", ["-c", command], { env })));
  expect(waited.map(({ stdout }) => stdout)).toEqual(
    commands.map(() => expect.stringMatching(/^sidecarset\S* condition met\n$/)),
  );
  const { metadata, status } = await scene.set();
  expect(status).toMatchObject({ observedGeneration: metadata?.generation });
});

// This test runs alone: a pass that follows other SidecarSets returns to a waiting one only after a minute.
it("a gate's refusal holds a batch, and its approval allows one batch after the other", async () => {
  const scene = await openScene({ updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 } });
  await scene.deploy(2);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(annotation(GATE_ANNOTATION, `${gateUrl()}/batch`), setImage("agent:v2"));
  const message = expect.stringMatching(/^the gate at 127\.0\.0\.1:\d+ says no: freeze$/);
  await untilCondition(scene, "Blocked", { status: "True", reason: "Gate", message });
  expect((await scene.pods()).map((pod) => imageOf(pod, "agent"))).toEqual(["agent:v1", "agent:v1"]);
  expect(await explained(scene)).toMatch(/the gate at 127\.0\.0\.1:\d+ says no: freeze, blocked since/);
  const refused = asked.length;
  isOpen = true;
  // Without memory, like a new process, the pass asks at once.
  batchGates.refusals.clear();
  await scene.untilUpdated(2);
  const allowed = asked.slice(refused);
  expect(new Set(allowed.flatMap(({ pods }) => pods.map(({ uid }) => uid))).size).toBe(2);
  expect(allowed.map(({ pods }) => pods.length)).toEqual(allowed.map(() => 1));
  expect(await scene.record(since)).toMatchObject({ maxUnavailableObserved: 1, podPatches: 2 });
  await untilCondition(scene, "Blocked", { status: "False" });
  addFigure("batches that a gate allowed", allowed.length);
});

// A pass that waits for one of these SidecarSets ends for all of them.
describe.concurrent("rollouts with annotations that limit them", () => {
  it("a failing release is undone, and pods return to the previous release", async ({ onTestFinished }) => {
    const spec = { updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } } as const;
    const scene = await openScene(spec, onTestFinished);
    await scene.deploy(4);
    await scene.untilSettled();
    await scene.patchSet(annotation(HALT_ON_ANNOTATION, "1"), annotation(UNDO_ON_HALT_ANNOTATION, "true"));
    const since = await scene.now();
    await scene.patchSet(setImage("agent:does-not-exist"));
    const message = expect.stringMatching(/^put back to revision 1, since 2 of 2 updated pods fail/);
    await untilCondition(scene, "Undone", { status: "True", reason: "Halted", message });
    expect((await scene.set()).spec.containers?.map(({ image }) => image)).toEqual(["agent:v1"]);
    const pods = await scene.untilUpdated(4);
    expect(new Set(pods.map((pod) => imageOf(pod, "agent")))).toEqual(new Set(["agent:v1"]));
    expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0, podPatches: 4 });
    expect(await explained(scene)).toContain("a release was taken back: it was put back to revision 1");
    // The release is written again. Then the rollout halts, and no pass undoes it a second time.
    const { metadata } = await scene.patchSet(setImage("agent:does-not-exist"));
    await untilCondition(scene, "Blocked", {
      status: "True",
      reason: "Halted",
      message: expect.stringContaining("it was undone before and is here again"),
    });
    expect((await scene.set()).metadata?.generation).toBe(metadata?.generation);
    expect(await explained(scene)).toContain("RolloutHalted");
  });

  it("no owner has more pods down than its budget, while other owners continue", async ({ onTestFinished }) => {
    const spec = { updateStrategy: { type: "RollingUpdate", maxUnavailable: "100%" } } as const;
    const scene = await openScene(spec, onTestFinished);
    await scene.patchSet(annotation(OWNER_BUDGET_ANNOTATION, "1"));
    for (const name of ["cache", "db"]) await createStatefulSet(scene, name, 3);
    await scene.untilReady(6);
    await scene.untilSettled();
    const history = recordPods(scene.cluster, scene.name);
    onTestFinished(() => history.close());
    const since = await scene.now();
    await scene.patchSet(setImage("agent:v2"));
    await scene.untilUpdated(6);
    expect(await mostDown(history)).toEqual({ cache: 1, db: 1 });
    const record = await scene.record(since);
    expect(record).toMatchObject({ maxUnavailableObserved: atMost(2), appContainerRestarts: 0, podPatches: 6 });

    // A pod that stays down holds back only the pods of its owner.
    await scene.patchSet(setImage("agent:does-not-exist"));
    const why =
      /4 pods wait for others of their owners: StatefulSet \S+\/(cache|db): 1 of at most 1 down or on their way \(/;
    await scene.untilToldThat(why);
    await untilCondition(scene, "Blocked", { status: "True", reason: "MaxUnavailablePerOwner" });
    expect((await scene.pods()).filter(isReady)).toHaveLength(4);
    const text = await explained(scene);
    expect(text).toContain("OwnerBudgetUsed");
    expect(text).toMatch(/StatefulSet \S+\/cache: 1 of at most 1 down or on their way \(cache-\d\)/);
  });
});

function createStatefulSet({ cluster, name: namespace, labels }: Scene, name: string, replicas: number) {
  const own = { ...labels, set: name };
  const template = { metadata: { labels: own }, spec: { containers: [APP] } };
  const selector = { matchLabels: own };
  const spec = { replicas, serviceName: name, podManagementPolicy: "Parallel", selector, template };
  return cluster.create(STATEFUL_SETS, { metadata: { namespace, name }, spec } as KubernetesObject);
}

/** Returns for each owner the most pods that were down at once, after all were ready. */
async function mostDown(history: PodHistory): Promise<Readonly<Record<string, number>>> {
  const down = new Map<string, Set<string>>();
  const most: Record<string, number> = {};
  const versions = (await history.versions()) as unknown as readonly { readonly object: Pod }[];
  for (const { object } of versions) {
    const { name = "", labels = {} } = object.metadata ?? {};
    const owner = labels["set"] ?? "";
    const own = down.get(owner) ?? new Set();
    if (isReady(object)) own.delete(name);
    else own.add(name);
    down.set(owner, own);
    most[owner] = Math.max(most[owner] ?? 0, own.size);
  }
  return most;
}
