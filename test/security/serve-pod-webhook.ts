/** A process of its own that serves the pod webhook as `serve` does, with the SidecarSets that take most; prints its port. */
import { readConfig } from "../../shared/config.ts";
import { indexSidecarSets } from "../../shared/core/match/sidecarset-index.ts";
import { createLog } from "../../shared/log.ts";
import { webhookApp } from "../../shared/webhook/app.ts";
import type { ClusterView } from "../../shared/webhook/cluster-view.ts";
import { serveHttps } from "../../shared/webhook/https-server.ts";
import { podAdmission } from "../../shared/webhook/pod-admission.ts";
import { SIDECARSETS } from "./hostile-pods.ts";

const { featureGates, kruiseNamespace } = readConfig({});
const view: ClusterView = {
  listSidecarSets: () => ({ value: { sidecarSets: SIDECARSETS, index: indexSidecarSets(SIDECARSETS) } }),
  getNamespace: () => ({ value: { metadata: { name: "default" } } }),
  findRevisions: () => ({ value: [] }),
  getConfigMap: () => ({ value: undefined }),
};
const app = webhookApp({
  log: createLog("info", () => undefined),
  isKnown: () => true,
  admissions: { "/mutate-pod": podAdmission({ view, featureGates, kruiseNamespace }) },
});
const { port } = await serveHttps(app, { host: "127.0.0.1", port: 0 });
process.stdout.write(`${port}\n`);
