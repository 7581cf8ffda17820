/** Steps of a deployment that leave nothing behind and take nothing away, also when they fail. */
import { expect, test } from "vitest";
import type { Aws, Stack } from "../../infra/aws/deploy/aws.ts";
import { Changes, type Deployment } from "../../infra/aws/deploy/deployment.ts";
import { letIn } from "../../infra/aws/deploy/functions.ts";
import { injectFirstPod } from "../../infra/aws/deploy/verify.ts";
import { DEPLOYED } from "../../infra/aws/deployed.ts";
import { roleId } from "../../infra/aws/names.ts";
import { readSettings } from "../../infra/aws/settings.ts";

const screen = { line: () => undefined } as unknown as Deployment["screen"];

/** The parts of a deployment that a step uses. */
async function deploymentWith(parts: Partial<Deployment>): Promise<Deployment> {
  const settings = await readSettings("sidecarset", "test", async () => "");
  const changes = new Changes(screen, false);
  const options = { cluster: "prod", region: "eu-central-1", stage: "test" } as Deployment["options"];
  return { settings, changes, options, screen, stackName: "s", now: () => 0, ...parts } as Deployment;
}

test("a role that is let in keeps the groups that others gave it", async () => {
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

test("the SidecarSet that tries the first pod is deleted with its ledger when the pod cannot be created", async () => {
  const commands: string[] = [];
  const kubectl: Deployment["kubectl"] = async (args) => {
    commands.push(args.join(" "));
    if (args[0] === "create") return { code: 1, stdout: "", stderr: "Error from server (InternalError): no" };
    return { code: 0, stdout: args[0] === "get" ? '{"items":[]}' : "", stderr: "" };
  };
  const deployment = await deploymentWith({ kubectl });
  // A run that changed nothing tries no pod.
  await deployment.changes.make("a change", async () => undefined);
  await expect(injectFirstPod(deployment)).rejects.toThrow("kubectl create failed");
  expect(commands.slice(-2)).toEqual([
    "delete sidecarset sidecarset-first-pod --ignore-not-found --wait=false",
    "-n kruise-system delete configmap sidecarset-ledger-sidecarset-first-pod --ignore-not-found --wait=false",
  ]);
});
