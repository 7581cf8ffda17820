/**
 * Tests that the API server calls the pod webhook at OpenKruise's place in the order. A renamed registration must leave
 * no pod without sidecars.
 */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_V1BETA1 } from "../../shared/api/names.ts";
import { installation } from "../../shared/install/manifests.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { newPod } from "../support/objects.ts";
import { type ServedCluster, startServedCluster } from "../webhook/cluster.ts";

/** The names of other projects' registrations for pods. */
const OTHERS = [
  "aws-load-balancer-webhook",
  "cert-manager-webhook",
  "gatekeeper-mutating-webhook-configuration",
  "istio-sidecar-injector",
  "kyverno-resource-mutating-webhook-cfg",
  "linkerd-proxy-injector-webhook-config",
  "pod-identity-webhook",
  "vault-agent-injector-cfg",
];
const OPENKRUISE = "kruise-mutating-webhook-configuration";
const FORMER = "sidecarset-mutating-webhook-configuration";

const registrations = installation({ url: "https://webhooks.example.com" }).filter(
  ({ kind }) => kind === "MutatingWebhookConfiguration",
);
const named = ({ metadata }: KubernetesObject) => metadata?.name ?? "";
const isEmpty = (one: KubernetesObject) => !("webhooks" in one);

test("the name of the pod webhook's registration sorts like OpenKruise's among other webhooks", () => {
  const [ours = ""] = registrations.map(named);
  expect(OTHERS.map((name) => [name, name < ours])).toEqual(OTHERS.map((name) => [name, name < OPENKRUISE]));
  expect(OTHERS.filter((name) => name > ours)).toContain("kyverno-resource-mutating-webhook-cfg");
  expect(ours).not.toBe(OPENKRUISE);
});

test("an installation has the new registration first and then the empty registration of the former name", () => {
  expect(registrations.map((one) => [named(one) === FORMER, isEmpty(one)])).toEqual([
    [false, false],
    [true, true],
  ]);
});

let served: ServedCluster;
beforeAll(async () => {
  served = await startServedCluster();
  await served.client.create(SIDECARSETS, {
    apiVersion: SIDECARSET_V1BETA1,
    kind: "SidecarSet",
    metadata: { name: "log-agent" },
    spec: {
      selector: { matchLabels: { app: "web" } },
      containers: [{ name: "log-agent", image: "log-agent:1", volumeMounts: [{ name: "logs", mountPath: "/logs" }] }],
      initContainers: [{ name: "prepare", image: "prepare:1", podInjectPolicy: "BeforeAppContainer" }],
      volumes: [{ name: "logs", emptyDir: {} }],
    },
  } as KubernetesObject);
});
afterAll(() => served?.close());

/** Returns a pod that is created now, without the parts that differ between two pods. */
async function admitted(name: string): Promise<object> {
  const spec = { containers: [{ name: "app", image: "app:1" }], nodeName: "none", automountServiceAccountToken: false };
  const metadata = { name, namespace: "default", labels: { app: "web" } };
  const { metadata: stored, spec: injected } = await served.client.create(PODS, newPod(metadata, spec));
  const annotations = stored?.annotations ?? {};
  expect(annotations["kruise.io/sidecarset-hash"]).toContain("log-agent");
  // Both hashes contain the time of the injection.
  return { annotations: JSON.stringify(annotations).replace(/\d{4}-\d\d-\d\dT[\d:]+Z/g, "TIME"), spec: injected };
}

const whichSaw = (pod: string, webhook: string) =>
  served.local.admissions().filter((call) => call.name === pod && call.webhook === webhook);

test("a pod gets its sidecars exactly once before, during and after the change of the registration's name", async () => {
  const { client } = served;
  const [ours, emptied] = registrations;
  if (!ours || !emptied) throw new Error("an installation registers both");
  const stored = await client.get<KubernetesObject & { readonly webhooks: readonly object[] }>(
    MUTATING_WEBHOOK_CONFIGURATIONS,
    { name: named(ours) },
  );
  const { webhooks } = stored;
  // The registration has the name of an earlier version.
  await client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, { name: FORMER }, { type: "merge", body: { webhooks } });
  await client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, { name: named(ours) });
  const before = await admitted("before");
  expect(JSON.stringify(before)).toContain("log-agent:1");

  await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, { ...ours, webhooks } as KubernetesObject);
  expect(await admitted("both")).toEqual(before);
  expect(whichSaw("both", "mpod.kb.io")).toHaveLength(2);

  // The object is as after `kubectl apply`, when the last manifest had these fields.
  await client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, { name: FORMER }, { type: "merge", body: { webhooks: null } });
  expect(await admitted("after")).toEqual(before);
  expect(whichSaw("after", "mpod.kb.io")).toHaveLength(1);
});

test("the webhook of a policy engine gets pods with their sidecars", async () => {
  await served.client.create(MUTATING_WEBHOOK_CONFIGURATIONS, {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "kyverno-resource-mutating-webhook-cfg" },
    webhooks: [
      {
        name: "mutate.kyverno.svc",
        clientConfig: { url: "https://127.0.0.1:1" },
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        failurePolicy: "Ignore",
      },
    ],
  } as KubernetesObject);
  await admitted("judged");
  const [call] = whichSaw("judged", "mutate.kyverno.svc");
  expect(JSON.stringify(call?.object)).toContain("log-agent:1");
});
