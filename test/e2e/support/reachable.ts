/** Checks that an API server reaches webhooks on this machine. */
import { randomBytes } from "node:crypto";
import { installedResource } from "../../../shared/install/manifests.ts";
import { type Cluster, CONFIG_MAPS } from "../../../shared/kube/port.ts";
import { startWebhookServer } from "../../contract/webhook-server.ts";
import { until } from "./until.ts";

const REACH_TIMEOUT_MS = 15_000;
const KIND = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingWebhookConfiguration" };

/** Sends only a dry run of a ConfigMap that nobody else creates. */
export async function reachesUs(cluster: Cluster, host: string): Promise<boolean> {
  const name = `sidecarset-e2e-${randomBytes(3).toString("hex")}`;
  const server = await startWebhookServer(host);
  const webhook = {
    name: `${name}.example.com`,
    clientConfig: { url: server.url("/reached"), caBundle: server.caBundle },
    rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] }],
    objectSelector: { matchLabels: { [name]: "" } },
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    failurePolicy: "Ignore",
    timeoutSeconds: 2,
  };
  const object = { ...KIND, metadata: { name }, webhooks: [webhook] };
  const probe = { metadata: { name, namespace: "default", labels: { [name]: "" } } };
  const isReached = async () => {
    await cluster.create(CONFIG_MAPS, probe, { dryRun: true });
    return server.requests("/reached").length > 0;
  };
  await cluster.create(installedResource(object), object);
  try {
    return await until("the webhook is asked", isReached, REACH_TIMEOUT_MS).then(
      () => true,
      () => false,
    );
  } finally {
    await cluster.delete(installedResource(object), { name });
    await server.close();
  }
}
