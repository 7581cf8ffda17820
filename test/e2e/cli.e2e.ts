/** Tests every verb of the command line on a real control plane. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { Input } from "../../functions/cli/command.ts";
import { COMMANDS } from "../../functions/cli/commands/index.ts";
import { changeSet } from "../../functions/cli/input/change-set.ts";
import { Session } from "../../functions/cli/session.ts";
import { handler as dryRun } from "../../functions/lambda/dry-run.ts";
import { createScreen } from "../../functions/terminal/screen.ts";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import { installation, installedResource } from "../../shared/install/manifests.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Outcome, runHere } from "../cli/run-cli.ts";
import { listedPod, newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { apiServer } from "./support/access.ts";
import { clusterOf, writeKubeconfig } from "./support/clients.ts";
import { scenes } from "./support/open-scene.ts";
import { APP, imageOf, type Scene, SIDECAR, setImage } from "./support/scene.ts";

const CLI = resolve(import.meta.dirname, "../../functions/cli.mjs");
const openScene = scenes();
const STRATEGY = { type: "RollingUpdate", maxUnavailable: 2 };
let folder: string;
let kubeconfig: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cli-e2e-"));
  kubeconfig = await writeKubeconfig(join(folder, "kubeconfig"), apiServer());
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The commands that these tests ran. */
const ran = new Set<string>();

function cli(...args: readonly string[]): Promise<Outcome> {
  const command = COMMANDS.find(({ name }) => name.split(" ").every((word, index) => word === args[index]));
  if (command !== undefined) ran.add(command.name);
  return runHere(["--kubeconfig", kubeconfig, ...args]);
}

/** Returns the stdout of a command that succeeds. */
async function out(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(...args);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

const json = async <T>(...args: readonly string[]): Promise<T> => JSON.parse(await out(...args, "-o", "json")) as T;

async function fileOf(name: string, object: object): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, stringify(object));
  return file;
}

/** Returns the scene's SidecarSet with other fields, as a manifest. */
function changed(scene: Scene, spec: object): object {
  return {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: scene.name },
    spec: { selector: { matchLabels: scene.labels }, containers: [SIDECAR], updateStrategy: STRATEGY, ...spec },
  };
}

async function settled(replicas: number, updateStrategy: object = STRATEGY): Promise<Scene> {
  const scene = await openScene({ updateStrategy });
  await scene.deploy(replicas);
  await scene.untilSettled();
  return scene;
}

/** Returns the number of users' changes, which a write of the status does not increase. */
const generationOf = async (scene: Scene) => (await scene.set()).metadata?.generation;
const DONE_IN_TIME = ["-w", "--timeout", "120s"] as const;

it("preview shows the pod that the API server then stores", async () => {
  const scene = await openScene({ updateStrategy: STRATEGY });
  const metadata = { name: "p", namespace: scene.name, labels: scene.labels };
  const pod = newPod(metadata, { containers: [APP] });
  const previewed = await json<Pod>("preview", "-f", await fileOf("pod.yaml", pod));
  const stored = await scene.cluster.create<Pod>(PODS, pod, { dryRun: true });
  expect(previewed.spec.containers.map(({ name, image }) => [name, image])).toEqual(
    stored.spec.containers.map(({ name, image }) => [name, image]),
  );
  expect(Object.keys(previewed.metadata?.annotations ?? {})).toEqual(Object.keys(stored.metadata?.annotations ?? {}));
  expect(await out("preview", "-f", await fileOf("pod.yaml", pod), "-o", "diff")).toMatch(/^\+ .*name: agent$/m);
});

it("lint predicts the API server's refusal word for word", async () => {
  const scene = await openScene({ updateStrategy: STRATEGY });
  const good = await fileOf("good.yaml", changed(scene, {}));
  expect(await out("lint", "-f", good)).toBe("1 SidecarSet: nothing is wrong\n");
  const bad = { ...changed(scene, { selector: {} }), metadata: { name: `${scene.name}-bad` } };
  const { code, stdout } = await cli("lint", "-f", await fileOf("bad.yaml", bad), "-o", "json");
  const [finding] = JSON.parse(stdout) as readonly { readonly severity: string; readonly message: string }[];
  expect([code, finding?.severity]).toEqual([4, "error"]);
  const refusal = await scene.cluster.create(SIDECARSETS, bad, { dryRun: true }).catch(String);
  expect(refusal).toContain(finding?.message);
});

it("diff and plan predict a change, and the change does exactly that", async () => {
  const scene = await settled(5);
  const file = await fileOf("image.yaml", changed(scene, { containers: [{ ...SIDECAR, image: "agent:v2" }] }));
  expect(await out("diff", scene.name, "-f", file)).toMatch(/ 5 will be updated in place/);
  const env = [{ name: "A", value: "b" }];
  const wider = await fileOf("env.yaml", changed(scene, { containers: [{ ...SIDECAR, env }] }));
  expect(await out("diff", scene.name, "-f", wider)).toMatch(
    /5 must be recreated[\s\S]*spec\.containers\{agent\}\.env/,
  );
  const before = await generationOf(scene);
  const { sidecarSets } = await json<PassReport>("plan", scene.name, "-f", file, "--ready-after", "3s");
  const plan = sidecarSets[0]?.plan;
  expect(plan?.steps.map(({ pods }) => pods.length)).toEqual([2, 2, 1]);
  expect(plan).toMatchObject({ isComplete: true, seconds: 9, readyAfterSeconds: 3 });
  expect(await generationOf(scene)).toBe(before);
  const planned = plan?.steps.flatMap(({ pods }) => pods.map(({ name }) => name)).toSorted();
  await scene.patchSet(setImage("agent:v2"));
  const pods = await scene.untilUpdated(5);
  expect(pods.map(({ metadata }) => metadata?.name).toSorted()).toEqual(planned);
});

it("plan prints the answer of the rollout function's dry run", async () => {
  const scene = await settled(3);
  await scene.patchSet({ op: "replace", path: "/spec/updateStrategy/paused", value: true }, setImage("agent:v2"));
  await scene.untilSettled();
  process.env["KUBECONFIG"] = kubeconfig;
  onTestFinished(() => void delete process.env["KUBECONFIG"]);
  const answered = await dryRun({ sidecarSet: scene.name }, { getRemainingTimeInMillis: () => 30_000 });
  const printed = await json<PassReport>("plan", scene.name);
  expect(printed.sidecarSets[0]?.plan?.steps).toEqual([]);
  const alike = ({ startedAt: _, durationMs: __, ...report }: PassReport) => JSON.parse(JSON.stringify(report));
  expect(alike(printed)).toEqual(alike(answered));
});

it("set image, status, pods and history follow a rollout, and undo takes it back", async () => {
  const scene = await settled(3);
  const before = await generationOf(scene);
  await out("set", "image", scene.name, "agent=agent:v2", "--dry-run");
  expect(await generationOf(scene)).toBe(before);
  expect(await out("set", "image", scene.name, "agent=agent:v2")).toBe(`${scene.name}: agent agent:v1 → agent:v2\n`);
  expect(await out("status", scene.name, ...DONE_IN_TIME)).toMatch(/3 of 3 pods updated, 3 of them ready\n$/);
  const isDone = new RegExp(`^${scene.name} +3/3 +3 +Ready +\\d+[smh] `, "m");
  await vi.waitFor(async () => expect(await out("status")).toMatch(isDone), PATIENT);
  const rows = await json<readonly { readonly images: object; readonly state: string }[]>("pods", scene.name);
  expect(rows.map(({ images, state }) => [images, state])).toEqual(Array(3).fill([{ agent: "agent:v2" }, "ready"]));
  const history = await json<readonly { readonly images: string; readonly pods: number }[]>("history", scene.name);
  expect(history.map(({ images, pods }) => [images, pods])).toEqual([
    ["agent=agent:v2", 3],
    ["agent=agent:v1", 0],
  ]);
  expect(await out("undo", scene.name)).toMatch(/back to revision 1 \(agent=agent:v1\)/);
  await out("status", scene.name, ...DONE_IN_TIME);
  expect((await scene.pods()).map((pod) => imageOf(pod, "agent"))).toEqual(Array(3).fill("agent:v1"));
});

it("pause stops a rollout, resume continues it, and promote lowers the partition by steps", async () => {
  const scene = await settled(4, { ...STRATEGY, partition: 4 });
  expect(await out("pause", scene.name)).toBe(`${scene.name}: paused\n`);
  await out("set", "image", scene.name, "agent=agent:v2");
  expect(await out("promote", scene.name, "--step", "50%")).toMatch(/partition 4 → 2[\s\S]*The rollout is paused/);
  expect((await cli("status", scene.name, "-w")).code).toBe(3);
  expect(await scene.updated()).toEqual([]);
  expect(await out("resume", scene.name)).toBe(`${scene.name}: resumed\n`);
  await scene.untilUpdated(2);
  await scene.untilSettled();
  const [held] = (
    await json<readonly { readonly name: string; readonly isUpdated: boolean }[]>("pods", scene.name)
  ).filter(({ isUpdated }) => !isUpdated);
  expect(await out("explain", `pod/${scene.name}/${held?.name}`)).toMatch(
    /✗ KeptByPartition:[\s\S]*→ sidecarset promote/,
  );
  expect(await out("promote", scene.name)).toMatch(/partition 2 → 0: 0 of 4 pods stay/);
  await out("status", scene.name, ...DONE_IN_TIME);
});

it("canary gives new images to a share of running and new pods, promote completes it, and abort takes it back", async () => {
  const scene = await settled(10);
  const pin = async () => (await scene.set()).spec.injectionStrategy?.revision ?? {};
  const said = await out("canary", scene.name, "agent=agent:v2", "--share", "20%");
  expect(said).toMatch(/agent agent:v1 → agent:v2, for 20% of the pods; the others, new ones too, stay at scene-/);
  await scene.untilUpdated(2);
  expect(await pin()).toMatchObject({ policy: "Partial" });
  expect((await scene.set()).spec.updateStrategy?.partition).toBe("80%");
  expect((await cli("canary", scene.name, "agent=agent:v3")).stderr).toMatch(/are pinned to scene-.* already/);
  const metadata = { name: "new", namespace: scene.name, labels: scene.labels };
  const created = () =>
    clusterOf(apiServer()).create<Pod>(PODS, { metadata, spec: { containers: [APP] } }, { dryRun: true });
  const images = new Set<string | undefined>();
  for (let tries = 0; tries < 100 && images.size < 2; tries++) images.add(imageOf(await created(), "agent"));
  expect([...images].toSorted()).toEqual(["agent:v1", "agent:v2"]);
  await out("promote", scene.name, "--step", "30%");
  expect((await scene.set()).spec.updateStrategy?.partition).toBe("50%");
  await scene.untilUpdated(5);
  expect(await out("abort", scene.name)).toContain("aborted, back to revision 1");
  expect(await pin()).toEqual({});
  await out("status", scene.name, ...DONE_IN_TIME);
  await out("canary", scene.name, "agent=agent:v2");
  expect(await out("promote", scene.name)).toMatch(/0 of 10 pods stay at the old version, nor do new ones/);
  expect(await pin()).toEqual({});
  expect(await out("status", scene.name, ...DONE_IN_TIME)).toMatch(/10 of 10 pods updated/);
});

it("set partition and set max-unavailable change the limits of a rollout, and set image changes both in one write", async () => {
  const scene = await settled(4);
  expect(await out("set", "image", scene.name, "agent=agent:v2", "--partition", "3")).toMatch(/partition 3\n$/);
  await scene.untilUpdated(1);
  await scene.untilSettled();
  expect(await scene.updated()).toHaveLength(1);
  expect(await out("set", "max-unavailable", scene.name, "1")).toBe(`${scene.name}: maxUnavailable 2 → 1\n`);
  expect(await out("set", "partition", scene.name, "25%")).toBe(`${scene.name}: partition 3 → 25%\n`);
  await scene.untilUpdated(3);
  await scene.untilSettled();
  expect(await scene.updated()).toHaveLength(3);
  // The images are unchanged, so the command writes only the partition.
  expect(await out("set", "image", scene.name, "agent=agent:v2", "--partition", "0")).toBe(
    `${scene.name}: partition 0\n`,
  );
  await scene.untilUpdated(4);
});

it("version prints the versions of this program and of the API server", async () => {
  const { version } = JSON.parse(await readFile("package.json", "utf8"));
  expect(await out("version", "--client")).toBe(`sidecarset ${version}\n`);
  expect(await out("version", "--request-timeout", "10s")).toMatch(
    new RegExp(`^sidecarset ${version}\nAPI server v1\\.`),
  );
});

it("explain names the pods that use the budget, and abort returns all pods to the previous release", async () => {
  const scene = await settled(3, { type: "RollingUpdate", maxUnavailable: 1 });
  await out("set", "image", scene.name, "agent=agent:never-ready");
  await scene.untilTouched(1);
  const text = await out("explain", `sidecarset/${scene.name}`);
  expect(text).toMatch(new RegExp(`BudgetUsed: pods wait: 1 of at most 1 unavailable, held by ${scene.name}/`));
  const before = await generationOf(scene);
  expect(await out("abort", scene.name, "--dry-run")).toMatch(/dry run, nothing is stored/);
  expect(await generationOf(scene)).toBe(before);
  await out("abort", scene.name);
  await out("status", scene.name, ...DONE_IN_TIME);
  expect((await scene.pods()).map((pod) => imageOf(pod, "agent"))).toEqual(Array(3).fill("agent:v1"));
});

it("explain knows a pod older than the SidecarSet, one that is not selected, and one in an excluded namespace", async () => {
  const scene = await openScene({ selector: { matchLabels: { scene: "nobody" } } });
  await scene.createPod("early");
  await scene.createPod("other", {}, { labels: { scene: "other" } });
  await scene.patchSet({ op: "replace", path: "/spec/selector/matchLabels/scene", value: scene.name });
  const reasons = async (name: string) => {
    const only = ["--sidecarset", scene.name] as const;
    const { sidecarSets } = await json<{
      readonly sidecarSets: readonly { readonly steps: readonly { readonly reason: string }[] }[];
    }>("explain", `pod/${scene.name}/${name}`, ...only);
    return sidecarSets[0]?.steps.map(({ reason }) => reason);
  };
  expect(await reasons("other")).toEqual(["WebhookAsked", "SelectorNotMatched"]);
  expect((await reasons("early"))?.at(-1)).toMatch(/WebhookMissed|CreatedBeforeSidecarSet/);
  const system = `${scene.name}-system`;
  await scene.createNamespace(system, { "control-plane": "x" });
  await scene.cluster.create(
    PODS,
    listedPod({ name: "p", namespace: system, labels: scene.labels }, { containers: [APP] }),
  );
  expect(await out("explain", `pod/${system}/p`)).toMatch(/✗ NamespaceExcluded/);
});

it("a change that is based on an outdated read is refused in one sentence", async () => {
  const scene = await settled(1);
  const stale = await scene.set();
  await scene.patchSet({ op: "replace", path: "/spec/updateStrategy/maxUnavailable", value: 1 });
  const screen = createScreen({ out: process.stdout, err: process.stderr, mayColor: false });
  const session = new Session(screen, { kubeconfig }, ["table"]);
  const change = { spec: { updateStrategy: { paused: true } }, text: "paused" };
  const writing = changeSet(new Input([], {}), session, scene.cluster, { sidecarSet: stale, change });
  await expect(writing).rejects.toThrow(/was changed just now, by another client; look at it again, then repeat$/);
  expect((await scene.set()).spec.updateStrategy?.paused ?? false).toBe(false);
  const fresh = await scene.set();
  const status = { status: { ...fresh.status, collisionCount: 1 } };
  await scene.cluster.patch(
    SIDECARSETS,
    { name: scene.name },
    { type: "merge", body: status },
    { subresource: "status" },
  );
  // A pass may also write the SidecarSet. The command must not give up because of that.
  await changeSet(new Input([], {}), session, scene.cluster, { sidecarSet: fresh, change });
  expect((await scene.set()).spec.updateStrategy?.paused).toBe(true);
});

it("install prints every object that this control plane got at its setup, and uninstall names the same", async () => {
  const url = "https://x.example.com";
  const installed = parseAllDocuments(await out("install", "--url", url)).map((one) => one.toJS());
  expect(installed).toEqual(JSON.parse(JSON.stringify(installation({ url }))));
  const named = parseAllDocuments(await out("uninstall", "--all")).map((one) => one.toJS());
  const key = ({ kind, metadata }: KubernetesObject) => `${kind} ${metadata?.namespace ?? ""}/${metadata?.name}`;
  expect(named.map(key).toSorted()).toEqual(installed.map(key).toSorted());
  expect(installed.length).toBeGreaterThanOrEqual(14);
});

it("webhooks prints registrations that this API server accepts", async () => {
  const printed = parseAllDocuments(await out("webhooks", "--url", "https://x.example.com")).map((one) => one.toJS());
  expect(printed.map(({ kind }) => kind)).toEqual([
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
  ]);
  for (const object of printed) {
    const other = { ...object, metadata: { ...object.metadata, name: "tried-out" } };
    const taken = await clusterOf(apiServer()).create<KubernetesObject>(installedResource(object), other, {
      dryRun: true,
    });
    expect(taken.metadata?.uid).toBeDefined();
  }
});

it("migrate prints the steps from OpenKruise and back", async () => {
  await settled(1);
  expect(await out("migrate", "from-kruise", "--url", "https://x.example.com")).toMatch(/kruise/i);
  expect(await out("migrate", "to-kruise")).toMatch(/kruise/i);
});

it("bash runs the printed completion and gets the names of objects in the cluster", async () => {
  const scene = await settled(1);
  await writeFile(join(folder, "sidecarset"), `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`, { mode: 0o755 });
  await writeFile(join(folder, "completion"), await out("completion", "bash"));
  const script = `. ./completion; COMP_WORDS=(sidecarset status scene-); COMP_CWORD=2; _sidecarset; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const env = { ...process.env, KUBECONFIG: kubeconfig, PATH: `${folder}:${process.env["PATH"]}` };
  const { stdout } = await promisify(execFile)("bash", ["-c", script], { cwd: folder, env });
  expect(stdout.split("\n")).toContain(scene.name);
  expect(await out("complete-words", "--", "status", "scene-")).toContain(scene.name);
});

/** Commands that have their own test file → that file, and a pattern of the call in it. */
const ELSEWHERE: Readonly<Record<string, readonly [string, RegExp]>> = {
  check: ["test/e2e/cli-check.e2e.ts", /\["check"/],
  compile: ["test/e2e/compile.e2e.ts", /\["compile"/],
  "fleet apply": ["test/cli/fleet-commands.slow.ts", /"fleet", "apply"/],
  "fleet status": ["test/cli/fleet-commands.slow.ts", /"fleet", "status"/],
  "fleet undo": ["test/cli/fleet-commands.slow.ts", /"fleet", "undo"/],
  mcp: ["test/cli/tools.slow.ts", /"mcp"/],
  "path-secrets": ["test/cli/webhooks.slow.ts", /\["path-secrets"/],
  report: ["test/e2e/report.e2e.ts", /\["report"/],
  serve: ["test/e2e/support/newcomer.ts", /scripts\.serve/],
  tick: ["test/e2e/first-steps.e2e.ts", /npm run --silent tick/],
  // The demo has its own cluster.
  demo: ["test/demo/demo.slow.ts", /"demo"/],
};

it("every command of the program was run", async () => {
  const rest = COMMANDS.map(({ name }) => name).filter((name) => !ran.has(name));
  expect(ran.size).toBeGreaterThanOrEqual(19);
  expect(rest.toSorted()).toEqual(Object.keys(ELSEWHERE).toSorted());
  for (const [file, call] of Object.values(ELSEWHERE)) expect(await readFile(file, "utf8"), file).toMatch(call);
});
