/**
 * A real control plane (etcd, kube-apiserver, controllers, scheduler) with nodes that cost little, and the reconciler's
 * own account.
 */
import { open } from "node:fs/promises";
import type { Container } from "../../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import { accessObjects, kruiseNamespace, RECONCILER } from "../../../shared/install/rbac/access.ts";
import { type RawTarget, sendRaw } from "../../contract/raw.ts";
import type { AuditEvent } from "../../e2e/support/audit.ts";
import { asServiceAccount } from "../../e2e/support/clients.ts";
import { startControlPlane } from "../../e2e/support/control-plane.ts";
import { createAll } from "../../e2e/support/installed.ts";
import { startKubelet } from "../../e2e/support/kubelet.ts";
import { findPrograms } from "../../e2e/support/programs.ts";
import { until } from "../../e2e/support/until.ts";
import { type ClusterAddress, clientOf, type Ground, type TightLevel } from "./ground.ts";

const SHOP = { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } };
const NODES = 3;
const FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1";
const SHORT_QUEUE = { type: "Queue", queuing: { queues: 1, handSize: 1, queueLengthLimit: 8 } };

const addressOf = ({ url, caCertificate, token }: RawTarget): ClusterAddress => ({
  server: url,
  certificateAuthority: caCertificate,
  bearerToken: token,
});

/** @throws MissingProgram if there is no control plane, and no Go to build one */
export async function realGround(): Promise<Ground> {
  const plane = await startControlPlane(await findPrograms(process.env));
  const admin = plane.settings;
  const kubelet = await startKubelet(admin, NODES);
  const client = clientOf(addressOf(admin));
  await createAll(client, [kruiseNamespace(), SHOP, ...accessObjects()]);
  const shop = "/api/v1/namespaces/shop/serviceaccounts/default";
  await until("pods may be created", async () => (await sendRaw(admin, { path: shop })).code === 200);
  const reconciler = await asServiceAccount(admin, KRUISE_NAMESPACE, RECONCILER);
  const pods = "/api/v1/namespaces/shop/pods?limit=1";
  await until("the reconciler may read", async () => (await sendRaw(reconciler, { path: pods })).code === 200);
  return {
    address: addressOf(reconciler),
    client,
    nodes: Array.from({ length: NODES }, (_, index) => `node-${index + 1}`),
    // Few fields, as in a simple pod. Every field has an owner in managedFields, which come with each answer.
    containerOf: ({ name, image = "", resources = {} }): Container => ({ name, image, resources }),
    callsOf: auditReader(plane.settings.auditLog),
    async tighten(level) {
      const name = `bench-${level.response.toLowerCase()}`;
      for (const [plural, spec] of Object.entries(levelSpecs(name, level))) {
        const kind = plural === "flowschemas" ? "FlowSchema" : "PriorityLevelConfiguration";
        const body = { apiVersion: "flowcontrol.apiserver.k8s.io/v1", kind, metadata: { name }, spec };
        const { code, text } = await sendRaw(admin, { method: "POST", path: `${FLOW_CONTROL}/${plural}`, body });
        if (code !== 201) throw new Error(`${kind} ${name} is not created: ${text}`);
      }
      precedence--;
      return seatsOf(name, admin, reconciler);
    },
    async close() {
      await kubelet.close();
      await plane.close();
    },
  };
}

/** Returns the call's kind, such as "PATCH pods/status". */
function callOf({ verb, objectRef }: AuditEvent): string {
  const { resource = "", subresource } = objectRef ?? {};
  return `${verb.toUpperCase()} ${resource}${subresource === undefined ? "" : `/${subresource}`}`;
}

/** Reads only new lines each time, because a rollout of many pods writes many lines. */
function auditReader(auditLog: string): Ground["callsOf"] {
  let readSoFar = 0;
  const counts = new Map<string, Record<string, number>>();
  return async (userAgent) => {
    const text = await textFrom(auditLog, readSoFar);
    const whole = text.subarray(0, text.lastIndexOf("\n") + 1);
    readSoFar += whole.length;
    for (const line of whole.toString("utf8").split("\n").filter(Boolean)) {
      const event = JSON.parse(line) as AuditEvent;
      const { userAgent: agent = "" } = event;
      const calls = counts.get(agent) ?? {};
      counts.set(agent, calls);
      calls[callOf(event)] = (calls[callOf(event)] ?? 0) + 1;
    }
    return counts.get(userAgent) ?? {};
  };
}

/** @throws Error if the API server started a new file in the meantime, because some lines are then not counted */
async function textFrom(path: string, position: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size < position) throw new Error(`${path} was rotated: fewer pods, or fewer rounds`);
    const buffer = Buffer.alloc(size - position);
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** The precedence gets lower for each new level, so that the newest of two matching levels counts. */
let precedence = 1_000;

function levelSpecs(name: string, { response }: TightLevel): Readonly<Record<string, object>> {
  const account = { kind: "ServiceAccount", serviceAccount: { namespace: KRUISE_NAMESPACE, name: RECONCILER } };
  const everything = { verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] };
  const limited = {
    nominalConcurrencyShares: 1,
    lendablePercent: 0,
    borrowingLimitPercent: 0,
    limitResponse: response === "Reject" ? { type: "Reject" } : SHORT_QUEUE,
  };
  const schema = {
    priorityLevelConfiguration: { name },
    matchingPrecedence: precedence,
    distinguisherMethod: { type: "ByUser" },
    rules: [{ subjects: [account], resourceRules: [everything] }],
  };
  return { prioritylevelconfigurations: { type: "Limited", limited }, flowschemas: schema };
}

/** Waits until the level counts the account's requests, and returns its seats. */
async function seatsOf(level: string, admin: RawTarget, account: RawTarget): Promise<number> {
  const { body } = await sendRaw(admin, { path: `${FLOW_CONTROL}/flowschemas/${level}` });
  const { uid } = (body as { readonly metadata: { readonly uid: string } }).metadata;
  await until(`${level} is in force`, async () => {
    const { headers } = await sendRaw(account, { path: "/api/v1/namespaces/shop/pods?limit=1" });
    return headers["x-kubernetes-pf-flowschema-uid"] === uid;
  });
  const { text } = await sendRaw(admin, { path: "/metrics" });
  const metric = new RegExp(`^apiserver_flowcontrol_nominal_limit_seats\\{priority_level="${level}"\\} (\\d+)`, "m");
  const seats = Number(metric.exec(text)?.[1]);
  if (!(seats > 0)) throw new Error(`the API server tells no seats of ${level}`);
  return seats;
}
