/** Facts of a healthy installation, to which checks add a fault. */

import type { Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { callCondition } from "../../../shared/core/injection/match/call-condition.ts";
import type {
  Definition,
  Facts,
  Probe,
  Seen,
  Webhook,
  WebhookConfiguration,
} from "../../../shared/core/inspect/check/facts.ts";
import type { FindingId } from "../../../shared/core/inspect/check/finding.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { mutateSidecarSet } from "../../../shared/core/sidecarset/mutate.ts";
import { sidecarSetCrd } from "../../../shared/install/crd/sidecarset-crd.ts";
import { webhookConfigurations } from "../../../shared/install/webhooks/webhook-configurations.ts";
import { podOf } from "../../support/rollout-fixture.ts";

export const NOW = "2025-06-01T00:00:00Z";
export const LABELS = { app: "web" };
const ADDRESS = { url: "https://webhooks.example.com", caBundle: "Q0E=" };

/** Returns a SidecarSet that already has its hashes. */
export function setOf(name = "ss", spec: SidecarSetSpec = {}, metadata: object = {}): SidecarSet {
  const object: SidecarSet = {
    apiVersion: "apps.kruise.io/v1beta1",
    kind: "SidecarSet",
    metadata: {
      name,
      uid: `uid-${name}`,
      generation: 1,
      creationTimestamp: "2025-05-01T00:00:00Z",
      ...metadata,
    },
    spec: {
      selector: { matchLabels: LABELS },
      containers: [{ name: "sc", image: "reg/sc:v2" }],
      ...spec,
    },
  };
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const admission = mutateSidecarSet({ uid: "1", operation: "CREATE", resource, object });
  if (admission.kind === "denied") throw new Error(admission.message);
  return { ...((admission.object ?? object) as SidecarSet), status: { observedGeneration: 1 } };
}

/** Returns a pod that the SidecarSet injected, updated and ready. */
export function updatedPod(sidecarSet = setOf(), facts: Parameters<typeof podOf>[0] = {}): Pod {
  const annotations = sidecarSet.metadata?.annotations ?? {};
  const hash = annotations["kruise.io/sidecarset-hash"] ?? "";
  const withoutImage = annotations["kruise.io/sidecarset-hash-without-image"] ?? "";
  return podOf({
    labels: LABELS,
    image: "reg/sc:v2",
    hash,
    withoutImage,
    creationTimestamp: "2025-05-02T00:00:00Z",
    ...facts,
  });
}

export const SET = setOf();
const [MUTATING, VALIDATING] = webhookConfigurations(ADDRESS, {
  podCondition: callCondition([SET]),
}) as readonly WebhookConfiguration[];

const PROBE: Probe = {
  origin: ADDRESS.url,
  isCaBroken: false,
  handshake: {
    certificate: {
      validFrom: "2025-01-01T00:00:00Z",
      validTo: "2026-01-01T00:00:00Z",
      names: ["webhooks.example.com"],
    },
    problem: undefined,
  },
  toStranger: { code: 401, ms: 20 },
  toRegistered: { code: 200, ms: 20 },
};

const { spec: ofDefinition, ...definition } = sidecarSetCrd(ADDRESS) as Definition;

export function seen<T>(value: T): Seen<T> {
  return { value };
}

export function valueIn<T>(fact: Seen<T>): T {
  if ("value" in fact) return fact.value;
  throw new Error(fact.why);
}

const namespace = (name: string) => ({ metadata: { name, labels: { "kubernetes.io/metadata.name": name } } });

/** Facts of a healthy installation. The report still says what happens to pods while the webhook is down. */
export const IN_ORDER: Facts = {
  now: NOW,
  kruiseNamespace: "kruise-system",
  mutating: seen(MUTATING ? [MUTATING] : []),
  validating: seen(VALIDATING ? [VALIDATING] : []),
  definition: seen({
    ...definition,
    ...(ofDefinition ? { spec: ofDefinition } : {}),
    status: { storedVersions: ["v1beta1"] },
  }),
  ownSchema: ofDefinition?.versions?.find(({ name }) => name === "v1beta1")?.schema?.openAPIV3Schema ?? {},
  sidecarSets: seen([SET]),
  namespaces: seen([namespace("default"), namespace("kube-system")]),
  pods: seen([{ ...updatedPod(SET), metadata: { ...updatedPod(SET).metadata, namespace: "default" } }]),
  revisions: seen([]),
  configMaps: seen([]),
  lastPass: seen("2025-05-31T23:59:30.000000Z"),
  managers: seen([]),
  version: seen({ major: "1", minor: "32+", gitVersion: "v1.32.1" }),
  skewSeconds: seen(0),
  trial: seen({ kind: "admitted" as const }),
  podTrial: seen(undefined),
  probes: [PROBE],
  rights: seen([
    { account: "sidecarset-reconciler", what: "patch pods", role: "base", isAllowed: true },
    { account: "sidecarset-reconciler", what: "get secrets", role: "none", isAllowed: false },
    { account: "sidecarset-reconciler", what: "create configmaps", role: "launch-order", isAllowed: false },
  ]),
  optionalObjects: seen({ "container-recreate": 0 }),
  settings: DEFAULT_ROLLOUT_SETTINGS,
  kubelets: seen(new Map()),
  declaredFeatures: seen(new Map()),
  isResizeServed: seen(false),
  disruptionBudgets: seen([]),
};

/** Changes every webhook of this name. */
export function withWebhook(facts: Facts, name: string, change: Partial<Webhook>): Facts {
  const changed = (fact: Facts["mutating"]) =>
    seen(
      valueIn(fact).map((one) => ({
        ...one,
        webhooks: (one.webhooks ?? []).map((webhook) => (webhook.name === name ? { ...webhook, ...change } : webhook)),
      })),
    );
  return { ...facts, mutating: changed(facts.mutating), validating: changed(facts.validating) };
}

export function withProbe(change: Partial<Probe>): Facts {
  return { ...IN_ORDER, probes: [{ ...PROBE, ...change }] };
}

/** Returns facts with another certificate, or another verdict about it. */
export function withCertificate(change: object, problem?: string): Facts {
  if ("unreachable" in PROBE.handshake) throw new Error("the probe in order is answered");
  return withProbe({ handshake: { certificate: { ...PROBE.handshake.certificate, ...change }, problem } });
}

export function withDefinition(change: (spec: NonNullable<Definition["spec"]>) => object, status?: object): Facts {
  const stored = valueIn(IN_ORDER.definition);
  const spec = { ...stored?.spec, ...change(stored?.spec ?? {}) };
  return { ...IN_ORDER, definition: seen({ ...stored, spec, ...(status ? { status } : {}) }) };
}

/** Returns facts with the registration that passes would write for these SidecarSets and pods. */
export function withSets(sidecarSets: readonly SidecarSet[], pods: readonly Pod[] = []): Facts {
  const [mutating] = webhookConfigurations(ADDRESS, { podCondition: callCondition(sidecarSets) });
  const placed = pods.map((pod) => ({ ...pod, metadata: { namespace: "default", ...pod.metadata } }));
  return {
    ...IN_ORDER,
    mutating: seen(mutating ? [mutating as WebhookConfiguration] : []),
    sidecarSets: seen(sidecarSets),
    pods: seen(placed),
  };
}

/** Returns a field with the time of its writer. */
export const managed = (time: string, ...path: readonly string[]) => ({
  managedFields: [{ time, fieldsV1: path.reduceRight<object>((inner, field) => ({ [`f:${field}`]: inner }), {}) }],
});

export type Row = readonly [id: FindingId, sentence: string, facts: Facts, text: RegExp];
