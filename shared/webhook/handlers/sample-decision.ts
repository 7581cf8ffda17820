/** Tells whether this build decides correctly, with a sample pod, through the code that answers API servers. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { indexSidecarSets } from "../../core/injection/match/sidecarset-index.ts";
import type { Log } from "../../log.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import type { webhookApp } from "../review/app.ts";
import type { HttpRequest } from "../server/http.ts";
import type { ClusterView } from "../view/cluster-view.ts";
import type { podAdmission } from "./pod-admission.ts";

// A made-up pod and SidecarSet, as API servers send and have them. No pod of a cluster has that label.

const LABELS = { "sidecarset.kruise.io/sample": "true" };

const SAMPLE_SIDECAR = "sample-sidecar";

export const SAMPLE_SIDECAR_SET: SidecarSet = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "sidecarset-sample", uid: "00000000-0000-4000-8000-000000000001", resourceVersion: "1" },
  spec: { selector: { matchLabels: LABELS }, containers: [{ name: SAMPLE_SIDECAR, image: "busybox:1.37" }] },
};

/** JSON of an AdmissionReview. */
export function sampleReview(
  object: object,
  resource: readonly [group: string, version: string, plural: string],
): string {
  const [group, version, plural] = resource;
  const request = {
    uid: "00000000-0000-4000-8000-000000000002",
    operation: "CREATE",
    resource: { group, version, resource: plural },
    namespace: "default",
    dryRun: true,
    object,
  };
  return JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });
}

export function samplePod(labels: Readonly<Record<string, string>>, namespace = "default"): object {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "sidecarset-sample", namespace, labels },
    spec: { containers: [{ name: "main", image: "nginx:1.29" }] },
  };
}

const SAMPLE_POD_REVIEW = sampleReview(samplePod(LABELS), ["", "v1", "pods"]);

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** Names of the containers that an admission's patch adds, those of init included. `patch`: base64. */
export function containersIn(patch: string | undefined): readonly string[] {
  if (patch === undefined) return [];
  const operations = JSON.parse(Buffer.from(patch, "base64").toString()) as readonly Operation[];
  const added = operations.filter(
    ({ op, path }) => op === "add" && /^\/spec\/(initC|c)ontainers(\/[^/]+)?$/.test(path),
  );
  const containers = added.flatMap(({ value }) => (Array.isArray(value) ? value : [value])) as {
    readonly name: string;
  }[];
  return containers.map(({ name }) => name);
}

interface Decided {
  readonly response?: { readonly allowed?: boolean; readonly patch?: string };
}

export interface SampleOptions {
  readonly kruiseNamespace: string;
  readonly featureGates: FeatureGates;
}

/** The deciding code: Lambda's pod webhook loads this file late, so the caller passes its imports. */
export interface Deciding {
  readonly webhookApp: typeof webhookApp;
  readonly podAdmission: typeof podAdmission;
  readonly indexSidecarSets: typeof indexSidecarSets;
}

const PATH = "/mutate-pod";
const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const NOTHING = async () => ({ value: undefined });
const SIDECAR_SETS: readonly SidecarSet[] = [SAMPLE_SIDECAR_SET];
const REQUEST: HttpRequest = {
  method: "POST",
  path: PATH,
  query: "timeout=5s",
  headers: { "content-type": "application/json" },
  readBody: async () => SAMPLE_POD_REVIEW,
};

/**
 * Runs the sample from the text of the review to the patch. Rejects unless the pod gets the sidecar; asks nothing of
 * the cluster.
 */
export async function decideSample(options: SampleOptions, deciding: Deciding): Promise<void> {
  const value = { sidecarSets: SIDECAR_SETS, index: deciding.indexSidecarSets(SIDECAR_SETS) };
  const view: ClusterView = {
    listSidecarSets: () => ({ value }),
    getNamespace: NOTHING,
    findRevisions: async () => ({ value: [] }),
    getConfigMap: NOTHING,
  };
  const { kruiseNamespace, featureGates } = options;
  const admissions = { [PATH]: deciding.podAdmission({ kruiseNamespace, featureGates, view }) };
  const { status, body } = await deciding.webhookApp({ log: SILENT, isKnown: () => true, admissions })(REQUEST);
  const problem = problemOf(status, body);
  if (problem !== undefined) throw new Error(`this build cannot decide: a made-up pod ${problem}`);
}

function problemOf(status: number, body: string): string | undefined {
  if (status !== 200) return `is answered with ${status} ${body.slice(0, 300)}`;
  const { response } = JSON.parse(body) as Decided;
  if (response?.allowed !== true) return "is refused";
  return containersIn(response.patch).includes(SAMPLE_SIDECAR) ? undefined : "gets no sidecar";
}
