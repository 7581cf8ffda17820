/** Whether this build decides as it should: a made-up pod, for a made-up SidecarSet, by the code that answers API servers. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import type { indexSidecarSets } from "../../core/injection/match/sidecarset-index.ts";
import type { Log } from "../../log.ts";
import type { FeatureGates } from "../../settings/feature-gates.ts";
import type { webhookApp } from "../review/app.ts";
import type { HttpRequest } from "../server/http.ts";
import type { ClusterView } from "../view/cluster-view.ts";
import type { podAdmission } from "./pod-admission.ts";
import { containersIn, SAMPLE_POD_REVIEW, SAMPLE_SIDECAR, SAMPLE_SIDECAR_SET } from "./sample-review.ts";

interface Decided {
  readonly response?: { readonly allowed?: boolean; readonly patch?: string };
}

export interface SampleOptions {
  readonly kruiseNamespace: string;
  readonly featureGates: FeatureGates;
}

/** The code that decides: Lambda's pod webhook loads this file late, and would have to keep a name for all that it imports. */
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

/** From the text of the review to the patch. Rejects unless the pod is given the sidecar; asks nothing of the cluster. */
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
