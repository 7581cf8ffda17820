/**
 * Creates each generated pod on a real API server with the webhook and without it. The API server may not refuse a pod
 * only because of the webhook.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { INJECTED_LIST_ANNOTATION, NAMESPACE_NAME_LABEL } from "../../shared/api/names.ts";
import { mapLimited } from "../../shared/controller/loop/concurrency-limit.ts";
import { type Cluster, NAMESPACES, type Resource } from "../../shared/kube/port.ts";
import { type RawAnswer, sendRaw } from "../contract/raw.ts";
import { brokenByReference } from "./support/acceptance-classes.ts";
import { apiServer } from "./support/access.ts";
import { clusterOf } from "./support/clients.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { generatedPods } from "./support/generated-pod.ts";
import { generatedSidecarSets } from "./support/generated-sidecarset.ts";
import { IS_SOAK, size } from "./support/size.ts";
import { until } from "./support/until.ts";

const PODS_A_GROUP = 10;
const GROUPS = size({ ci: 1_000, soak: 5_000 }) / PODS_A_GROUP;
/** Every soak run has a new seed. To repeat a run, write its seed here. */
const SEED = IS_SOAK ? Date.now() % 2 ** 31 : 20_260_101;
const AT_ONCE = 8;

const INJECTED = "acceptance";
/** The namespace that the webhook ignores. */
const CONTROL = "acceptance-control";
const SERVICE_ACCOUNTS: Resource = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };

let functions: Functions;
let cluster: Cluster;
beforeAll(async () => {
  functions = await startFunctions(apiServer(), { hasTicks: false });
  cluster = clusterOf(apiServer());
  for (const [name, labels] of Object.entries({ [INJECTED]: {}, [CONTROL]: { "control-plane": "none" } })) {
    await cluster.create(NAMESPACES, { metadata: { name, labels } });
    const account = { namespace: name, name: "default" };
    await until("service account", async () => Boolean(await cluster.get(SERVICE_ACCOUNTS, account)));
  }
});
afterAll(async () => {
  for (const name of [INJECTED, CONTROL]) await cluster.delete(NAMESPACES, { name }).catch(() => undefined);
  await functions?.close();
});

type Pod = typeof generatedPods extends fc.Arbitrary<infer T> ? T : never;
type Set = { readonly name: string; readonly spec: object };

const groups = fc.record({
  sets: fc.oneof(
    { weight: 2, arbitrary: fc.tuple(generatedSidecarSets("one")) },
    { weight: 1, arbitrary: fc.tuple(generatedSidecarSets("one"), generatedSidecarSets("two")) },
  ),
  pods: fc.array(generatedPods, { minLength: PODS_A_GROUP, maxLength: PODS_A_GROUP }),
});

const SETS_PATH = "/apis/apps.kruise.io/v1beta1/sidecarsets";

function send(method: string, path: string, body?: object): Promise<RawAnswer> {
  return sendRaw(apiServer(), { method, path, ...(body ? { body } : {}) });
}

function createSet({ name, spec }: Set): Promise<RawAnswer> {
  const selector = { matchExpressions: [{ key: "app", operator: "In", values: ["web", "api"] }] };
  const namespaceSelector = { matchLabels: { [NAMESPACE_NAME_LABEL]: INJECTED } };
  const kind = { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata: { name } };
  return send("POST", SETS_PATH, { ...kind, spec: { ...spec, selector, namespaceSelector } });
}

function tryPod({ metadata, spec }: Pod, namespace: string): Promise<RawAnswer> {
  const body = { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, name: "tried" }, spec };
  return send("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, body);
}

const counts = {
  "generated SidecarSets": 0,
  "generated SidecarSets that are not valid": 0,
  "generated pods accepted both ways": 0,
  "generated pods accepted both ways, injected": 0,
  "generated pods refused both ways": 0,
  "generated pods accepted only with sidecars": 0,
  /** class of the reference's fault → number of pods */
  brokenAsByOpenKruise: {} as Record<string, number>,
};
const unexplained: object[] = [];

const messageOf = ({ body, text }: RawAnswer) => (body as { readonly message?: string } | undefined)?.message ?? text;

function noteAccepted({ body }: RawAnswer): void {
  const { metadata } = body as { readonly metadata: { readonly annotations?: Record<string, string> } };
  counts["generated pods accepted both ways"] += 1;
  counts["generated pods accepted both ways, injected"] += metadata.annotations?.[INJECTED_LIST_ANNOTATION] ? 1 : 0;
}

/** Counts a pod that is refused only with its sidecars. */
function noteBroken(answer: RawAnswer, pod: Pod, sets: readonly Set[]): void {
  const known = brokenByReference(answer.body as object);
  if (known === undefined) unexplained.push({ why: messageOf(answer), pod, sets });
  else counts.brokenAsByOpenKruise[known] = (counts.brokenAsByOpenKruise[known] ?? 0) + 1;
}

async function judge(pod: Pod, sets: readonly Set[]): Promise<void> {
  const [control, injected] = [await tryPod(pod, CONTROL), await tryPod(pod, INJECTED)];
  const [isAccepted, isAcceptedInjected] = [control.code === 201, injected.code === 201];
  if (isAcceptedInjected && isAccepted) noteAccepted(injected);
  else if (isAccepted) noteBroken(injected, pod, sets);
  else if (isAcceptedInjected) counts["generated pods accepted only with sidecars"] += 1;
  else counts["generated pods refused both ways"] += 1;
}

async function tryGroup({ sets, pods }: { readonly sets: readonly Set[]; readonly pods: readonly Pod[] }) {
  const created: Set[] = [];
  for (const set of sets) {
    const answer = await createSet(set);
    counts["generated SidecarSets"] += 1;
    if (answer.code === 201) created.push(set);
    else counts["generated SidecarSets that are not valid"] += 1;
  }
  if (created.length > 0) await mapLimited(pods, AT_ONCE, (pod) => judge(pod, created));
  for (const { name } of created) await send("DELETE", `${SETS_PATH}/${name}`);
  return created.length > 0 ? pods.length : 0;
}

it(`all of ${GROUPS * PODS_A_GROUP} pods that the API server accepts without sidecars are accepted with them`, async () => {
  process.stdout.write(`generated pods and SidecarSets: seed ${SEED}\n`);
  const wanted = GROUPS * PODS_A_GROUP;
  let tried = 0;
  for (const group of fc.sample(groups, { seed: SEED, numRuns: GROUPS * 3 })) {
    if (tried < wanted) tried += await tryGroup(group);
  }
  const { brokenAsByOpenKruise, ...others } = counts;
  const broken = Object.entries(brokenAsByOpenKruise).map(([what, count]) => [
    `broken as by OpenKruise: ${what}`,
    count,
  ]);
  for (const [what, count] of [...Object.entries(others), ...broken]) addFigure(String(what), Number(count));
  expect(unexplained.slice(0, 3)).toEqual([]);
  expect(tried).toBe(wanted);
  expect(counts["generated pods accepted both ways, injected"]).toBeGreaterThan(tried / 3);
  expect(counts["generated pods refused both ways"]).toBeGreaterThan(tried / 100);
}, 1_200_000);
