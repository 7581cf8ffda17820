/**
 * Runs `npm run deploy:all` against a stand-in for AWS and the real API server. Checks its calls, its changes, and that
 * it shows no secret.
 */
import { readFile, watch, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { installation } from "../../shared/install/manifests.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import {
  DEPLOYMENTS,
  type JsonPatchOperation,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { pathSecretOf } from "../../shared/webhook/server/path-secret.ts";
import { sendRaw } from "../contract/raw.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf } from "./support/clients.ts";
import { deploymentScene, type Scene } from "./support/deployed.ts";
import { removeAll } from "./support/installed.ts";

const SECRET = "/sidecarset/prod/path-secrets";
const TOPIC = "alarm-topic=arn:aws:sns:us-east-1:123456789012:sidecarset";
const ACCESS = "POST /clusters/demo/access-entries";
const POD_WEBHOOK = { name: "kruise-sidecarset-mutating-webhook-configuration" };

let scene: Scene;
beforeAll(async () => {
  scene = await deploymentScene();
});
afterAll(async () => {
  await removeAll(clusterOf(controlPlane()), installation({ url: "https://x.invalid" }).toReversed()).catch(
    () => undefined,
  );
  await scene?.close();
});

const DEFINITIONS = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};

interface Registered extends KubernetesObject {
  readonly webhooks?: readonly { readonly clientConfig: { readonly url?: string; readonly caBundle?: string } }[];
}

const registered = () =>
  clusterOf(controlPlane())
    .get<Registered>(MUTATING_WEBHOOK_CONFIGURATIONS, POD_WEBHOOK)
    .catch((error: unknown) => {
      if (isKubeError(error, 404)) return undefined;
      throw error;
    });

const changeRegistration = (operations: readonly JsonPatchOperation[]) =>
  clusterOf(controlPlane()).patch(MUTATING_WEBHOOK_CONFIGURATIONS, POD_WEBHOOK, { type: "json", operations });

/** Returns the container names of a new pod in a dry run, separated by commas. */
async function containersOfNewPod(): Promise<string> {
  const pod = {
    metadata: { name: "rotated", labels: { app: "rotated" } },
    spec: { containers: [{ name: "web", image: "nginx:1.29" }] },
  };
  const path = "/api/v1/namespaces/default/pods?dryRun=All";
  const { body } = await sendRaw(controlPlane(), { method: "POST", path, body: pod });
  return ((body as Pod).spec?.containers ?? []).map(({ name }) => name).join(",");
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Returns the deployment's kubectl calls that write. */
const kubectlWrites = () =>
  scene.commands().filter((line) => /^kubectl (apply|delete|create)/.test(line) && !line.includes("--dry-run=server"));

describe("a deployment from nothing", { timeout: 400_000 }, () => {
  it("--dry-run describes a deployment and changes nothing anywhere", async () => {
    const { code, text } = await scene.deploy(["--dry-run"]);
    expect(text).toContain("would: put 256 random bits into SSM, /sidecarset/prod/path-secrets (SecureString)");
    expect(text).toContain("would: npm run deploy -- --stage prod --region eu-central-1");
    expect(text).toContain("would: let RolloutRole into the cluster, as sidecarset:reconciler");
    expect(text).toContain("would: kubectl apply: create MutatingWebhookConfiguration");
    expect(text).toMatch(/Nothing was changed: \d+ changes would be made/);
    expect(text).toContain("mutate-pod has no limit of its own");
    expect(text).toContain("no alarm notifies you: --param alarm-topic=ARN");
    expect([code, scene.aws.takeWrites(), kubectlWrites()]).toEqual([0, [], []]);
    expect(scene.commands().filter((line) => line.startsWith("npm"))).toEqual([]);
    expect(await registered()).toBeUndefined();
  });

  it.each([
    ["a parameter that does not exist", ["--param", "freshnes-ms=1"], {}, "perhaps freshness-ms"],
    ["a parameter with which no function would start", ["--param", "log-level=loud"], {}, "log-level"],
    [
      "more reserved concurrency than the account has",
      ["--param", "reserved-concurrency=mutate-pod=950"],
      {},
      "takes 950 of the 1000",
    ],
    ["a cluster that does not exist", ["--cluster", "other"], {}, "no such EKS cluster"],
    ["another cluster's kubeconfig", [], { endpoint: "https://elsewhere.example.com" }, "aws eks update-kubeconfig"],
    [
      "a cluster without access entries",
      [],
      { accessConfig: { authenticationMode: "CONFIG_MAP" } },
      "API_AND_CONFIG_MAP",
    ],
    ["a private API server", [], { resourcesVpcConfig: { endpointPublicAccess: false } }, "--param subnets"],
    [
      "a parameter that is given twice",
      ["--param", "memory=512", "--param", "memory=1769"],
      {},
      "memory is given more than once",
    ],
    ["a misspelt parameter that is set to its default", ["--param", "alarm-topik="], {}, "perhaps alarm-topic"],
    ["a topic in another region", ["--param", TOPIC], {}, "is in us-east-1: alarms of eu-central-1 need a topic there"],
    [
      "a missing certificate file",
      ["--ca-bundle", "nosuch.pem"],
      {},
      "--ca-bundle nosuch.pem: there is no certificate",
    ],
  ])("a deployment is refused before it begins, in one sentence: %s", async (_title, args, cluster, sentence) => {
    const before = scene.aws.state.cluster;
    scene.aws.state.cluster = { ...before, ...cluster };
    const { code, text } = await scene.deploy(args);
    scene.aws.state.cluster = before;
    expect(text).toContain(sentence);
    expect([code, scene.aws.takeWrites(), kubectlWrites()]).toEqual([2, [], []]);
  });

  it("a deployment is refused before it begins if AWS or the cluster denies this user a right", async () => {
    scene.aws.state.denied = "GetParameter";
    const byAws = await scene.deploy();
    scene.aws.state.denied = undefined;
    expect(byAws.text).toContain(
      "ssm in eu-central-1 answered 400 AccessDeniedException (ssm:GetParameter is not allowed)",
    );
    const byCluster = await scene.deploy([], { user: await asServiceAccount(controlPlane(), "default", "default") });
    expect(byCluster.text).toContain("this user of the cluster may not create namespaces");
    expect([byCluster.code, scene.aws.takeWrites(), kubectlWrites()]).toEqual([2, [], []]);
  });

  it.each([
    ["ROLLBACK_COMPLETE", "run npx osls remove --region eu-central-1 --stage prod first"],
    ["UPDATE_ROLLBACK_FAILED", "aws cloudformation continue-update-rollback --region eu-central-1"],
    ["REVIEW_IN_PROGRESS", "another run is creating it, so wait a minute"],
  ])("a deployment is refused before it begins if the stack is %s", async (status, sentence) => {
    scene.aws.state.stack = { status, outputs: {} };
    const { code, text } = await scene.deploy();
    scene.aws.state.stack = undefined;
    expect(text).toContain(`stack sidecarset-prod is ${status}: `);
    expect(text).toContain(sentence);
    expect([code, scene.aws.takeWrites(), kubectlWrites()]).toEqual([2, [], []]);
  });

  it("a deployment is refused while OpenKruise's manager runs, unless the manager has no replicas", async () => {
    const cluster = clusterOf(controlPlane());
    const [namespace, name] = ["default", "kruise-controller-manager"];
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name: "manager", image: "openkruise:1" }] } };
    const manager = (replicas: number) => ({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { namespace, name },
      spec: { replicas, selector: { matchLabels: labels }, template },
    });
    await cluster.create(DEPLOYMENTS, manager(1));
    const refused = await scene.deploy([]);
    await cluster.delete(DEPLOYMENTS, { namespace, name });
    expect(refused.text).toContain(`OpenKruise's manager runs in this cluster (Deployment ${namespace}/${name})`);
    expect([refused.code, scene.aws.takeWrites(), kubectlWrites()]).toEqual([2, [], []]);
    await cluster.create(DEPLOYMENTS, manager(0));
    const { code } = await scene.deploy(["--dry-run"]);
    await cluster.delete(DEPLOYMENTS, { namespace, name });
    expect(code).toBe(0);
  });

  it("a deployment can be killed in the middle", async () => {
    const { onCall } = scene.aws.state;
    scene.aws.state.onCall = async (call) => {
      await onCall?.(call);
      if (call.action === ACCESS && scene.aws.state.entries.size === 2) scene.kill();
    };
    const { killed } = await scene.deploy();
    scene.aws.state.onCall = onCall;
    expect(killed).toBe(true);
    expect(scene.aws.takeWrites().map(({ action }) => action)).toEqual(["PutParameter", ACCESS, ACCESS, ACCESS]);
    expect(await registered()).toBeUndefined();
  });

  it("a repeated deployment continues, and ends with a pod that has its sidecar", async () => {
    const secret = scene.aws.state.parameters.get(SECRET) ?? "";
    expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const { code, text } = await scene.deploy();
    expect(text).toContain("has the containers first-sidecar, web");
    expect([code, scene.aws.takeWrites().map(({ action }) => action)]).toEqual([0, [ACCESS]]);
    expect([...scene.aws.state.entries.values()].toSorted().flat()).toEqual([
      "sidecarset:reconciler",
      "sidecarset:viewers",
      "sidecarset:webhooks",
      "sidecarset:webhooks",
    ]);
    expect(scene.aws.state.parameters.get(SECRET)).toBe(secret);
    const [webhook] = (await registered())?.webhooks ?? [];
    expect(webhook?.clientConfig.url).toContain(`/s/${pathSecretOf(secret, "/mutate-pod")}/mutate-pod`);
    expect((await clusterOf(controlPlane()).list(SIDECARSETS, {})).items).toEqual([]);
  });

  it("a third deployment changes nothing, and says so", async () => {
    const before = kubectlWrites().length;
    const { code, text } = await scene.deploy();
    expect(text).toContain("All was there already: nothing was changed.");
    expect([code, scene.aws.takeWrites()]).toEqual([0, []]);
    expect(kubectlWrites().slice(before)).toEqual(["kubectl apply -f - -o json", "kubectl apply -f - -o json"]);
  });

  it("a deployment refuses to drop parameters of the last one, unless an option allows it", async () => {
    expect((await scene.deploy(["--param", "log-level=warn"])).code).toBe(0);
    const forgotten = await scene.deploy();
    expect(forgotten.text).toContain(
      "the last deployment had --param log-level=warn: give that again, or, to go back to the default, --param log-level= with nothing after it.",
    );
    expect(forgotten.code).toBe(2);
    expect((await scene.deploy(["--param", "log-level="])).code).toBe(0);
    expect((await scene.deploy(["--failure-policy", "Fail"])).code).toBe(0);
    const policy = await scene.deploy();
    expect(policy.text).toContain("the pod webhook was registered with failurePolicy Fail: give --failure-policy Fail");
    expect(policy.code).toBe(2);
    expect((await scene.deploy(["--failure-policy", "Ignore"])).code).toBe(0);
    expect((await scene.deploy()).text).toContain("All was there already: nothing was changed.");
  });

  it("--dry-run names the changes of existing objects", async () => {
    const cluster = clusterOf(controlPlane());
    const changed = await registered();
    const webhooks = (changed?.webhooks ?? []).map((webhook) => ({ ...webhook, timeoutSeconds: 9 }));
    await cluster.patch(MUTATING_WEBHOOK_CONFIGURATIONS, POD_WEBHOOK, { type: "merge", body: { webhooks } });
    const { text } = await scene.deploy(["--dry-run"]);
    expect(text).toMatch(
      /would: kubectl apply: change MutatingWebhookConfiguration kruise-sidecarset-\S+\n(.*\n)*? +@@ .*\n(.*\n)*? +- +timeoutSeconds: 9\n +\+ +timeoutSeconds: 5\n/,
    );
    expect(text).toContain("Nothing was changed: 1 change would be made.");
    expect((await scene.deploy()).text).toContain("Done: 1 change.");
  });

  it("no stage of a file begins if one of the stages cannot be deployed", async () => {
    const file = join(scene.folder, "stages.json");
    await writeFile(file, JSON.stringify([{ stage: "prod" }, { stage: "other", param: ["alarm-above=x"] }]));
    const writes = kubectlWrites().length;
    const { code, text } = await scene.deploy(["--stages", file]);
    expect([code, text]).toEqual([2, expect.stringContaining("Nothing was begun: stage other cannot be deployed.")]);
    expect(text).toMatch(/^Stage prod$/m);
    expect(kubectlWrites()).toHaveLength(writes);
  });

  it("a deployment counts its functions' present reservations as free", async () => {
    const reserved = (count: number) => ["--param", `reserved-concurrency=mutate-pod=${count}`];
    expect((await scene.deploy(reserved(600))).code).toBe(0);
    scene.aws.state.concurrency = 400;
    expect((await scene.deploy([...reserved(900), "--dry-run"])).text).toContain(
      "reserved-concurrency: mutate-pod=600 → mutate-pod=900",
    );
    expect((await scene.deploy([...reserved(901), "--dry-run"])).text).toContain("takes 901 of the 1000");
    scene.aws.state.concurrency = 1_000;
    expect((await scene.deploy(["--param", "reserved-concurrency="])).code).toBe(0);
  });

  it("a deployment warns if the stack does not record its parameters, and refuses a registration of a Service", async () => {
    const { onCall } = scene.aws.state;
    scene.aws.state.onCall = async (call) => {
      await onCall?.(call);
      const { stack } = scene.aws.state;
      if (stack === undefined) return;
      const { Parameters: _, ...outputs } = stack.outputs;
      scene.aws.state.stack = { ...stack, outputs };
    };
    expect((await scene.deploy(["--dry-run"])).text).toContain(
      "the stack does not say which parameters it was deployed with",
    );
    scene.aws.state.onCall = onCall;
    const before = await registered();
    const value = { service: { namespace: "default", name: "webhooks" } };
    await changeRegistration([{ op: "replace", path: "/webhooks/0/clientConfig", value }]);
    expect((await scene.deploy()).text).toContain("the pod webhook is registered at a Service of the cluster");
    const clientConfig = before?.webhooks?.[0]?.clientConfig;
    await changeRegistration([{ op: "replace", path: "/webhooks/0/clientConfig", value: clientConfig }]);
  });

  it("a deployment refuses to take the webhooks from another cluster, deployment or secret", async () => {
    const { cluster, parameters } = scene.aws.state;
    scene.aws.state.cluster = { ...cluster, name: "shop" };
    expect((await scene.deploy(["--cluster", "shop"])).text).toContain(
      "the functions of --stage prod work for EKS cluster demo: give --cluster demo, or another --stage for shop.",
    );
    scene.aws.state.cluster = cluster;
    parameters.set("/sidecarset/pord/path-secrets", parameters.get(SECRET) ?? "");
    expect((await scene.deploy(["--stage", "pord"])).text).toMatch(
      /registered at 127\.0\.0\.1:\d+, by eu-central-1\/sidecarset-prod, which is not of stack sidecarset-pord in eu-central-1: perhaps another --stage/,
    );
    await changeRegistration([{ op: "remove", path: "/metadata/annotations" }]);
    expect((await scene.deploy(["--stage", "pord"])).text).toMatch(
      /registered at 127\.0\.0\.1:\d+, which is not of stack sidecarset-pord/,
    );
    const secret = parameters.get(SECRET) ?? "";
    parameters.delete(SECRET);
    expect((await scene.deploy()).text).toContain(`registered with a secret that is not in SSM any more (${SECRET}`);
    parameters.set(SECRET, "n".repeat(43));
    const other = await scene.deploy();
    parameters.set(SECRET, secret);
    expect(other.text).toMatch(/none of the \d registered paths is made of a secret in SSM \(\/sidecarset\/prod/);
    expect([other.code, scene.aws.takeWrites()]).toEqual([2, []]);
  });

  it("a deployment rotates the secret, and every pod that is created during the rotation gets its sidecar", async () => {
    const cluster = clusterOf(controlPlane());
    const selector = { matchLabels: { app: "rotated" } };
    await cluster.create<KubernetesObject>(SIDECARSETS, {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: { name: "rotated" },
      ...{ spec: { selector, containers: [{ name: "sidecar", image: "busybox:1.37" }] } },
    });
    const { parameters } = scene.aws.state;
    const old = parameters.get(SECRET) ?? "";
    const fresh = "r".repeat(43);
    let isOver = false;
    const seen: string[] = [];
    // An earlier test stored a wrong secret in SSM, which a function may still have.
    await expect.poll(containersOfNewPod, { timeout: 60_000 }).toBe("sidecar,web");
    const probing = (async () => {
      while (!isOver) seen.push(await containersOfNewPod());
    })();
    parameters.set(SECRET, `${fresh}\n${old}`);
    const first = await scene.deploy();
    parameters.set(SECRET, fresh);
    const second = await scene.deploy();
    isOver = true;
    await probing;
    await cluster.delete(SIDECARSETS, { name: "rotated" });
    expect([first.code, second.code]).toEqual([0, 0]);
    expect(seen.length).toBeGreaterThan(20);
    expect(seen.filter((names) => names !== "sidecar,web")).toEqual([]);
    const [webhook] = (await registered())?.webhooks ?? [];
    expect(webhook?.clientConfig.url).toContain(`/s/${pathSecretOf(fresh, "/mutate-pod")}/mutate-pod`);
    scene.aws.takeWrites();
  });

  it("a deployment that is ended ends its child processes", async () => {
    const npm = join(scene.folder, "npm");
    const kept = await readFile(npm, "utf8");
    // The stand-in for npm starts a child, as npm starts osls, and prints after both run.
    await writeFile(npm, `#!/usr/bin/env bash\nsleep 600 &\necho "$$ $!" > ${scene.folder}/pids\nwait\n`);
    const started = async () => (await readFile(join(scene.folder, "pids"), "utf8")).match(/\d+/g)?.map(Number) ?? [];
    const watching = (async () => {
      // The file may exist before its text does.
      for await (const { filename } of watch(scene.folder))
        if (filename === "pids" && (await started()).length === 2) return scene.kill("SIGTERM");
    })();
    const { killed, text } = await scene.deploy(["--param", "log-level=warn"]);
    await watching;
    await writeFile(npm, kept);
    expect([killed, text]).toEqual([true, expect.stringContaining("ended by SIGTERM: run the same command again")]);
    const pids = await started();
    expect(pids).toHaveLength(2);
    await expect.poll(() => pids.filter(isRunning)).toEqual([]);
  });

  it("a deployment continues if its address has changed and an earlier run was killed before it registered the address", async () => {
    expect((await scene.deploy()).code).toBe(0);
    const value = "https://before.example.com/s/x/mutate-pod";
    await changeRegistration([{ op: "replace", path: "/webhooks/0/clientConfig/url", value }]);
    const { code, text } = await scene.deploy();
    expect(text).toContain("MutatingWebhookConfiguration kruise-sidecarset-mutating-webhook-configuration changed");
    expect(code).toBe(0);
  });

  it.each([
    ["kruise-mutating-webhook-configuration", "kruise-webhook-service", "OpenKruise's webhooks are registered"],
    [
      "sidecarset-stateful-sets-mutating-webhook-configuration",
      "any",
      "give --param ordered-sets=true, or run kubectl delete",
    ],
  ])("a deployment refuses to leave %s without a working address", async (name, service, sentence) => {
    const cluster = clusterOf(controlPlane());
    const clientConfig = { service: { name: service, namespace: "default" } };
    const webhook = { name: "m.kb.io", clientConfig, sideEffects: "None", admissionReviewVersions: ["v1"] };
    const kind = "MutatingWebhookConfiguration";
    const left = { apiVersion: "admissionregistration.k8s.io/v1", kind, metadata: { name }, webhooks: [webhook] };
    await cluster.create<Registered>(MUTATING_WEBHOOK_CONFIGURATIONS, left as Registered);
    const { code, text } = await scene.deploy();
    await cluster.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name });
    expect(text).toContain(sentence);
    expect(code).toBe(2);
  });

  it("a deployment refuses to drop parameters that another run set in the meantime", async () => {
    const { onCall } = scene.aws.state;
    let asked = 0;
    scene.aws.state.onCall = async (call) => {
      await onCall?.(call);
      if (call.service !== "cloudformation" || scene.aws.state.stack === undefined) return;
      const Parameters = asked === 0 ? "{}" : '{"log-level":"debug"}';
      const status = asked === 1 ? "UPDATE_IN_PROGRESS" : "UPDATE_COMPLETE";
      scene.aws.state.stack = { status, outputs: { ...scene.aws.state.stack.outputs, Parameters } };
      asked += 1;
    };
    const { code, text } = await scene.deploy();
    scene.aws.state.onCall = onCall;
    expect(text).toContain("is UPDATE_IN_PROGRESS: waiting for what was begun before");
    expect(text).toContain("the last deployment had --param log-level=debug: give that again");
    expect([code, asked]).toEqual([2, 3]);
  });

  it("a deployment without keep-registration removes its rights, and its condition", async () => {
    expect((await scene.deploy(["--param", "keep-registration=true"])).text).toContain(
      "ClusterRole sidecarset-reconciler-webhook-configuration created",
    );
    const value = { name: "needs-the-webhook", expression: "false" };
    await changeRegistration([{ op: "add", path: "/webhooks/0/matchConditions/-", value }]);
    const { code, text } = await scene.deploy(["--param", "keep-registration="]);
    expect(text).toContain("condition needs-the-webhook removed");
    expect(JSON.stringify(await registered())).not.toContain("needs-the-webhook");
    expect(code).toBe(0);
    expect((await scene.deploy()).text).toContain("All was there already: nothing was changed.");
  });

  it("a deployment tries a pod of an existing SidecarSet, and prints the names of its sidecars in pods", async () => {
    const hot = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "busybox:1" };
    const containers = [{ name: "hot", image: "busybox:1.37", upgradeStrategy: hot }];
    const cluster = clusterOf(controlPlane());
    await cluster.create<KubernetesObject>(SIDECARSETS, {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: { name: "deploy-hot" },
      ...{ spec: { selector: { matchLabels: { app: "deploy-hot" } }, containers } },
    });
    const { code, text } = await scene.deploy();
    expect(text).toContain("created in a dry run, has the containers hot-1, hot-2, web");
    expect(code).toBe(0);
    // A refusal by the cluster's policy is not a fault of the webhooks.
    const restricted = (value: string | null) =>
      cluster.patch(
        NAMESPACES,
        { name: "default" },
        {
          type: "merge",
          body: { metadata: { labels: { "pod-security.kubernetes.io/enforce": value } } },
        },
      );
    await restricted("restricted");
    const refused = await scene.deploy();
    await restricted(null);
    await cluster.delete(SIDECARSETS, { name: "deploy-hot" });
    expect(refused.text).toContain("no pod could be tried in namespace default: ");
    expect(refused.code).toBe(0);
  });

  it("a deployment removes the sample SidecarSet of a killed run", async () => {
    const cluster = clusterOf(controlPlane());
    const selector = { matchLabels: { "sidecarset.kruise.io/first-pod": "true" } };
    await cluster.create<KubernetesObject>(SIDECARSETS, {
      apiVersion: "apps.kruise.io/v1beta1",
      kind: "SidecarSet",
      metadata: { name: "sidecarset-first-pod" },
      ...{ spec: { selector, containers: [{ name: "first-sidecar", image: "busybox:1.37" }] } },
    });
    expect((await scene.deploy()).code).toBe(0);
    const { items } = await cluster.list(SIDECARSETS, {});
    expect(items.filter(({ metadata }) => metadata?.deletionTimestamp === undefined)).toEqual([]);
  });

  it("a deployment keeps the definition of a newer release", async () => {
    const cluster = clusterOf(controlPlane());
    const key = { name: "sidecarsets.apps.kruise.io" };
    const path = "/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/fromTheFuture";
    const value = { type: "string" };
    await cluster.patch(DEFINITIONS, key, { type: "json", operations: [{ op: "add", path, value }] });
    const { code, text } = await scene.deploy();
    expect(text).toContain("stays, it is of a newer release: it has .spec.fromTheFuture");
    expect(JSON.stringify(await cluster.get(DEFINITIONS, key))).toContain("fromTheFuture");
    expect(code).toBe(0);
    await cluster.patch(DEFINITIONS, key, { type: "json", operations: [{ op: "remove", path }] });
  });

  it("a deployment stays a dry run if npm has taken --dry-run for itself", async () => {
    const { code, text } = await scene.deploy([], { env: { npm_config_dry_run: "true" } });
    expect(text).toContain("npm has taken --dry-run for itself: options stand behind --");
    expect(code).toBe(2);
  });

  it("no command line and no output shows the secret, or a path's secret", async () => {
    const secret = scene.aws.state.parameters.get(SECRET) ?? "";
    for (const one of [secret, pathSecretOf(secret, "/mutate-pod"), pathSecretOf(secret, "/convert")]) {
      expect(one).toHaveLength(43);
      expect(scene.commands().join("\n")).not.toContain(one);
      expect(scene.printed()).not.toContain(one);
    }
    expect(scene.printed()).toContain("/sidecarset/prod/path-secrets made: 256 random bits");
    expect(scene.commands().length).toBeGreaterThan(20);
  });
});
