/** Installs webhook configurations for one case. They see only its namespace, and are removed afterwards. */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import { CONFIG_MAPS, type Resource } from "../../shared/kube/port.ts";
import type { Context, ContractCase } from "./contract.ts";
import { startWebhookServer, type WebhookServer } from "./webhook-server.ts";

const GROUP = "admissionregistration.k8s.io";

function configurations(type: Hook["type"]): Resource {
  return { group: GROUP, version: "v1", plural: `${type}webhookconfigurations`, namespaced: false };
}

interface Hook {
  readonly type: "mutating" | "validating";
  /** path on the server, and the first part of the webhook's name */
  readonly path: string;
  /** fields that replace the defaults: CREATE and UPDATE of ConfigMaps, v1 reviews, no side effects */
  readonly webhook?: Readonly<Record<string, unknown>>;
}

export interface Admission extends Context {
  readonly server: WebhookServer;
  /** Installs webhooks in the order of the list, and waits until they are in force. */
  install(...hooks: readonly Hook[]): Promise<void>;
}

export const CONFIG_MAP_RULE = {
  operations: ["CREATE", "UPDATE"],
  apiGroups: [""],
  apiVersions: ["v1"],
  resources: ["configmaps"],
};

export function hookName(path: string): string {
  return `${path.slice(1)}.contract.example.com`;
}

function webhookOf(context: Context, server: WebhookServer, { path, webhook }: Hook): object {
  return {
    name: hookName(path),
    clientConfig: { url: server.url(path), caBundle: server.caBundle },
    rules: [CONFIG_MAP_RULE],
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    failurePolicy: "Fail",
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": context.namespace } },
    ...webhook,
  };
}

/** Returns a webhook for only the objects with its label. Its calls show that its configuration is in force. */
function markerOf(server: WebhookServer, name: string): object {
  return {
    name: `${name}.contract.example.com`,
    clientConfig: { url: server.url(`/${name}`), caBundle: server.caBundle },
    rules: [CONFIG_MAP_RULE],
    admissionReviewVersions: ["v1"],
    sideEffects: "None",
    objectSelector: { matchLabels: { [name]: "" } },
  };
}

/** Waits, because the API server sees new configurations only some time after they are stored. */
async function untilInForce({ cluster }: Context, server: WebhookServer, names: readonly string[]): Promise<void> {
  const labels = Object.fromEntries(names.map((name) => [name, ""]));
  const probe = { metadata: { name: "contract-probe", namespace: "default", labels } };
  const unasked = async () => {
    await cluster.create(CONFIG_MAPS, probe, { dryRun: true });
    return names.filter((name) => server.requests(`/${name}`).length === 0);
  };
  await expect.poll(unasked).toEqual([]);
}

/** Returns a case with its own webhook server. */
export function withWebhooks(sentence: string, run: (admission: Admission) => Promise<void>): ContractCase {
  return {
    sentence,
    async run(context) {
      const server = await startWebhookServer(context.webhookHost);
      const installed: [Resource, string][] = [];
      const install = async (...hooks: readonly Hook[]): Promise<void> => {
        const names: string[] = [];
        for (const [index, hook] of hooks.entries()) {
          const name = `contract-${index}-${randomBytes(4).toString("hex")}`;
          const resource = configurations(hook.type);
          const webhooks = [webhookOf(context, server, hook), markerOf(server, name)];
          await context.cluster.create(resource, { metadata: { name }, webhooks } as object);
          installed.push([resource, name]);
          names.push(name);
        }
        await untilInForce(context, server, names);
      };
      try {
        await run({ ...context, server, install });
      } finally {
        for (const [resource, name] of installed) await context.cluster.delete(resource, { name });
        await server.close();
      }
    },
  };
}
