/**
 * Checks that a compiled policy injects what the webhook injects. Each generated pod is created in three namespaces:
 * with the webhook, with the policy, and with both.
 */
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { INJECTED_LIST_ANNOTATION, NAMESPACE_NAME_LABEL } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { mapLimited } from "../../shared/controller/loop/concurrency-limit.ts";
import { type CompiledSidecarSet, compileSidecarSet } from "../../shared/core/injection/compile/compile.ts";
import { diffJson } from "../../shared/go/json/json-diff.ts";
import { installedResource } from "../../shared/install/manifests.ts";
import { type Cluster, NAMESPACES, type Resource, SIDECARSETS } from "../../shared/kube/port.ts";
import { runCli } from "../cli/run-cli.ts";
import { type RawAnswer, sendRaw } from "../contract/raw.ts";
import { apiServer, controlPlane } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { comparable, isLeftToTheWebhook, type LeftOut, leftOutOf, NOTHING_LEFT_OUT } from "./support/compiled-pod.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { generatedPods } from "./support/generated-pod.ts";
import { generatedSidecarSets } from "./support/generated-sidecarset.ts";
import { IS_SOAK, size } from "./support/size.ts";
import { eventually, until } from "./support/until.ts";

const EQUAL_CASES = size({ ci: 500, soak: 5_000 });
const PODS_A_SET = 24;
const SETS = EQUAL_CASES / 6;
const SEED = IS_SOAK ? Date.now() % 2 ** 31 : 20_260_301;
const AT_ONCE = 8;

const [WEBHOOK, POLICY, BOTH] = ["compiled-webhook", "compiled-policy", "compiled-both"];
const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };
const SETS_PATH = "/apis/apps.kruise.io/v1beta1/sidecarsets";

let functions: Functions;
let cluster: Cluster;
beforeAll(async () => {
  functions = await startFunctions(apiServer(), { hasTicks: false });
  cluster = clusterOf(apiServer());
  for (const name of [WEBHOOK, POLICY, BOTH]) {
    await cluster.create(NAMESPACES, { metadata: { name } } as KubernetesObject);
    const account = { namespace: name, name: "default" };
    await until("service account", async () => Boolean(await cluster.get(SERVICE_ACCOUNTS, account)));
  }
});
afterAll(async () => {
  for (const name of [WEBHOOK, POLICY, BOTH]) await cluster.delete(NAMESPACES, { name }).catch(() => undefined);
  await functions?.close();
});

type Generated = typeof generatedPods extends fc.Arbitrary<infer T> ? T : never;
type Set = { readonly name: string; readonly spec: object };

function send(method: string, path: string, body?: object): Promise<RawAnswer> {
  return sendRaw(apiServer(), { method, path, ...(body ? { body } : {}) });
}

function inNamespaces(...values: readonly string[]) {
  return { matchExpressions: [{ key: NAMESPACE_NAME_LABEL, operator: "In", values }] };
}

interface Case {
  /** the SidecarSet as it is stored */
  readonly set: SidecarSet;
  readonly pods: readonly Generated[];
  readonly compiled: CompiledSidecarSet;
  readonly leftOut: LeftOut;
}

/** Returns a SidecarSet for pods with its own label; undefined: it is not valid. */
async function createCase(
  { set, pods }: { readonly set: Set; readonly pods: readonly Generated[] },
  mayDecline = false,
) {
  const { name, spec } = set;
  const kind = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name } };
  const selector = { matchLabels: { case: name } };
  const body = { ...kind, spec: { ...spec, selector, namespaceSelector: inNamespaces(WEBHOOK, BOTH) } };
  const answer = await send("POST", SETS_PATH, body);
  if (answer.code !== 201) return undefined;
  const stored = answer.body as SidecarSet;
  const options = { kruiseNamespace: "kruise-system", revisions: [], others: [stored] };
  const compiled = compileSidecarSet(
    { ...stored, spec: { ...stored.spec, namespaceSelector: inNamespaces(POLICY, BOTH) } },
    { ...options, now: "2026-03-01T00:00:00Z", failurePolicy: "Fail", sortContainersByName: false, mayDecline },
  );
  for (const object of compiled.objects) await cluster.create(installedResource(object), object);
  const fields = compiled.notExpressible.map(({ field }) => field);
  return {
    set: stored,
    pods,
    compiled,
    leftOut: compiled.objects.length > 0 ? leftOutOf(stored, fields) : NOTHING_LEFT_OUT,
  };
}

function tryPod(namespace: string, { metadata, spec }: Partial<Generated>, set: SidecarSet): Promise<RawAnswer> {
  const labels = { ...(metadata?.["labels"] as object | undefined), case: set.metadata?.name };
  const body = { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, labels, name: "tried" }, spec };
  return send("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, body);
}

const PLAIN = { spec: { containers: [{ name: "main", image: "app:1" }] } };

function isInjected({ body }: RawAnswer): boolean {
  return (body as Pod).metadata?.annotations?.[INJECTED_LIST_ANNOTATION] !== undefined;
}

/** Waits, because the API server compiles a changed policy only after some time. */
function untilInForce({ set }: Case): Promise<unknown> {
  return eventually(
    () => tryPod(POLICY, PLAIN, set),
    (answer) => expect(answer.code !== 201 || isInjected(answer)).toBe(true),
  );
}

/** True if the policy probably contains every part of the SidecarSet. */
function isWhole({ spec }: Set): boolean {
  return !/resourcesPolicy|MergePatchJson/.test(JSON.stringify(spec));
}

const counts = {
  "SidecarSets that no policy would be right for": 0,
  "compiled SidecarSets": 0,
  "compiled SidecarSets, not all expressible": 0,
  "pods equal under policy and webhook": 0,
  "pods equal but for what is listed as not expressible": 0,
  "pods equal under both at once": 0,
  "pods refused under both": 0,
  "pods left to the webhook": 0,
};
const differences: object[] = [];

function count(
  what: keyof typeof counts,
  differs: object | undefined,
  [pod, { set }]: readonly [Generated, Case],
): void {
  if (differs === undefined) counts[what] += 1;
  else differences.push({ what, ...differs, pod, spec: set.spec });
}

/** Returns the difference of the two answers; undefined: none. */
function difference(one: RawAnswer, other: RawAnswer, leftOut: LeftOut): object | undefined {
  const [wanted, got] = [comparable(one, leftOut), comparable(other, leftOut)];
  const changes = diffJson(wanted, got);
  return changes.length === 0 ? undefined : { changes, wanted, got };
}

async function judge(pod: Generated, one: Case): Promise<void> {
  const { set, compiled, leftOut } = one;
  const [webhook, policy, both] = await Promise.all([
    tryPod(WEBHOOK, pod, set),
    tryPod(POLICY, pod, set),
    tryPod(BOTH, pod, set),
  ]);
  const isAll = compiled.notExpressible.length === 0;
  const equal = isAll ? "pods equal under policy and webhook" : "pods equal but for what is listed as not expressible";
  if (isLeftToTheWebhook(pod, set))
    count("pods left to the webhook", policy.code === 201 && isInjected(policy) ? { policy: policy.body } : undefined, [
      pod,
      one,
    ]);
  else if (webhook.code !== 201 && policy.code !== 201) counts["pods refused under both"] += 1;
  else if (isAll || webhook.code === 201) count(equal, difference(webhook, policy, leftOut), [pod, one]);
  if (webhook.code === 201)
    count("pods equal under both at once", difference(webhook, both, NOTHING_LEFT_OUT), [pod, one]);
}

it(`${EQUAL_CASES} generated pods are the same under the policy as under the webhook`, async () => {
  process.stdout.write(`compiled SidecarSets: seed ${SEED}\n`);
  const pods = fc.array(generatedPods, { minLength: PODS_A_SET, maxLength: PODS_A_SET });
  const groups = Array.from({ length: SETS }, (_, index) => {
    const set = generatedSidecarSets(`set-${index}`).filter((one) => index % 4 === 0 || isWhole(one));
    return fc.sample(fc.record({ set, pods }), { seed: SEED + index, numRuns: 1 });
  }).flat();
  const created = (await mapLimited(groups, AT_ONCE, (group) => createCase(group))).flatMap((one) => one ?? []);
  const cases = created.filter(({ compiled }) => compiled.objects.length > 0);
  counts["compiled SidecarSets"] = cases.length;
  counts["SidecarSets that no policy would be right for"] = created.length - cases.length;
  counts["compiled SidecarSets, not all expressible"] = cases.filter(
    ({ compiled }) => compiled.notExpressible.length > 0,
  ).length;
  for (const one of cases) await untilInForce(one);
  const all = cases.flatMap((one) => one.pods.map((pod) => [pod, one] as const));
  await mapLimited(all, AT_ONCE, ([pod, one]) => judge(pod, one));
  for (const { set, compiled } of created) {
    for (const object of compiled.objects)
      await cluster.delete(installedResource(object), { name: object.metadata?.name ?? "" });
    await cluster.delete(SIDECARSETS, { name: set.metadata?.name ?? "" });
  }
  for (const [what, number] of Object.entries(counts)) addFigure(what, number);
  expect(differences.slice(0, 1), `${differences.length} differ`).toEqual([]);
  expect(counts["pods equal under policy and webhook"]).toBeGreaterThanOrEqual(EQUAL_CASES);
  expect(counts["pods equal under both at once"]).toBeGreaterThanOrEqual(EQUAL_CASES);
  expect(Object.values(counts)).not.toContain(0);
}, 1_200_000);

it("if pods may decline sidecars, the policy leaves out pods that do so by label or annotation", async () => {
  const spec = { containers: [{ name: "agent", image: "agent:1" }], updateStrategy: { type: "NotUpdate" } };
  const one = await createCase({ set: { name: "declinable", spec } as unknown as Set, pods: [] }, true);
  if (one === undefined) throw new Error("the SidecarSet is refused");
  await untilInForce(one);
  const key = "sidecarset.kruise.io/inject";
  const isGiven = async (metadata: object) =>
    isInjected(await tryPod(POLICY, { ...PLAIN, metadata } as never, one.set));
  expect(await isGiven({ labels: { [key]: "false" } })).toBe(false);
  expect(await isGiven({ annotations: { [key]: "false" } })).toBe(false);
  expect(await isGiven({ labels: { [key]: "true" }, annotations: { [key]: "true" } })).toBe(true);
  expect(await isGiven({})).toBe(true);
  for (const object of one.compiled.objects)
    await cluster.delete(installedResource(object), { name: object.metadata?.name ?? "" });
  await cluster.delete(SIDECARSETS, { name: "declinable" });
});

it("compile prints objects that kubectl applies, and names the parts that it leaves out", async () => {
  const name = "compiled-by-command";
  const resourcesPolicy = { targetContainersMode: "sum", resourcesExpr: { requests: { cpu: "cpu" } } };
  const containers = [
    { name: "agent", image: "agent:1" },
    { name: "mesh", image: "mesh:1", resourcesPolicy },
  ];
  const spec = { selector: { matchLabels: { case: name } }, containers, updateStrategy: { type: "NotUpdate" } };
  const kind = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name } };
  const stored = await cluster.create(SIDECARSETS, { ...kind, spec } as KubernetesObject);
  const kubeconfig = join(controlPlane().folder, "admin.kubeconfig");
  const { code, stdout, stderr } = await runCli(["compile", "--to", "map", name, "--kubeconfig", kubeconfig]);
  expect({ code, stderr }).toEqual({
    code: 3,
    stderr: expect.stringContaining("spec.containers[1].resourcesPolicy: "),
  });
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as KubernetesObject);
  expect(objects.map((object) => object.kind)).toEqual(["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]);
  const owners = objects.map(({ metadata }) => metadata?.ownerReferences?.map(({ uid }) => uid));
  expect(owners).toEqual([[stored.metadata?.uid], [stored.metadata?.uid]]);
  for (const object of objects) await cluster.create(installedResource(object), object);
  await cluster.delete(SIDECARSETS, { name });
  // Both objects belong to the SidecarSet, and are deleted with it.
  for (const object of objects)
    await until(`${object.kind} is gone`, async () => {
      const left = await cluster
        .get(installedResource(object), { name: object.metadata?.name ?? "" })
        .catch(() => undefined);
      return left === undefined;
    });
  const missing = await runCli(["compile", "--to", "map", "nobody", "--kubeconfig", kubeconfig]);
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("there is no SidecarSet nobody") });
});
