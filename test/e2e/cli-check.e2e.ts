/** Tests `check` and `migrate` on a real control plane, with its own authorizer, admission and definitions. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE, WEBHOOK_CONFIGURATION } from "../../shared/api/names.ts";
import type { CheckReport } from "../../shared/core/inspect/check/check.ts";
import type { Migration } from "../../shared/core/inspect/migrate/inventory.ts";
import { installedResource } from "../../shared/install/manifests.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import {
  type Cluster,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  type Resource,
  SIDECARSETS,
} from "../../shared/kube/port.ts";
import { type Outcome, runHere } from "../cli/run-cli.ts";
import { newPod } from "../support/objects.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf, writeKubeconfig } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type StartedFunctions, startFunctions } from "./support/functions.ts";
import { until } from "./support/until.ts";

const NAME = "cli-check";
const OLDER: Resource = { ...SIDECARSETS, version: "v1alpha1" };
const DEFINITIONS: Resource = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
const BINDINGS: Resource = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural: "clusterrolebindings",
  namespaced: false,
};
const SHELL = promisify(execFile);

let functions: StartedFunctions;
let cluster: Cluster;
let folder: string;
let kubeconfig: string;

beforeAll(async () => {
  cluster = clusterOf(controlPlane());
  folder = await mkdtemp(join(tmpdir(), "cli-check-"));
  kubeconfig = await writeKubeconfig(join(folder, "kubeconfig"), controlPlane());
  functions = await startFunctions(controlPlane());
  await cluster.create(NAMESPACES, { metadata: { name: NAME } });
  await cluster.create(SIDECARSETS, {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: { name: NAME },
    spec: { selector: { matchLabels: { check: "yes" } }, containers: [{ name: "agent", image: "agent:1" }] },
  } as KubernetesObject);
});
afterAll(async () => {
  await cluster.delete(SIDECARSETS, { name: NAME });
  await cluster.delete(NAMESPACES, { name: NAME });
  await functions?.close();
  await rm(folder, { recursive: true, force: true });
});

const cli = (args: readonly string[], file = kubeconfig): Promise<Outcome> => runHere(["--kubeconfig", file, ...args]);

async function check(file = kubeconfig, said = ""): Promise<CheckReport & { readonly code: number }> {
  const { code, stdout, stderr } = await cli(["check", "-o", "json"], file);
  if (said === "") expect(stderr).toBe("");
  else expect(stderr).toContain(said);
  expect(stdout).not.toContain(functions.address.pathSecret);
  return { ...(JSON.parse(stdout) as CheckReport), code };
}

const idsOf = ({ findings }: CheckReport): readonly string[] => findings.map(({ id }) => id);

/** Creates an object that lasts until the test ends. */
async function put(object: KubernetesObject): Promise<void> {
  const key = { ...object.metadata, name: object.metadata?.name ?? "" };
  await cluster.create(installedResource(object), object);
  onTestFinished(() => cluster.delete(installedResource(object), key));
}

/** Deletes the object. The returned function restores it; otherwise the test's end does. */
async function takeAway(resource: Resource, name: string): Promise<() => Promise<void>> {
  const stored = await cluster.get<KubernetesObject>(resource, { name });
  await cluster.delete(resource, { name });
  let isBack = false;
  const restore = async () => {
    if (isBack) return;
    const { resourceVersion: _, uid: __, ...metadata } = stored.metadata ?? {};
    await cluster.create(resource, { ...stored, metadata });
    isBack = true;
  };
  onTestFinished(restore);
  return restore;
}

async function untilFound(id: string): Promise<CheckReport & { readonly code: number }> {
  let report = await check();
  await until(`${id} is found`, async () => {
    report = await check();
    return idsOf(report).includes(id);
  });
  return report;
}

const bind = (name: string, subject: string): KubernetesObject & { readonly [key: string]: unknown } => ({
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRoleBinding",
  metadata: { name },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
  subjects: [{ kind: "ServiceAccount", namespace: KRUISE_NAMESPACE, name: subject }],
});

describe("check", () => {
  it("check finds no fault in a healthy installation, asks for every right, and counts the checked objects", async () => {
    // Passes use KruisePodReadinessGate here, so the API server sends every pod to the webhook.
    const inOrder = ["FailsClosedForAll", "MatchesNoPods"];
    await until("passes have recorded the SidecarSet", async () => {
      const ids = idsOf(await check());
      return !ids.includes("TickNeverRan") && !ids.includes("ChangeNotSeen");
    });
    const { findings, code, counts, looked } = await check();
    // Another test file's SidecarSet may have left a ledger.
    const ours = findings.filter(({ id }) => id !== "LedgerLeft");
    expect(ours.map(({ id, about, message }) => `${id} ${about} ${message}`)).toEqual(
      inOrder.map(() => expect.stringMatching(new RegExp(`^(${inOrder.join("|")}) `))),
    );
    expect([code, counts.error]).toEqual([3, 0]);
    expect(looked.rights).toBeGreaterThan(60);
    expect(looked).toMatchObject({ sidecarSets: 1, webhooks: 3, addresses: 2 });
    addFigure("rights of our accounts that check asked for", looked.rights);
  });

  it("check reports an account that may do everything, and an account that may do nothing", async () => {
    await put(bind("cli-check-too-wide", "sidecarset-webhooks"));
    const wide = await untilFound("RightTooWide");
    expect(wide.findings.find(({ id }) => id === "RightTooWide")).toMatchObject({ about: "sidecarset-webhooks" });
    await takeAway(BINDINGS, "sidecarset-reconciler");
    const narrow = await untilFound("RightMissing");
    expect(narrow.code).toBe(4);
    expect(narrow.findings.find(({ id }) => id === "RightMissing")).toMatchObject({ about: "sidecarset-reconciler" });
  });

  it("check finds pods that were created while the webhook was not registered", async () => {
    const restore = await takeAway(MUTATING_WEBHOOK_CONFIGURATIONS, WEBHOOK_CONFIGURATION);
    const without = await untilFound("NotInForce");
    expect(idsOf(without)).toEqual(expect.arrayContaining(["PodWebhookMissing", "SidecarSetWebhookMissing"]));
    const metadata = { name: "missed", namespace: NAME, labels: { check: "yes" } };
    await put(newPod(metadata, { containers: [{ name: "app", image: "app:1" }] }));
    await restore();
    await until("the webhooks are in force again", async () => !idsOf(await check()).includes("NotInForce"));
    const missed = (await check()).findings.find(({ id }) => id === "InjectionMissed");
    expect(missed?.message).toContain(`${NAME}/missed`);
  });

  it("check lists the unread objects for a user with few rights", async () => {
    const target = await asServiceAccount(controlPlane(), KRUISE_NAMESPACE, "sidecarset-webhooks");
    const little = await writeKubeconfig(join(folder, "little"), target);
    const { findings, code } = await check(little, "It is not known with which feature gates passes run");
    const unseen = findings.filter(({ id }) => id === "NotLookedAt").map(({ about }) => about);
    expect(unseen).toEqual(expect.arrayContaining(["mutating", "validating", "definition", "pods", "rights", "trial"]));
    expect(unseen).not.toContain("sidecarSets");
    expect(code).toBe(3);
  });
});

const MANAGER = { name: "kruise-controller-manager", namespace: KRUISE_NAMESPACE };
const LABELS = { "control-plane": "controller-manager" };

/** The objects of OpenKruise's manager; no node runs its pods. */
function kruise(): readonly KubernetesObject[] {
  const service = { namespace: KRUISE_NAMESPACE, name: "kruise-webhook-service", path: "/mutate-pod" };
  return [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: MANAGER,
      spec: {
        replicas: 1,
        selector: { matchLabels: LABELS },
        template: {
          metadata: { labels: LABELS },
          spec: {
            nodeSelector: { nowhere: "yes" },
            containers: [{ name: "manager", image: "openkruise/kruise-manager:v1.8.0" }],
          },
        },
      },
    } as KubernetesObject,
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "kruise-mutating-webhook-configuration", annotations: { template: "[]" } },
      webhooks: [
        {
          name: "mpod.kb.io",
          clientConfig: { service },
          rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
          // No server answers for this webhook, so it may match no pod.
          namespaceSelector: { matchLabels: { nowhere: "yes" } },
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
        },
      ],
    } as KubernetesObject,
  ];
}

async function migration(...args: readonly string[]): Promise<Migration & { readonly code: number }> {
  const { code, stdout, stderr } = await cli(["migrate", ...args, "-o", "json"]);
  expect(stderr).toBe("");
  return { ...(JSON.parse(stdout) as Migration), code };
}

/** Returns the patch of the definition that a plan prints, as a shell reads that line. */
async function patchIn({ steps }: Migration): Promise<unknown> {
  const line = steps.flatMap(({ commands }) => commands).find((one) => one.includes("kubectl patch crd "));
  const body = line?.startsWith("printf ") ? line.split(" | kubectl patch ")[0] : `printf %s ${line?.split(" -p ")[1]}`;
  const { stdout } = await SHELL("sh", [
    "-c",
    `sidecarset() { "${process.execPath}" functions/cli.mjs "$@"; }; ${body}`,
  ]);
  return JSON.parse(stdout);
}

const convert = (body: unknown) =>
  cluster.patch<KubernetesObject>(DEFINITIONS, { name: "sidecarsets.apps.kruise.io" }, { type: "merge", body });
const readOlder = () => cluster.get<KubernetesObject>(OLDER, { name: NAME });

describe("migrate", () => {
  it("migrate from-kruise lists the present objects, and its command gives the definition the product's conversion", async () => {
    for (const object of kruise()) await put(object);
    const { address } = functions;
    const files = { ca: join(folder, "ca.crt"), secrets: join(folder, "path secrets") };
    await writeFile(files.ca, Buffer.from(address.caBundle ?? "", "base64"));
    await writeFile(files.secrets, `${address.pathSecret}\n`);
    const back = await migration("to-kruise");
    await convert(await patchIn(back));
    await until("a read as v1alpha1 fails, because the API server cannot call the webhook", () =>
      readOlder().then(
        () => false,
        (error: unknown) => isKubeError(error, 500) && /conversion webhook for .* failed/.test(error.message),
      ),
    );
    const given = ["--url", address.url, "--ca-bundle", files.ca, "--path-secrets", files.secrets];
    const there = await migration("from-kruise", ...given);
    expect(there).toMatchObject({ code: 0, blocks: [] });
    expect(there.found.join("\n")).toMatch(/kruise-controller-manager v1\.8\.0, 0 ready[\s\S]*kruise-mutating-webhook/);
    expect(idsOf(await check())).toEqual(
      expect.arrayContaining(["OpenKruiseActive", "InjectedTwice", "ConversionElsewhere"]),
    );
    expect(JSON.stringify(there)).not.toContain(address.pathSecret);
    await convert(await patchIn(there));
    await until("SidecarSets are converted by us", () =>
      readOlder().then(
        ({ apiVersion }) => apiVersion === "apps.kruise.io/v1alpha1",
        () => false,
      ),
    );
    addFigure("steps of a migration's plan", there.steps.length + back.steps.length);
  });

  it("migrate is blocked by kinds that only OpenKruise serves", async () => {
    await put({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "clonesets.apps.kruise.io", annotations: { "api-approved.kubernetes.io": "unapproved" } },
      spec: {
        group: "apps.kruise.io",
        names: { kind: "CloneSet", plural: "clonesets", singular: "cloneset", listKind: "CloneSetList" },
        scope: "Namespaced",
        versions: [{ name: "v1alpha1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
      },
    } as KubernetesObject);
    const clone = { apiVersion: "apps.kruise.io/v1alpha1", kind: "CloneSet", metadata: { name: "c", namespace: NAME } };
    await until("the kind is served", () =>
      cluster.create(installedResource(clone), clone).then(
        () => true,
        () => false,
      ),
    );
    const { blocks, steps, code } = await migration("from-kruise");
    expect([code, steps, blocks]).toEqual([3, [], [expect.stringContaining("1 CloneSet")]]);
  });
});
