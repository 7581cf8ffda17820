/**
 * A process that serves the pod webhook as `serve` does, with the SidecarSets that need the most computing. Prints its
 * port.
 */

import { indexSidecarSets } from "../../shared/core/injection/match/sidecarset-index.ts";
import { createLog } from "../../shared/log.ts";
import { readConfig } from "../../shared/settings/config.ts";
import { podAdmission } from "../../shared/webhook/handlers/pod-admission.ts";
import { webhookApp } from "../../shared/webhook/review/app.ts";
import { serveHttps } from "../../shared/webhook/server/https-server.ts";
import type { ClusterView } from "../../shared/webhook/view/cluster-view.ts";
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
