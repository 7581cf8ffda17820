/** Tests common tools on an embedded cluster with webhooks and passes: agents with the official SDK, and k9s. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";
import { COMMANDS } from "../../functions/cli/commands/index.ts";
import { Confirmations } from "../../functions/cli/input/confirmations.ts";
import { runProgram } from "../../functions/cli/program.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { isReady } from "../controller/fixture.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";
import { CLI, runCli } from "./run-cli.ts";

let test: ServedCluster;
let reader: Client;
let writer: Client;

const setOf = (name: string, container: object = {}, spec: object = {}) => ({
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name },
  spec: {
    selector: { matchLabels: { app: name } },
    containers: [{ name: `${name}-proxy`, image: "registry.example/proxy:1", ...container }],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 },
    ...spec,
  },
});

async function connected(...options: readonly string[]): Promise<Client> {
  return await connectedAs(new Client({ name: "on-call", version: "1" }), ...options);
}

async function connectedAs(client: Client, ...options: readonly string[]): Promise<Client> {
  const args = [CLI, "mcp", "--kubeconfig", test.kubeconfig, ...options];
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "inherit" }));
  return client;
}

async function call(client: Client, name: string, given: Readonly<Record<string, unknown>> = {}) {
  const { content, isError } = await client.callTool({ name, arguments: given });
  const [first] = content as readonly { readonly text: string }[];
  return { text: first?.text ?? "", isError: isError === true };
}

const read = (name: string) => test.client.get<SidecarSet>(SIDECARSETS, { name });
const podsOf = async (app: string) =>
  (await test.client.list<Pod>(PODS, { namespace: "default", labelSelector: `app=${app}` })).items;

beforeAll(async () => {
  test = await startServedCluster(1_000);
  for (const set of ["agent", "mesh"]) {
    await test.client.create(SIDECARSETS, setOf(set));
    for (const index of [0, 1, 2, 3])
      await test.client.create(PODS, newPod({ namespace: "default", name: `${set}-${index}`, labels: { app: set } }));
    await vi.waitFor(async () => expect((await podsOf(set)).filter(isReady)).toHaveLength(4), PATIENT);
  }
  // Every client may go back to the first release when its pods are ready.
  await vi.waitFor(async () => expect((await read("agent")).status?.updatedReadyPods).toBe(4), PATIENT);
  await runCli([
    "--kubeconfig",
    test.kubeconfig,
    "set",
    "image",
    "agent",
    "agent-proxy=registry.example/proxy:does-not-exist",
  ]);
  await vi.waitFor(async () => expect((await podsOf("agent")).filter((pod) => !isReady(pod))).toHaveLength(2), PATIENT);
  await vi.waitFor(async () => expect((await read("agent")).status?.updatedPods).toBe(2), PATIENT);
  reader = await connected();
  writer = await connected("--allow-writes");
});
afterAll(async () => {
  await reader?.close();
  await writer?.close();
  await test?.close();
});

/** The tool that an agent must choose for a question, and the answer in its text. */
interface Question {
  readonly ask: string;
  readonly tool: string;
  readonly given?: () => Promise<Readonly<Record<string, unknown>>>;
  readonly answer: (text: string) => unknown;
  /** reads the expected answer from the cluster */
  readonly truth: () => Promise<unknown>;
}

const bad = async () => (await podsOf("agent")).filter((pod) => !isReady(pod)).map(({ metadata }) => metadata?.name);
const good = async () => (await podsOf("agent")).filter(isReady).map(({ metadata }) => metadata?.name);
const namesIn = (text: string) => [...new Set(text.match(/agent-\d(?![\w-])/g))].toSorted();
const sorted = async (names: Promise<readonly (string | undefined)[]>) => (await names).toSorted();
const changed = stringify(setOf("mesh", { image: "registry.example/proxy:2" }));

const QUESTIONS: readonly Question[] = [
  {
    ask: "Which rollout needs me?",
    tool: "status",
    answer: (text) => /^(\S+) .*\bBlocked\b/m.exec(text)?.[1],
    truth: async () => "agent",
  },
  {
    ask: "Why is this pod old?",
    tool: "explain",
    given: async () => ({ subject: `pod/${(await good())[0]}`, namespace: "default" }),
    answer: (text) =>
      /BudgetUsed: .*held by (.*)/
        .exec(text)?.[1]
        ?.match(/agent-\d/g)
        ?.toSorted(),
    truth: () => sorted(bad()),
  },
  {
    ask: "Why does the rollout not go on, and what can I do?",
    tool: "explain",
    given: async () => ({ subject: "agent" }),
    answer: (text) => [/ImagePullBackOff/.test(text), /→ sidecarset undo agent/.test(text)],
    truth: async () => [true, true],
  },
  {
    ask: "Which pods fail?",
    tool: "pods",
    given: async () => ({ name: "agent", state: "unready" }),
    answer: namesIn,
    truth: () => sorted(bad()),
  },
  {
    ask: "Is it safe to go on?",
    tool: "plan",
    given: async () => ({ name: "agent" }),
    answer: (text) => [/Nothing would be done/.test(text), /exit code 3/.test(text)],
    truth: async () => [true, true],
  },
  {
    ask: "Which release can I go back to?",
    tool: "history",
    given: async () => ({ name: "agent" }),
    answer: (text) => /^ *(\d+) .*\bready\b.*registry\.example\/proxy:1/m.exec(text)?.[1] ?? text,
    truth: async () => "1",
  },
  {
    ask: "What does this file change?",
    tool: "diff",
    given: async () => ({ manifest: changed }),
    answer: (text) => [/\+ "(.*)"/.exec(text)?.[1], /(\d+) will be updated in place/.exec(text)?.[1]],
    truth: async () => ["registry.example/proxy:2", "4"],
  },
  {
    ask: "How long does it take, and how many pods are down at once?",
    tool: "plan",
    given: async () => ({ manifest: changed, readyAfter: "30s" }),
    answer: (text) => /4 pods in 2 steps, (\w+), at most (\d) unavailable at once/.exec(text)?.slice(1),
    truth: async () => ["1m", "2"],
  },
  {
    ask: "What does a new pod get?",
    tool: "preview",
    given: async () => ({
      manifest: stringify(newPod({ namespace: "default", name: "new", labels: { app: "mesh" } })),
    }),
    answer: (text) => /image: (registry\.example\S+)/.exec(text)?.[1],
    truth: async () => (await read("mesh")).spec.containers?.[0]?.image,
  },
  {
    ask: "Is this file right?",
    tool: "lint",
    given: async () => ({ manifest: changed.replace("updateStrategy", "updateStratgy") }),
    answer: (text) => /no field spec\.updateStratgy, did you mean (\w+)/.exec(text)?.[1],
    truth: async () => "updateStrategy",
  },
];

it.each(QUESTIONS)(
  "a scripted client answers “$ask” from the text of one tool",
  async ({ tool, given, answer, truth }) => {
    const { text, isError } = await call(reader, tool, await given?.());
    expect([isError, text]).toEqual([false, expect.any(String)]);
    expect(answer(text)).toEqual(await truth());
  },
);

it("check names the blocked rollout", async () => {
  expect((await call(reader, "check")).text).toContain("agent");
});

it("a server without --allow-writes lists no tool that writes, refuses the names of such tools, and gives no confirmation", async () => {
  const { tools } = await reader.listTools();
  expect(tools.map(({ name }) => name).toSorted()).toEqual([
    "check",
    "diff",
    "explain",
    "history",
    "lint",
    "plan",
    "pods",
    "preview",
    "status",
  ]);
  expect(tools.filter(({ annotations }) => annotations?.readOnlyHint !== true)).toEqual([]);
  expect(await call(reader, "pause", { name: "mesh" })).toEqual({ text: "pause: no such tool", isError: true });
  const { text } = await call(reader, "plan", { name: "mesh", action: "pause" });
  expect(text).toMatch(/^pause mesh: paused\n/);
  expect(text).not.toContain("confirmation:");
});

async function confirmationFor(given: Readonly<Record<string, unknown>>): Promise<string> {
  const { text, isError } = await call(writer, "plan", given);
  expect([isError, text]).toEqual([false, expect.stringMatching(/^confirmation: \S+$/m)]);
  return /^confirmation: (\S+)$/m.exec(text)?.[1] ?? "";
}
const isPaused = async (name: string) => (await read(name)).spec.updateStrategy?.paused ?? false;

it("a tool writes once with the confirmation of its plan, and never with another confirmation", async () => {
  const without = await call(writer, "pause", { name: "mesh" });
  expect(without).toEqual({ isError: true, text: "pause: must have required property 'confirmation'" });
  expect(await call(writer, "pause", { name: "mesh", confirmation: "made-up" })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^the confirmation is unknown, used or older than 5 minutes; call plan for pause mesh/),
  });
  const other = await confirmationFor({ name: "agent", action: "pause" });
  expect(await call(writer, "pause", { name: "mesh", confirmation: other })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^the confirmation is for pause agent, not for pause mesh/),
  });
  const options = await confirmationFor({ name: "mesh", action: "set_partition", pods: "3" });
  expect(await call(writer, "set_partition", { name: "mesh", pods: "1", confirmation: options })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^the confirmation is for set partition mesh 3, not for set partition mesh 1/),
  });
  expect([await isPaused("mesh"), (await read("mesh")).spec.updateStrategy?.partition ?? 0]).toEqual([false, 0]);

  const confirmation = await confirmationFor({ name: "mesh", action: "pause" });
  expect(await call(writer, "pause", { name: "mesh", confirmation })).toEqual({ isError: false, text: "mesh: paused" });
  expect(await isPaused("mesh")).toBe(true);
  await runCli(["--kubeconfig", test.kubeconfig, "resume", "mesh"]);
  expect(await call(writer, "pause", { name: "mesh", confirmation })).toMatchObject({ isError: true });
  expect(await isPaused("mesh")).toBe(false);
});

it("a change that was confirmed for another generation than the stored one is refused", async () => {
  const { generation = 0 } = (await read("mesh")).metadata ?? {};
  const err: string[] = [];
  const stderr = { write: (text: string) => err.push(text) };
  const io = { name: "sidecarset", version: "0", mayColor: false, stdout: { write: () => true }, stderr };
  const args = ["--kubeconfig", test.kubeconfig, "pause", "mesh"];
  expect(await runProgram(COMMANDS, args, { ...io, generation: generation - 1 })).toBe(2);
  expect(err.join("")).toMatch(/^SidecarSet mesh was changed just now, by another client/);
  expect(await isPaused("mesh")).toBe(false);
});

it("if the client can ask, a write happens once the person has accepted it, and never if the person declines", async () => {
  const client = new Client({ name: "asks", version: "1" }, { capabilities: { elicitation: {} } });
  const asked: string[] = [];
  const answers = ["decline", "accept"] as const;
  client.setRequestHandler(ElicitRequestSchema, ({ params: { message } }) => {
    asked.push(message);
    return { action: answers[asked.length - 1] ?? "cancel", content: {} };
  });
  const asking = await connectedAs(client, "--allow-writes");
  const maxUnavailable = async () => (await read("mesh")).spec.updateStrategy?.maxUnavailable;
  const set = async () => {
    const { text } = await call(asking, "plan", { name: "mesh", action: "set_max_unavailable", pods: "3" });
    const [, confirmation] = /^confirmation: (\S+)$/m.exec(text) ?? [];
    return await call(asking, "set_max_unavailable", { name: "mesh", pods: "3", confirmation });
  };
  const refused = "the person was asked, and did not allow set max-unavailable mesh 3";
  expect([await set(), await maxUnavailable()]).toEqual([{ isError: true, text: refused }, 2]);
  expect([(await set()).isError, await maxUnavailable()]).toEqual([false, 3]);
  expect(asked).toEqual(Array(2).fill(expect.stringMatching(/^In context \S+: set max-unavailable mesh 3: ./)));
  await asking.close();
});

it("a write that the client has cancelled is not done, even if the person accepts it afterwards", async () => {
  const client = new Client({ name: "hurries", version: "1" }, { capabilities: { elicitation: {} } });
  const giveUp = new AbortController();
  const isOver = Promise.withResolvers<void>();
  client.setRequestHandler(ElicitRequestSchema, async () => {
    giveUp.abort();
    await isOver.promise;
    return { action: "accept" as const, content: {} };
  });
  const asking = await connectedAs(client, "--allow-writes");
  const generation = async () => (await read("mesh")).metadata?.generation ?? 0;
  const before = await generation();
  const set = async (pods: string, signal?: AbortSignal) => {
    const { text } = await call(asking, "plan", { name: "mesh", action: "set_max_unavailable", pods });
    const [, confirmation] = /^confirmation: (\S+)$/m.exec(text) ?? [];
    const given = { name: "mesh", pods, confirmation };
    return asking.callTool({ name: "set_max_unavailable", arguments: given }, undefined, {
      ...(signal ? { signal } : {}),
    });
  };
  await expect(set("4", giveUp.signal)).rejects.toThrow("aborted");
  isOver.resolve();
  // The second call may take as long as the first call would have taken.
  expect(await set("5")).not.toMatchObject({ isError: true });
  expect(await generation()).toBe(before + 1);
  await asking.close();
});

it("a confirmation ends when somebody else changes the SidecarSet, but not when a pass writes its status", async () => {
  const before = await confirmationFor({ name: "mesh", action: "pause" });
  await runCli(["--kubeconfig", test.kubeconfig, "set", "max-unavailable", "mesh", "1"]);
  expect(await call(writer, "pause", { name: "mesh", confirmation: before })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^SidecarSet mesh was changed after the plan; call plan for pause mesh/),
  });
  expect(await isPaused("mesh")).toBe(false);

  const confirmation = await confirmationFor({ name: "mesh", action: "pause" });
  const status = { status: { matchedPods: 3 } };
  await test.client.patch(SIDECARSETS, { name: "mesh" }, { type: "merge", body: status }, { subresource: "status" });
  expect(await call(writer, "pause", { name: "mesh", confirmation })).toMatchObject({ isError: false });
});

it("the plan of undo shows the pods that go back, and undo with its confirmation repairs the rollout", async () => {
  const { text } = await call(writer, "plan", { name: "agent", action: "undo" });
  expect(text).toMatch(/^undo agent: .*registry\.example\/proxy:does-not-exist|^undo agent: .*revision 1/);
  expect(text).toMatch(/pods? in \d steps?, /);
  const [, confirmation] = /^confirmation: (\S+)$/m.exec(text) ?? [];
  expect(await call(writer, "undo", { name: "agent", confirmation })).toMatchObject({ isError: false });
  await vi.waitFor(async () => expect((await podsOf("agent")).filter(isReady)).toHaveLength(4), PATIENT);
});

it("a confirmation is valid for any order of the options", async () => {
  const confirmation = await confirmationFor({ name: "agent", action: "undo", toRevision: 2, skipWaves: true });
  const { text } = await call(writer, "undo", { skipWaves: true, toRevision: 2, name: "agent", confirmation });
  expect(text).toMatch(/^agent: /);
});

it("a tool reports a mistake in one sentence, and no argument becomes an option of the command", async () => {
  expect(await call(reader, "status", { name: "nobody" })).toEqual({
    isError: true,
    text: expect.stringMatching(/^there is no SidecarSet nobody; there are agent, mesh$/),
  });
  expect(await call(reader, "explain", { subject: "--kubeconfig=/dev/null" })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^--kubeconfig=\/dev\/null: write the name of a SidecarSet/),
  });
  expect(await call(reader, "pods", { name: "agent", watch: true })).toEqual({
    isError: true,
    text: "pods: must NOT have additional properties",
  });
  expect(await call(reader, "diff", { manifest: "a: [" })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^manifest:1:\d+: .*correct the YAML there$/),
  });
});

it("a tool cuts a long answer and says how much it leaves out", async () => {
  const many = Array.from({ length: 150 }, (_, index) =>
    stringify(setOf(`set-${index}`, {}, { odd: 1, strange: 2 })),
  ).join("---\n");
  const { text } = await call(reader, "lint", { manifest: many });
  expect(text.length).toBeLessThan(20_200);
  expect(text).toMatch(/\n… \d+ more characters left out; ask about one SidecarSet, namespace, state or pod$/);
});

it("a confirmation ends after five minutes", () => {
  let now = 0;
  const confirmations = new Confirmations(() => now);
  const set = setOf("a") as SidecarSet;
  const intended = { action: "pause a", before: set, after: set };
  const [one, two] = [confirmations.give(intended), confirmations.give(intended)];
  now = 5 * 60_000;
  expect(() => confirmations.use(one, intended)).not.toThrow();
  now += 1;
  expect(() => confirmations.use(two, intended)).toThrow(/unknown, used or older than 5 minutes/);
});

interface Plugin {
  readonly shortCut: string;
  readonly description: string;
  readonly scopes: readonly string[];
  readonly command: string;
  readonly args: readonly string[];
  readonly confirm?: boolean;
  readonly dangerous?: boolean;
}

/** Replaces variables as k9s does. Throws for an unknown variable. */
function substituted(arg: string, env: Readonly<Record<string, string>>): string {
  return arg.replace(/\$(!?[\w|-]+)/g, (_, name: string) => {
    const value = env[name];
    if (value === undefined) throw new Error(`k9s has no ${name} here`);
    return value;
  });
}

it("each command line of the k9s plugins does what the plugin's description promises", async () => {
  const { plugins } = parse(readFileSync("infra/k9s/plugins.yaml", "utf8")) as {
    readonly plugins: Record<string, Plugin>;
  };
  const context = parse(readFileSync(test.kubeconfig, "utf8"))["current-context"];
  const run = async (name: string, row: Readonly<Record<string, string>>) => {
    const { command, args: all, description, shortCut } = plugins[name] ?? ({} as Plugin);
    const isShown = command === "sh";
    const args = isShown ? all.slice(all.indexOf("sidecarset") + 1) : all;
    if (isShown) expect(all.slice(0, 4)).toEqual(["-c", '"$@" | less -R', "sh", "sidecarset"]);
    else expect(command).toBe("sidecarset");
    expect([description, shortCut]).toEqual([expect.any(String), expect.stringMatching(/^Shift-[A-Z]$/)]);
    const given = args.map((arg) => substituted(arg, { CONTEXT: context, KUBECONFIG: test.kubeconfig, ...row }));
    return runCli(given, { KUBECONFIG: "/none" });
  };
  const kept = [
    "--kubeconfig",
    test.kubeconfig,
    "set",
    "image",
    "mesh",
    "mesh-proxy=registry.example/proxy:2",
    "--partition",
    "4",
  ];
  await runCli(["--kubeconfig", test.kubeconfig, "resume", "mesh"]);
  expect((await runCli(kept)).code).toBe(0);
  const mesh = { NAME: "mesh" };
  const strategy = async () => (await read("mesh")).spec.updateStrategy;

  expect((await run("sidecarset-explain", mesh)).stdout).toMatch(/^SidecarSet mesh\n/);
  const pod = { NAME: "mesh-0", NAMESPACE: "default" };
  expect((await run("sidecarset-explain-pod", pod)).stdout).toMatch(/^pod default\/mesh-0, SidecarSet mesh\n/);
  expect((await run("sidecarset-plan", mesh)).stdout).toMatch(/^SidecarSet mesh: /);
  expect((await run("sidecarset-pause", mesh)).stdout).toBe("mesh: paused\n");
  expect((await strategy())?.paused).toBe(true);
  expect((await run("sidecarset-resume", mesh)).stdout).toBe("mesh: resumed\n");
  expect((await strategy())?.paused).toBe(false);
  expect((await run("sidecarset-promote", mesh)).code).toBe(0);
  expect((await strategy())?.partition).toBe(0);
  expect((await run("sidecarset-undo", mesh)).code).toBe(0);
  expect((await read("mesh")).spec.containers?.[0]?.image).toBe("registry.example/proxy:1");
});

it("an empty --kubeconfig, which k9s may pass, means the kubeconfig of the variable KUBECONFIG", async () => {
  const { stdout } = await runCli(["status", "--kubeconfig", ""], { KUBECONFIG: test.kubeconfig });
  expect(stdout).toMatch(/mesh/);
});

it("k9s asks before a plugin that writes, hides it in read-only mode, and has each key only once per view", () => {
  const { plugins } = parse(readFileSync("infra/k9s/plugins.yaml", "utf8")) as {
    readonly plugins: Record<string, Plugin>;
  };
  const all = Object.values(plugins);
  const writes = all.filter(({ command }) => command === "sidecarset");
  expect(writes.map(({ args }) => args[0])).toEqual(["pause", "resume", "promote", "undo"]);
  expect(writes.filter(({ confirm, dangerous }) => !confirm || !dangerous)).toEqual([]);
  const keys = all.flatMap(({ scopes, shortCut }) => scopes.map((scope) => `${scope} ${shortCut}`));
  expect(new Set(keys).size).toBe(keys.length);
});

it("the command mcp fails with the name of the package to install if that package is missing, and other commands work", async () => {
  const tree = join(test.folder, "tree");
  mkdirSync(join(tree, "node_modules"), { recursive: true });
  const root = resolve(import.meta.dirname, "../..");
  for (const name of ["functions", "shared", "infra", "package.json"]) symlinkSync(join(root, name), join(tree, name));
  for (const name of readdirSync(join(root, "node_modules")))
    if (name !== "@modelcontextprotocol")
      symlinkSync(join(root, "node_modules", name), join(tree, "node_modules", name));
  const run = (...args: readonly string[]) =>
    new Promise<readonly [number, string]>((done) => {
      const node = ["--preserve-symlinks", "--preserve-symlinks-main", join(tree, "functions/cli.mjs"), ...args];
      execFile(process.execPath, node, (error, _, stderr) => done([Number(error?.code ?? 0), stderr]));
    });
  expect(await run("mcp")).toEqual([
    2,
    "mcp needs a package that is not installed: npm install @modelcontextprotocol/sdk\n",
  ]);
  expect(await run("version", "--client")).toEqual([0, ""]);
});
