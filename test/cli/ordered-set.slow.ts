/** Tests the verbs of the command line for ordered sets, on the embedded cluster. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { handler } from "../../functions/lambda/ordered-set.ts";
import type { StatefulSetSpec } from "../../shared/api/stateful-set.ts";
import type { SetPassReport } from "../../shared/controller/statefulset/report.ts";
import { sidecarSetCrd } from "../../shared/install/crd/sidecarset-crd.ts";
import { PODS, type Resource, STATEFUL_SETS } from "../../shared/kube/port.ts";
import {
  createSet,
  images,
  keyOf,
  NAMESPACE,
  pass,
  patchSpec,
  readPods,
  readSet,
  type SetCluster,
  settle,
  startSetCluster,
  template,
} from "../controller/ordered-set/fixture.ts";
import { PATIENT } from "../support/patient.ts";
import { type Outcome, runHere } from "./run-cli.ts";

const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const BUILT_IN: Resource = { group: "apps", version: "v1", plural: "statefulsets", namespaced: true };
const KIND = "statefulset.apps.kruise.io";

let world: SetCluster;
let folder: string;
let kubeconfig: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "cli-ordered-"));
  kubeconfig = join(folder, "kubeconfig");
  world = await startSetCluster();
  await world.cluster.create(DEFINITIONS, sidecarSetCrd({ url: "https://127.0.0.1:1" }));
  await writeFile(kubeconfig, world.local.kubeconfig());
});
afterAll(async () => {
  await world?.local.close();
  await rm(folder, { recursive: true, force: true });
});

const cli = (...args: readonly string[]): Promise<Outcome> =>
  runHere(["--kubeconfig", kubeconfig, "-n", NAMESPACE, ...args]);

/** Returns the stdout of a command that succeeds. */
async function out(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(...args);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout;
}

const json = async <T>(...args: readonly string[]): Promise<T> => JSON.parse(await out(...args, "-o", "json")) as T;
const rolling = (rollingUpdate: object): StatefulSetSpec => ({
  updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0, maxUnavailable: 1, ...rollingUpdate } },
});

/** Creates a set and waits until its pods run app:1. */
async function made(name: string, spec: StatefulSetSpec = {}): Promise<string> {
  await createSet(world.cluster, name, { replicas: 3, ...spec });
  await settle(world.cluster, name);
  return `${KIND}/${name}`;
}

async function fileOf(name: string, spec: object): Promise<string> {
  const file = join(folder, `${name}.yaml`);
  const metadata = { name };
  const given = { selector: { matchLabels: { app: name } }, serviceName: name, template: template(name), replicas: 3 };
  await writeFile(
    file,
    stringify({ apiVersion: "apps.kruise.io/v1beta1", kind: "StatefulSet", metadata, spec: { ...given, ...spec } }),
  );
  return file;
}

const generationOf = async (name: string) => (await readSet(world.cluster, name)).metadata?.generation;
const steps = ({ sets }: SetPassReport) => sets[0]?.plan?.steps.map(({ pods }) => pods.map((pod) => pod.name));

describe("plan of an ordered set:", () => {
  it("plan -f shows the steps of a change and writes nothing", async () => {
    const target = await made("planned");
    const file = await fileOf("planned", { template: template("planned", "app:2") });
    const before = await generationOf("planned");
    const report = await json<SetPassReport>("plan", target, "-f", file, "--ready-after", "30s");
    expect(steps(report)).toEqual([["planned-2"], ["planned-1"], ["planned-0"]]);
    expect(report.sets[0]?.plan).toMatchObject({ seconds: 90, isComplete: true, readyAfterSeconds: 30 });
    expect(await generationOf("planned")).toBe(before);
    expect(await out("plan", target, "-f", file)).toBe(
      [
        "StatefulSet shop/planned: 3 of 3 pods, 3 ready, 0 updated",
        "Every pod is taken to be ready 5s after it was created or changed.",
        "AT   UPDATED  READY  PODS",
        "0s   0        2/3    replace planned-2",
        "5s   1        2/3    replace planned-1",
        "10s  2        2/3    replace planned-0",
        "3 pods in 3 steps, 15s, at least 2 of 3 ready at any time. All are there, updated and ready then.",
        "",
      ].join("\n"),
    );
    expect(await out("plan", target, "-f", file, "--pods")).toMatch(/Step 2, at 5s\n {2}replace planned-1\n/);
  });

  it("plan prints the same report as a dry run of the function", async () => {
    const target = await made("answered", { replicas: 2, ...rolling({ podUpdatePolicy: "InPlaceIfPossible" }) });
    const path = "/spec/template/spec/containers/0/image";
    const operations = [{ op: "replace", path, value: "app:2" }] as const;
    await world.cluster.patch(STATEFUL_SETS, keyOf("answered"), { type: "json", operations });
    vi.stubEnv("KUBECONFIG", kubeconfig);
    vi.stubEnv("LOG_LEVEL", "error");
    const answer = await handler(
      { set: `${NAMESPACE}/answered`, dryRun: true },
      { getRemainingTimeInMillis: () => 30_000 },
    );
    vi.unstubAllEnvs();
    const printed = await json<SetPassReport>("plan", target);
    const alike = ({ startedAt: _, durationMs: __, ...report }: SetPassReport) => JSON.parse(JSON.stringify(report));
    expect(alike(printed)).toEqual(alike(answer));
    expect(steps(printed)).toEqual([["answered-1"], ["answered-0"]]);
    expect(await out("plan", target, "--pods")).toMatch(/update answered-1 {2}main app:1 → app:2/);
  });

  it("a dry run of the function over all sets writes nothing", async () => {
    await made("untouched", { replicas: 2, ...rolling({ podUpdatePolicy: "InPlaceIfPossible" }) });
    const operations = [{ op: "replace", path: "/spec/template/spec/containers/0/image", value: "app:2" }] as const;
    await world.cluster.patch(STATEFUL_SETS, keyOf("untouched"), { type: "json", operations });
    vi.stubEnv("KUBECONFIG", kubeconfig);
    vi.stubEnv("LOG_LEVEL", "error");
    const before = (await world.cluster.list(PODS, {})).metadata.resourceVersion;
    const report = await handler({ dryRun: true }, { getRemainingTimeInMillis: () => 30_000 });
    vi.unstubAllEnvs();
    expect(report.sets.some(({ name }) => name === "untouched")).toBe(true);
    expect((await world.cluster.list(PODS, {})).metadata.resourceVersion).toBe(before);
  });

  it("plan exits with 0 when the partition keeps pods, and with 3 when a pod that is being deleted blocks the plan", async () => {
    const target = await made("held", { ...rolling({ partition: 2 }) });
    const file = await fileOf("held", { template: template("held", "app:2"), ...rolling({ partition: 2 }) });
    expect(await out("plan", target, "-f", file)).toMatch(
      /Then: 3 of 3 pods, 3 ready, 1 updated; the partition keeps 2/,
    );
    await world.cluster.patch(PODS, keyOf("held-0"), {
      type: "merge",
      body: { metadata: { finalizers: ["example.com/a"] } },
    });
    await world.cluster.delete(PODS, keyOf("held-0"));
    const { code, stdout } = await cli("plan", target, "-f", file);
    expect([code, stdout]).toEqual([
      3,
      expect.stringMatching(/No pod would be touched\.\nThen: .*held-0 is being deleted/),
    ]);
    await world.cluster.patch(PODS, keyOf("held-0"), { type: "merge", body: { metadata: { finalizers: null } } });
  });

  it.each<readonly [string, object, RegExp]>([
    [
      "a change that the webhook refuses",
      { serviceName: "other" },
      /serviceName.* are forbidden; correct it there$|forbidden; correct it there$/,
    ],
    ["a value that cannot be decoded", { replicas: "many" }, /refused\.yaml:1:1: .*replicas.*; correct it there$/],
  ])("plan refuses a file with %s in one sentence", async (_title, spec, sentence) => {
    await createSet(world.cluster, "refused", { replicas: 1 }).catch(() => undefined);
    const { code, stderr } = await cli("plan", `${KIND}/refused`, "-f", await fileOf("refused", spec));
    expect([code, stderr.trimEnd()]).toEqual([2, expect.stringMatching(sentence)]);
  });
});

describe("verbs on an ordered set:", () => {
  it("pause stops an update, and resume continues it", async () => {
    const target = await made("paused");
    expect(await out("pause", target, "--dry-run")).toBe("paused: paused (dry run, nothing is stored)\n");
    expect((await readSet(world.cluster, "paused")).spec.updateStrategy?.rollingUpdate?.paused ?? false).toBe(false);
    expect(await out("pause", target)).toBe("paused: paused\n");
    expect(await out("pause", target)).toBe("paused: is paused already\n");
    await patchSpec(world.cluster, "paused", { template: template("paused", "app:2") });
    await settle(world.cluster, "paused");
    expect(images(await readPods(world.cluster, "paused"))).toEqual(["app:1", "app:1", "app:1"]);
    const { code, stdout } = await cli("status", target, "-w");
    expect([code, stdout]).toEqual([3, "3 of 3 pods, 3 ready, 0 updated; the update is paused\n"]);
    expect(await json("resume", target)).toMatchObject({
      namespace: NAMESPACE,
      statefulSet: "paused",
      change: "resumed",
    });
    await settle(world.cluster, "paused");
    expect(images(await readPods(world.cluster, "paused"))).toEqual(["app:2", "app:2", "app:2"]);
    expect(await out("status", target, "-w")).toBe("3 of 3 pods, 3 ready, 3 updated\n");
  });

  it("undo restores only the pod template of a revision, and the pods follow", async () => {
    const target = await made("undone", { replicas: 2 });
    await patchSpec(world.cluster, "undone", {
      template: {
        metadata: { labels: { app: "undone", extra: "1" } },
        spec: { containers: [{ name: "main", image: "app:2" }] },
      },
      replicas: 3,
    });
    await settle(world.cluster, "undone");
    expect(await out("history", target)).toMatch(
      /^REVISION {2}NAME +CREATED +PODS {2}IMAGES\n2 \* +undone-\w+ +\S+ +3 +main=app:2\n1 +undone-\w+ +\S+ +0 +main=app:1\n$/,
    );
    const before = await generationOf("undone");
    await out("undo", target, "--dry-run");
    expect(await generationOf("undone")).toBe(before);
    expect(await out("undo", target)).toBe("undone: back to revision 1 (main=app:1)\n");
    const { replicas, template: restored } = (await readSet(world.cluster, "undone")).spec;
    expect([replicas, restored?.metadata?.labels]).toEqual([3, { app: "undone" }]);
    await settle(world.cluster, "undone");
    expect(images(await readPods(world.cluster, "undone"))).toEqual(["app:1", "app:1", "app:1"]);
    const rows = await json<
      readonly { readonly revision: number; readonly isCurrent: boolean; readonly pods: number }[]
    >("history", target);
    expect(rows.map(({ revision, isCurrent, pods }) => [revision, isCurrent, pods])).toEqual([
      [3, true, 3],
      [2, false, 0],
    ]);
    expect(await out("undo", target, "--to-revision", "3")).toMatch(/has the pod template of revision 3 already/);
    expect((await cli("undo", target, "--to-revision", "7")).stderr).toMatch(/there is no such revision, but 3, 2\n$/);
  });

  it("undo says that the update is paused and that the partition holds pods back", async () => {
    const target = await made("kept", { replicas: 1, ...rolling({ paused: true, partition: 1 }) });
    expect((await cli("undo", target)).stderr).toMatch(/kept has no previous revision, of 1 revision/);
    await patchSpec(world.cluster, "kept", { template: template("kept", "app:2") });
    await settle(world.cluster, "kept");
    expect(await out("undo", target)).toMatch(/The update is paused: .*\nThe partition is 1: /);
  });

  it("a change to a set that another client has just changed is refused in one sentence", async () => {
    const target = await made("raced", { replicas: 1 });
    const { cluster } = world;
    const real = await import("../../functions/cli/statefulset/change-statefulset.ts");
    const { Session } = await import("../../functions/cli/session.ts");
    const { Input } = await import("../../functions/cli/command.ts");
    const { createScreen } = await import("../../functions/terminal/screen.ts");
    const before = await readSet(cluster, "raced");
    await out("pause", target);
    const screen = createScreen({ out: process.stdout, err: process.stderr, mayColor: false });
    const session = new Session(screen, { kubeconfig }, ["table"]);
    const after = { ...before, spec: { ...before.spec, replicas: 5 } };
    const changing = real.changeStatefulSet(new Input([], {}), session, cluster, { before, after, text: "scaled" });
    await expect(changing).rejects.toThrow(
      /^StatefulSet shop\/raced was changed just now, by another client; look at it/,
    );
    expect((await readSet(cluster, "raced")).spec.replicas).toBe(1);
  });

  it("a change succeeds although the status was written in the meantime", async () => {
    const target = await made("busy", { replicas: 1 });
    const before = await readSet(world.cluster, "busy");
    const body = { status: { ...before.status, collisionCount: 7 } };
    const key = { namespace: "shop", name: "busy" };
    await world.cluster.patch(STATEFUL_SETS, key, { type: "merge", body }, { subresource: "status" });
    const { changeStatefulSet } = await import("../../functions/cli/statefulset/change-statefulset.ts");
    const { Session } = await import("../../functions/cli/session.ts");
    const { Input } = await import("../../functions/cli/command.ts");
    const { createScreen } = await import("../../functions/terminal/screen.ts");
    const screen = createScreen({ out: process.stdout, err: process.stderr, mayColor: false });
    const session = new Session(screen, { kubeconfig }, ["table"]);
    const after = { ...before, spec: { ...before.spec, replicas: 2 } };
    await changeStatefulSet(new Input([], {}), session, world.cluster, { before, after, text: "scaled" });
    const { spec, status, metadata } = await readSet(world.cluster, "busy");
    expect([spec.replicas, status?.collisionCount]).toEqual([2, 7]);
    expect(metadata?.resourceVersion).not.toBe(before.metadata?.resourceVersion);
    expect(await out("status", target)).toContain("busy");
  });

  it("status prints a bar and a tree of revisions and pods", async () => {
    const target = await made("shown", { ...rolling({ partition: 2 }) });
    await patchSpec(world.cluster, "shown", { template: template("shown", "app:2") });
    expect(await out("status", target)).toMatch(/No pass has seen the latest change yet\./);
    await settle(world.cluster, "shown");
    const text = await out("status", target);
    expect(text).toMatch(
      /^shop\/shown {2}█{6}░{14} 1\/3\n3 of 3 pods, 3 ready, 1 updated; the partition keeps 2 of them\n/,
    );
    expect(text).toMatch(
      /├─ shown-\w+, revision 2, the newest, created \S+, 1 pod\n│ {5}main=app:2\n│ {2}└─ shown-2 {2}ready\n/,
    );
    expect(text).toMatch(
      /└─ shown-\w+, revision 1, created \S+, 2 pods\n {6}main=app:1\n {3}├─ shown-1 {2}ready, of an older template\n/,
    );
    expect(await json("status", target)).toMatchObject({ namespace: NAMESPACE, name: "shown", isSeen: true });
    expect((await cli("status", target, "-w")).code).toBe(0);
  });
});

describe("explain of an ordered set:", () => {
  const reasons = async (...args: readonly string[]) => {
    const told = await json<{ readonly steps?: Trace; readonly orderedSet?: { readonly steps: Trace } }>(
      "explain",
      ...args,
    );
    return (told.steps ?? told.orderedSet?.steps ?? []).map(({ reason }) => reason);
  };
  type Trace = readonly { readonly reason: string }[];

  it("explain gives the reasons for the set and for updated, waiting, missing and unwanted pods", async () => {
    const target = await made("told", { ...rolling({ partition: 2 }) });
    expect(await reasons(target)).toEqual(["AllAsWanted"]);
    await patchSpec(world.cluster, "told", { template: template("told", "app:2") });
    await pass(world.cluster);
    expect(await reasons(`pod/${NAMESPACE}/told-2`)).toEqual(["OrdinalInRange", "UpdatedAndReady"]);
    expect(await reasons("pod/told-0")).toEqual(["OrdinalInRange", "OutOfDate", "KeptByPartition", "TickRunning"]);
    expect(await reasons("pod/told-7")).toEqual(["OutOfRange"]);
    expect(await reasons(target)).toEqual(["UnderWay", "KeptByPartition", "TickRunning"]);
    const text = await out("explain", "pod/told-0");
    expect(text).toMatch(
      /^pod shop\/told-0, StatefulSet told\n {2}✓ OrdinalInRange: ordinal 0 of told; 3 pods are wanted, ordinals 0 to 2\n/,
    );
    expect(text).toMatch(
      /· OutOfDate: the pod has revision 1 \(told-\w+\), the newest template is revision 2 \(told-\w+\)\n/,
    );
    await patchSpec(world.cluster, "told", { replicas: 5 });
    expect(await reasons("pod/told-3")).toEqual([
      "OrdinalInRange",
      "PodMissing",
      "NextInLine",
      "ChangeNotSeen",
      "TickRunning",
    ]);
    expect(await reasons("pod/told-4")).toEqual([
      "OrdinalInRange",
      "PodMissing",
      "OrderWaits",
      "ChangeNotSeen",
      "TickRunning",
    ]);
  });

  it("explain names the pod that blocks the order, and undo plus deleting that pod fixes the set", async () => {
    const target = await made("broken");
    await patchSpec(world.cluster, "broken", { template: template("broken", "app:does-not-exist") });
    const untilStuck = async () => {
      await pass(world.cluster, { set: keyOf("broken"), follow: false });
      expect((await json<{ readonly isStuck: boolean }>("status", target)).isStuck).toBe(true);
    };
    await vi.waitFor(untilStuck, PATIENT);
    expect((await cli("status", target, "-w")).code).toBe(3);
    expect(await out("explain", target)).toMatch(
      /✗ ContainerFailing: broken-2 is not ready \(container main: (ImagePullBackOff|ErrImagePull)\)\n.*then kubectl -n \S+ delete pod broken-2: a set that keeps order/,
    );
    const { code, stdout } = await cli("plan", target);
    expect([code, stdout]).toEqual([3, expect.stringMatching(/^No pod would be touched\.$/m)]);
    expect(await out("undo", target)).toMatch(/kubectl -n \S+ delete pod broken-2 lets it go on\.\n$/);
    await world.cluster.delete(PODS, keyOf("broken-2"));
    await settle(world.cluster, "broken");
    expect(images(await readPods(world.cluster, "broken"))).toEqual(["app:1", "app:1", "app:1"]);
    expect(await out("status", target, "-w")).toBe("3 of 3 pods, 3 ready, 3 updated\n");
  });

  it("explain says that a pod does not exist when no set wants it", async () => {
    expect((await cli("explain", "pod/nobody-3")).stderr).toMatch(/^there is no pod nobody-3 in the namespace shop/);
  });
});

describe("names of ordered sets:", () => {
  it.each<readonly [string, readonly string[], RegExp]>([
    [
      "that two kinds may have",
      ["plan", "statefulset/db"],
      /^statefulset\/db may be one of two kinds: write statefulset\.apps\.kruise\.io\/db;/,
    ],
    ["that two kinds in short form may have", ["pause", "sts/db"], /write statefulset\.apps\.kruise\.io\/db;/],
    [
      "of the built-in StatefulSet",
      ["undo", "statefulset.apps/db"],
      /StatefulSets of apps\/v1 are run by their own controller; kubectl rollout/,
    ],
    [
      "of another kind",
      ["status", "deployment/web"],
      /^deployment\/web: write the name of a SidecarSet, or statefulset\.apps\.kruise\.io\/NAME/,
    ],
    ["of another kind, given to explain", ["explain", "service/web"], /^service\/web: write the name of a SidecarSet/],
    [
      "with control characters",
      ["plan", `${KIND}/\u001b[2Jdb`],
      /^statefulset\.apps\.kruise\.io\/\\u001b\[2Jdb: write statefulset/,
    ],
    ["with .. in its path", ["plan", `${KIND}/..`], /^statefulset\.apps\.kruise\.io\/\.\.: write/],
    ["with too many parts", ["resume", `${KIND}/a/b/c`], /: write statefulset\.apps\.kruise\.io\/NAME, or/],
    [
      "that does not exist",
      ["status", `${KIND}/nobody`],
      /^there is no statefulset\.apps\.kruise\.io nobody in the namespace shop, there are /,
    ],
    [
      "given to a command that takes only SidecarSets",
      ["promote", `${KIND}/db`],
      /write the name of a SidecarSet; only plan, /,
    ],
  ])("the command line refuses a name %s in one sentence", async (_title, args, sentence) => {
    const { code, stdout, stderr } = await cli(...args);
    expect([code, stdout, stderr.trimEnd()]).toEqual([2, "", expect.stringMatching(sentence)]);
    expect(stderr.trimEnd()).not.toContain("\n");
  });

  it("plan says that a StatefulSet of apps/v1 belongs to its own controller", async () => {
    const spec = {
      selector: { matchLabels: { app: "own" } },
      serviceName: "own",
      template: template("own"),
      replicas: 0,
    };
    await world.cluster.create(BUILT_IN, { metadata: { name: "own", namespace: NAMESPACE }, ...{ spec } });
    expect((await cli("plan", `${KIND}/own`)).stderr).toMatch(
      /no .* own in the namespace shop, but a StatefulSet of apps\/v1: its own controller runs it/,
    );
  });

  it("names of sets are completed only for commands that take sets", async () => {
    await createSet(world.cluster, "worded", { replicas: 0 });
    expect(await out("complete-words", "--", "plan", `${KIND}/wor`)).toBe(`${KIND}/worded\n`);
    expect(await out("complete-words", "--", "explain", KIND)).toContain(`${KIND}/worded\n`);
    expect(await out("complete-words", "--", "promote", KIND)).toBe("");
  });

  it("a name may include the namespace and every spelling of the kind that kubectl knows", async () => {
    await createSet(world.cluster, "spelled", { replicas: 0 });
    const spelled = ["asts", "statefulsets.apps.kruise.io", "statefulset.v1alpha1.apps.kruise.io"];
    for (const name of [`${KIND}/${NAMESPACE}/spelled`, ...spelled.map((kind) => `${kind}/spelled`)])
      expect(await json("status", name)).toMatchObject({ name: "spelled" });
  });
});

it("preview shows what a SidecarSet adds to the pods of an ordered set", async () => {
  const sidecarSet = join(folder, "sidecarset.yaml");
  const spec = { selector: { matchLabels: { app: "viewed" } }, containers: [{ name: "agent", image: "agent:1" }] };
  const header = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name: "log-agent" } };
  await writeFile(sidecarSet, stringify({ ...header, spec }));
  const text = await out("preview", "-f", await fileOf("viewed", {}), "-f", sidecarSet);
  expect(text).toMatch(/sidecarset-injected-list: log-agent[\s\S]* image: agent:1[\s\S]* image: app:1/);
});
