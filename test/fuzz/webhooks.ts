/** Serves the webhooks on a cluster with two SidecarSets as a plain function. */
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { createLog } from "../../shared/log.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { answerConversions, convertSidecarSets } from "../../shared/webhook/handlers/sidecarset-conversion.ts";
import { sidecarSetValidation } from "../../shared/webhook/handlers/validation.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import type { ClusterView } from "../../shared/webhook/view/cluster-view.ts";

const { featureGates, kruiseNamespace } = readConfig({});

const SPECS = [
  { containers: [{ name: "agent", image: "agent:1", shareVolumePolicy: { type: "enabled" } }] },
  {
    initContainers: [{ name: "first", image: "first:1" }],
    containers: [{ name: "envoy", image: "envoy:1", transferEnv: [{ sourceContainerName: "main", envName: "A" }] }],
    volumes: [{ name: "data", emptyDir: {} }],
    patchPodMetadata: [{ patchPolicy: "MergePatchJson", annotations: { patched: '{"a":1}' } }],
  },
];

function viewOf(): ClusterView {
  const annotations = { "kruise.io/sidecarset-hash": "h", "kruise.io/sidecarset-hash-without-image": "h" };
  const sidecarSets = SPECS.map((spec, index): SidecarSet => {
    const metadata = { name: `set-${index}`, annotations };
    const selector = { matchLabels: { app: "web" } };
    return { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata, spec: { selector, ...spec } };
  });
  return {
    listSidecarSets: async () => ({ value: { sidecarSets, index: indexSidecarSets(sidecarSets) } }),
    getNamespace: async () => ({ value: { metadata: { name: "shop" } } }),
    findRevisions: async () => ({ value: [] }),
    getConfigMap: async () => ({ value: undefined }),
  };
}

export function fuzzedWebhooks(): (path: string, body: string) => Promise<{ status: number; body: string }> {
  const view = viewOf();
  const app = webhookApp({
    log: createLog("info", () => undefined),
    isKnown: async () => true,
    admissions: {
      "/mutate-pod": podAdmission({ view, featureGates, kruiseNamespace }),
      "/mutate-apps-kruise-io-sidecarset": mutateSidecarSet,
      "/validate-apps-kruise-io-sidecarset": sidecarSetValidation({ view, featureGates, kruiseNamespace }),
    },
    conversions: { "/convert": answerConversions(convertSidecarSets) },
  });
  return async (path, body) => {
    const headers = { "content-type": "application/json" };
    const readBody = async () => body;
    const answer = await app({ method: "POST", path, query: "timeout=10s", headers, readBody });
    return { status: answer.status, body: String(answer.body ?? "") };
  };
}
