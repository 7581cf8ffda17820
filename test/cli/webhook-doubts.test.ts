/** Tests the commands' warnings while the webhooks are not registered, cannot be called, or do not answer. */
import { beforeAll, expect, it } from "vitest";
import { COMMANDS } from "../../functions/cli/commands/index.ts";
import { DRY_RUN } from "../../functions/cli/input/change-set.ts";
import { VALIDATING } from "../../functions/cli/input/check-facts.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { EMERGENCY_STOP } from "../../shared/core/inspect/webhook-doubts.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { registrations } from "../../shared/install/manifests.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, type Resource } from "../../shared/kube/port.ts";
import { deploy, KRUISE_NAMESPACE, readSet, release } from "../controller/fixture.ts";
import { onCluster } from "./on-cluster.ts";

const { cluster, cli } = onCluster();

/** Every command that changes a SidecarSet, with arguments that give it something to change. */
const STEERING: Readonly<Record<string, readonly string[]>> = {
  pause: ["pause", "agent"],
  resume: ["resume", "held"],
  promote: ["promote", "agent"],
  abort: ["abort", "agent"],
  undo: ["undo", "agent"],
  "set image": ["set", "image", "agent", "proxy=proxy:9"],
  canary: ["canary", "agent", "proxy=proxy:9"],
  "set partition": ["set", "partition", "agent", "1"],
  "set max-unavailable": ["set", "max-unavailable", "agent", "2"],
};

async function pass(): Promise<void> {
  const options = { deadlineMs: 60_000, kruiseNamespace: KRUISE_NAMESPACE, settings: DEFAULT_ROLLOUT_SETTINGS };
  await runPass(cluster(), { ...options, follow: false });
}

const resourceOf = ({ kind }: KubernetesObject): Resource =>
  kind === "MutatingWebhookConfiguration" ? MUTATING_WEBHOOK_CONFIGURATIONS : VALIDATING;

const URL = "https://127.0.0.1:1";

/** Registers the webhooks at an address without a server. */
async function register(): Promise<void> {
  await unregister();
  for (const one of webhookConfigurations({ url: URL })) await cluster().create(resourceOf(one), one);
}

/** Registers the mutating webhooks so that API servers continue without an answer. */
async function registerIgnored(caBundle?: string): Promise<void> {
  await unregister();
  const [mutating] = webhookConfigurations({ url: URL, ...(caBundle === undefined ? {} : { caBundle }) });
  if (mutating === undefined) throw new Error("nothing to register");
  const webhooks = mutating.webhooks.map((one) => ({ ...one, failurePolicy: "Ignore" }));
  await cluster().create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...mutating, webhooks } as KubernetesObject);
}

async function unregister(): Promise<void> {
  for (const resource of [MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING])
    for (const { metadata } of (await cluster().list(resource, {})).items)
      await cluster().delete(resource, { name: metadata?.name ?? "" }, {});
}

beforeAll(async () => {
  await deploy(cluster(), "agent", 3, { partition: 3 });
  await deploy(cluster(), "held", 1, { paused: true });
  await pass();
  await release(cluster(), "agent", 2, { partition: 2 });
  await pass();
});

it("the table has every command that changes a SidecarSet", () => {
  const changing = COMMANDS.filter(({ options = [] }) => options.includes(DRY_RUN));
  expect(changing.length).toBeGreaterThan(5);
  expect(changing.map(({ name }) => name).sort()).toEqual(Object.keys(STEERING).sort());
});

it("every command says that no webhook is registered, what still works, and how to use the emergency stop", async () => {
  for (const [name, args] of Object.entries(STEERING)) {
    const { code, stdout } = await cli(...args, "--dry-run");
    expect([name, code]).toEqual([name, 0]);
    expect(stdout).toMatch(
      /No webhook for pods is registered in the cluster .*, so new pods come without the sidecars/,
    );
    expect(stdout).toMatch(/No mutating webhook for SidecarSets is registered .*, so no pass rolls out changed images/);
    expect(stdout).toContain("What still works: passes update pods that run");
    expect(stdout).toContain(EMERGENCY_STOP);
  }
});

it("commands say that they cannot see webhooks that are registered in files of the API servers", async () => {
  const [inFiles] = registrations({ url: URL }, { staticPart: "cluster" });
  await cluster().create(MUTATING_WEBHOOK_CONFIGURATIONS, inFiles as KubernetesObject);
  const { stdout } = await cli("pause", "agent", "--dry-run");
  expect(stdout).toContain("Whether API servers reach the webhook for pods cannot be seen from here");
  expect(stdout).not.toContain("is registered");
  await unregister();
});

it("set image says that the change got no hash when no webhook was called", async () => {
  const { stdout } = await cli("set", "image", "agent", "proxy=proxy:9", "--dry-run");
  expect(stdout).toContain("No webhook gave the change its hash, so no pass rolls it out");
  expect((await cli("pause", "agent", "--dry-run")).stdout).not.toContain("gave the change its hash");
});

it("every command says that nothing is stored when a webhook does not answer, and names the emergency stop", async () => {
  await register();
  const before = await readSet(cluster(), "agent");
  for (const [name, args] of Object.entries(STEERING)) {
    const { code, stderr } = await cli(...args);
    expect([name, code]).toEqual([name, 1]);
    expect(stderr).toMatch(/nothing is stored, because the webhook [mv]sidecarset\.kb\.io did not answer/);
    expect(stderr).toContain("What still works: passes go on with what is stored");
    expect(stderr).toContain(EMERGENCY_STOP);
  }
  expect(await readSet(cluster(), "agent")).toEqual(before);
});

it("a change is stored with a warning if the caBundle of a webhook is not a certificate", async () => {
  await registerIgnored(Buffer.from("no certificate").toString("base64"));
  const { stdout } = await cli("pause", "agent", "--dry-run");
  expect(stdout).toContain("mpod.kb.io, because its caBundle is no certificate in PEM");
  expect(stdout).toContain(EMERGENCY_STOP);
});

it("commands say that they cannot see whether API servers reach a webhook with failurePolicy Ignore", async () => {
  await registerIgnored();
  const { stdout } = await cli("pause", "agent", "--dry-run");
  expect(stdout).toContain("Whether API servers reach the webhook for pods cannot be seen from here");
  await unregister();
});
