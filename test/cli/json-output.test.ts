/** Tests the JSON that `-o json` prints for programs. */
import { readFile, writeFile } from "node:fs/promises";
import { beforeAll, expect, it } from "vitest";
import { COMMANDS } from "../../functions/cli/commands/index.ts";
import { deploy } from "../controller/fixture.ts";
import { onCluster } from "./on-cluster.ts";
import { runHere } from "./run-cli.ts";

const test = onCluster();
const { file } = test;

const SET = `apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: new}
spec:
  selector: {matchLabels: {app: web}}
  containers: [{name: agent, image: "agent:1"}]
`;
const POD = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: main, image: "nginx:1"}]}
`;
const SECRET = "a".repeat(43);

beforeAll(async () => {
  await deploy(test.cluster(), "agent", 2, { partition: 1 });
  await writeFile(file("set.yaml"), SET);
  await writeFile(file("pod.yaml"), POD);
  await writeFile(file("two.yaml"), `${POD}---\n${POD.replace("web", "web-2")}`);
  await writeFile(file("bad.yaml"), "kind: [");
  await writeFile(file("secrets"), `${SECRET}\n`);
  const kubeconfig = await readFile(file("kubeconfig"), "utf8");
  await writeFile(file("nowhere"), kubeconfig.replace(/https:\S+/, "https://127.0.0.1:1"));
});

/** Arguments of each command; `@` starts the name of a file. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  lint: ["@set.yaml", "@bad.yaml", "@pod.yaml", "@nope.yaml"],
  preview: ["-f @pod.yaml", "-f @pod.yaml -f @set.yaml", "-f @two.yaml -f @set.yaml", "-f @bad.yaml", "-f @set.yaml"],
  diff: ["-f @set.yaml", "nope -f @set.yaml", "-f @bad.yaml", "-f @pod.yaml"],
  plan: ["agent", "-f @set.yaml", "nope", "-f @bad.yaml"],
  explain: ["agent", "pod/shop/agent-0", "pod/shop/nope", "nope", "deployment/shop/nope"],
  status: ["", "agent", "nope", "-l team=none", "-l !!!", "agent -w --timeout 1ms", "statefulset.apps.kruise.io/nope"],
  pods: ["agent", "nope", "agent --state odd", "agent -n nowhere"],
  pause: ["agent --dry-run", "agent", "agent", "nope", "statefulset.apps.kruise.io/nope"],
  resume: ["agent", "agent", "nope"],
  promote: ["agent --to 1", "agent --to 0 --dry-run", "agent --to 100%", "nope"],
  abort: ["agent", "nope"],
  undo: ["agent", "nope", "agent --to-revision 9"],
  history: ["agent", "nope"],
  "set image": ["agent proxy=registry.example/proxy:1", "agent proxy=x:2 --dry-run", "agent odd", "nope a=b"],
  canary: ["agent proxy=registry.example/proxy:1", "agent odd", "nope a=b"],
  "set partition": ["agent 1", "agent 2 --dry-run", "agent many", "nope 1"],
  "set max-unavailable": ["agent 1", "agent 0 --dry-run", "agent many", "nope 1"],
  "fleet apply": [
    "-f @set.yaml --contexts local --dry-run",
    "-f @set.yaml --contexts local --timeout 1ms",
    "-f @bad.yaml --contexts local",
    "-f @set.yaml --contexts nope",
  ],
  "fleet status": ["agent --contexts local", "nope --contexts local", "agent --contexts nope"],
  "fleet undo": ["agent --contexts local", "new --contexts local"],
  check: ["", "more"],
  "path-secrets": [
    "",
    "--path-secrets @secrets",
    "--path-secrets @secrets /mutate-pod",
    "--path-secrets @secrets /odd",
  ],
  "migrate from-kruise": [""],
  "migrate to-kruise": [""],
  version: ["", "--client"],
};

const hasJson = COMMANDS.filter(({ outputs }) => outputs !== "file" && outputs?.includes("json"));
const ROWS = Object.entries(WORDS).flatMap(([name, all]) => all.map((words) => [`${name} ${words}`.trim()] as const));

const argumentsOf = (line: string) =>
  line.split(" ").map((word) => (word.startsWith("@") ? file(word.slice(1)) : word));

/** Parses the output; with several lines, as after `-w`, each line separately. */
function parsed(stdout: string): unknown {
  try {
    return JSON.parse(stdout);
  } catch {
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
  }
}

function expectJson({ code, stdout, stderr }: Awaited<ReturnType<typeof runHere>>): void {
  const value = parsed(stdout) as { readonly error?: { readonly exitCode: number; readonly message: string } };
  expect(value).toBeTypeOf("object");
  if (value.error === undefined) return;
  expect(value.error.exitCode).toBe(code);
  expect(value.error.message).toBe(stderr.trimEnd().replaceAll("\n", "; "));
}

it("the table has every command that prints JSON", () => {
  expect(Object.keys(WORDS).toSorted()).toEqual(hasJson.map(({ name }) => name).toSorted());
});

it.each(ROWS)("%s -o json prints JSON", async (line) => {
  expectJson(await test.cli(...argumentsOf(line), "-o", "json"));
});

it.each(hasJson.map(({ name }) => [name] as const))(
  "%s -o json prints JSON when the cluster cannot be reached, for an unknown option and for too many arguments",
  async (name) => {
    const words = argumentsOf(`${name} ${WORDS[name]?.[0] ?? ""}`.trim());
    for (const more of [[], ["--odd"], ["1", "2", "3", "4"]])
      expectJson(await runHere(["--kubeconfig", file("nowhere"), ...words, ...more, "--output=json"]));
  },
);

it.each(COMMANDS.filter((one) => !hasJson.includes(one)).map(({ name }) => [name] as const))(
  "%s -o json fails with one JSON object, because the command has no JSON output",
  async (name) => {
    const outcome = await test.cli(...name.split(" "), "-ojson");
    expect(JSON.parse(outcome.stdout)).toEqual({ error: { exitCode: 2, message: outcome.stderr.trimEnd() } });
    expect(outcome.code).toBe(2);
  },
);

it("two pods are printed as one List", async () => {
  const { stdout } = await test.cli("preview", "-f", file("two.yaml"), "-f", file("set.yaml"), "-o", "json");
  expect(JSON.parse(stdout)).toMatchObject({ kind: "List", items: [{ kind: "Pod" }, { kind: "Pod" }] });
});

it("a repeated change is printed as JSON with change null and the reason", async () => {
  const { stdout } = await test.cli("set", "partition", "agent", "1", "-o", "json");
  expect(JSON.parse(stdout)).toEqual({ sidecarSet: "agent", change: null, notes: ["partition is 1 already"] });
});
