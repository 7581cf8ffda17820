/** Tests the steps of a deployment, which leave no objects behind and remove no others, even if they fail. */
import { expect, test } from "vitest";
import type { Aws, Stack } from "../../infra/aws/deploy/aws.ts";
import { letIn } from "../../infra/aws/deploy/functions.ts";
import { Changes, type Deployment, throughStages } from "../../infra/aws/deploy/objects.ts";
import { type DeployOptions, parseStages } from "../../infra/aws/deploy/options.ts";
import { checkConcurrency, checkTopics } from "../../infra/aws/deploy/preflight.ts";
import { injectFirstPod } from "../../infra/aws/deploy/verify.ts";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { roleId } from "../../infra/aws/names.ts";
import { readSettings } from "../../infra/aws/settings.ts";

const screen = { line: () => undefined } as unknown as Deployment["screen"];

/** Returns a deployment with the parts that a step uses. */
async function deploymentWith(parts: Partial<Deployment>): Promise<Deployment> {
  const settings = await readSettings("sidecarset", "test", async () => "");
  const changes = new Changes(screen, false);
  const options = { cluster: "prod", region: "eu-central-1", stage: "test" } as Deployment["options"];
  return { settings, changes, options, screen, stackName: "s", now: () => 0, ...parts } as Deployment;
}

test("a role that gets access keeps the groups that others gave it", async () => {
  const entries = new Map<string, readonly string[]>();
  const outputs = new Map(DEPLOYED.map(({ name }) => [roleId(name), `arn:aws:iam::1:role/${name}`]));
  entries.set("arn:aws:iam::1:role/rollout", ["of-somebody-else"]);
  entries.set("arn:aws:iam::1:role/mutate-pod", ["of-somebody-else", "sidecarset:webhooks"]);
  const put = async (_: string, role: string, groups: readonly string[]) => void entries.set(role, groups);
  const aws = {
    describeAccessEntry: async (_: string, role: string) => entries.get(role),
    createAccessEntry: put,
    updateAccessEntry: put,
  } as unknown as Aws;
  await letIn(await deploymentWith({ aws }), { status: "CREATE_COMPLETE", outputs } as unknown as Stack);
  const groupsOf = (name: string) => entries.get(`arn:aws:iam::1:role/${name}`)?.toSorted();
  expect(groupsOf("rollout")).toEqual(["of-somebody-else", "sidecarset:reconciler"]);
  expect(groupsOf("mutate-pod")).toEqual(["of-somebody-else", "sidecarset:webhooks"]);
  expect(groupsOf("dry-run")).toEqual(["sidecarset:viewers"]);
  expect(groupsOf("ordered-set")).toBeUndefined();
});

test("the sample SidecarSet is deleted with its ledger when its first pod cannot be created", async () => {
  const commands: string[] = [];
  const kubectl: Deployment["kubectl"] = async (args) => {
    commands.push(args.join(" "));
    if (args[0] === "create") return { code: 1, stdout: "", stderr: "Error from server (InternalError): no" };
    return { code: 0, stdout: args[0] === "get" ? '{"items":[]}' : "", stderr: "" };
  };
  const deployment = await deploymentWith({ kubectl });
  // A run without changes does not try a pod.
  await deployment.changes.make("a change", async () => undefined);
  await expect(injectFirstPod(deployment)).rejects.toThrow("kubectl create failed");
  expect(commands.slice(-2)).toEqual([
    "delete sidecarset sidecarset-first-pod --ignore-not-found --wait=false",
    "-n kruise-system delete configmap sidecarset-ledger-sidecarset-first-pod --ignore-not-found --wait=false",
  ]);
});

const FILE = JSON.stringify([
  { stage: "test", region: "eu-central-1", cluster: "shop-test", param: ["log-level=warn", "site=https://x.example"] },
  { stage: "eu", region: "eu-central-1", cluster: "shop", context: "eu", "failure-policy": "Fail" },
  { stage: "us", region: "us-east-1", cluster: "shop" },
]);
const stagesOf = (text: string, ...args: readonly string[]) =>
  parseStages(["--stages=stages.json", ...args], () => text) ?? [];

test("--stages reads each stage of the file with its own options and the command line's", () => {
  const all = stagesOf(FILE, "--dry-run", "--param", "alarm-topic=");
  expect(all.map(({ stage, region, cluster }) => [stage, region, cluster])).toEqual([
    ["test", "eu-central-1", "shop-test"],
    ["eu", "eu-central-1", "shop"],
    ["us", "us-east-1", "shop"],
  ]);
  expect(all.every(({ isDryRun, parameters }) => isDryRun && parameters.get("alarm-topic") === "")).toBe(true);
  expect(all.map(({ parameters }) => parameters.get("log-level"))).toEqual(["warn", undefined, undefined]);
  expect(all.map(({ context, failurePolicy }) => [context, failurePolicy])[1]).toEqual(["eu", "Fail"]);
});

test.each([
  ["{}", "--stages stages.json has no list of stages, such as ["],
  ["[", "--stages stages.json cannot be read: "],
  ["[[]]", "--stages stages.json, stage 1: write options by their names"],
  ['[{"stage": 1}]', "stage 1: stage is no option with a text"],
  ['[{"region": "eu-central-1", "cluster": "shop", "regoin": "x"}]', "stage 1: Unknown option '--regoin'"],
  ['[{"region": "eu-central-1"}]', "stage 1: --region and --cluster are needed"],
  [FILE.replace('"us"', '"eu"').replace("us-east-1", "eu-central-1"), "stage eu of eu-central-1 is there twice"],
])("--stages refuses %s", (text, sentence) => {
  expect(() => stagesOf(text)).toThrow(sentence);
});

/** Runs the stages. The ones in `failing` fail at the check or at the deployment. */
async function run(failing: { readonly look?: string; readonly deploy?: string }) {
  const done: string[] = [];
  const warnings: string[] = [];
  const told = {
    line: () => undefined,
    warn: (text: string) => warnings.push(text),
  } as unknown as Deployment["screen"];
  const step =
    (verb: "look" | "deploy") =>
    async ({ stage }: DeployOptions) => {
      if (failing[verb] === stage) throw new Error(`${verb} failed`);
      done.push(`${verb} ${stage}`);
    };
  const ended = throughStages(stagesOf(FILE), told, { look: step("look"), deploy: step("deploy") });
  const error = await ended.then(() => undefined, String);
  return { done, warnings, error };
}

test("stages are deployed one after another, after each was found deployable", async () => {
  const looked = ["look test", "look eu", "look us"];
  expect(await run({})).toEqual({
    done: [...looked, "deploy test", "deploy eu", "deploy us"],
    warnings: [],
    error: undefined,
  });
  expect(await run({ look: "us" })).toEqual({
    done: looked.slice(0, 2),
    warnings: ["Nothing was begun: stage us cannot be deployed."],
    error: "Error: look failed",
  });
});

test("no stage is deployed after a failed one, and the last lines name the state of each", async () => {
  expect(await run({ deploy: "eu" })).toEqual({
    done: ["look test", "look eu", "look us", "deploy test"],
    warnings: [
      "Stopped at eu; 1 of 3 stages done: test. Left as they are: us. When that is put right, the same command goes on from there.",
    ],
    error: "Error: deploy failed",
  });
});

test.each([
  [150, undefined],
  [149, /takes 50 of the 149 functions .* 100 have to be left/],
])(
  "a deployment that reserves 50 of %s functions leaves 100 for the account, or is refused",
  async (most, expected) => {
    const aws = { getUnreservedConcurrency: async () => most };
    const reserved = new Map([["mutate-pod" as const, 50]]);
    const wanted = { reserved, region: "eu-central-1", reservations: new Map() };
    const said = await checkConcurrency(aws, wanted, undefined).catch((error: Error) => error.message);
    if (expected === undefined) expect(said).toBeUndefined();
    else expect(said).toMatch(expected);
  },
);

test("stages of one region that together reserve more than the account has are refused, and stages of other regions are not", async () => {
  const aws = { getUnreservedConcurrency: async () => 200 };
  const wanted = { reserved: new Map([["mutate-pod" as const, 60]]), reservations: new Map() };
  const look = (region: string) => checkConcurrency(aws, { ...wanted, region }, undefined);
  await look("eu-central-1");
  await look("us-east-1");
  await expect(look("eu-central-1")).rejects.toThrow(/takes 60 of the 140 functions/);
});

test.each(["alarmTopic", "ticketTopic"] as const)("a topic of another region is refused: %s", (name) => {
  const topic = "arn:aws:sns:eu-west-1:123456789012:on-call";
  expect(() => checkTopics({ [name]: topic }, "eu-central-1")).toThrow(/-topic=arn:.* is in eu-west-1/);
  expect(() => checkTopics({ [name]: topic }, "eu-west-1")).not.toThrow();
});
