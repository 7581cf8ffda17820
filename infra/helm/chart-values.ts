/** What may be set of the Helm chart: its values, with what each means, and their schema. */
import { optionalFiles } from "../../shared/install/manifests.ts";
import { METRICS_PORT } from "./metrics-template.ts";

/** What a feature adds beside its rights, of the files that are applied by those who use it. */
const BESIDE_RIGHTS: Readonly<Record<string, readonly string[]>> = {
  "container-recreate": ["infra/crd/containerrecreaterequests.yaml", "infra/webhooks/container-recreate.yaml"],
  "ordered-sets": ["infra/crd/statefulsets.yaml", "infra/webhooks/stateful-sets.yaml"],
  "status-hints": ["infra/webhooks/status-hints.yaml"],
};

const RIGHTS = /^infra\/rbac\/optional\/(.+)\.yaml$/;

/** Name of a feature → paths of what it adds. */
export function featureFiles(): ReadonlyMap<string, readonly string[]> {
  const rights = [...optionalFiles().keys()].flatMap((path) => RIGHTS.exec(path)?.[1] ?? []);
  const features = [...new Set([...rights, ...Object.keys(BESIDE_RIGHTS)])].sort();
  return new Map(
    features.map((feature) => {
      const own = rights.includes(feature) ? [`infra/rbac/optional/${feature}.yaml`] : [];
      return [feature, [...own, ...(BESIDE_RIGHTS[feature] ?? [])]];
    }),
  );
}

/** As names of values are written: `launchOrder`. */
export function valueName(feature: string): string {
  return feature.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function values(version: string): string {
  const features = [...featureFiles().keys()].map((feature) => `  ${valueName(feature)}: false\n`);
  return `# Written by \`node infra/generate.ts\`.
# https, without a path: where the webhooks answer. https://NAME.NAMESPACE.svc is that Service of the cluster.
url: ""
# the authority that signed its certificate: PEM in base64; empty: one that API servers trust anyway
caBundle: ""
# the secret of each path, where callers prove by it who they are: what \`sidecarset path-secrets\` prints
pathSecrets: {}
# where a webhook has an address of its own, such as a function's: /mutate-pod: https://…
urls: {}
# what becomes of pods while the webhook is down: Ignore lets them in without sidecars, Fail refuses them
failurePolicy: Ignore
namespace:
  # false where kruise-system is there already
  create: true
fence:
  # policies by which API servers refuse the reconciler what no rollout writes (docs/install.md)
  enabled: true
  # what SidecarSets may patch into pods that run, such as example.com/mesh; a prefix ends with a slash
  annotations: []
# the webhooks and the passes in this cluster, for those who have no functions elsewhere (infra/container/deployment.yaml
# says which Secrets it needs); url may stay empty then
serve:
  enabled: false
  # by digest, where it comes from a registry: registry.example.com/sidecarset-serverless@sha256:…
  image: sidecarset-serverless:${version}
  imagePullSecrets: []
  # of the webhooks, and of the passes
  replicas: 2
  # of the webhooks' PodDisruptionBudget
  maxUnavailable: 1
  priorityClassName: system-cluster-critical
  podAnnotations: {}
  # variables of webhooks and passes: a list as in a container, such as those of docs/traces.md
  env: []
  nodeSelector: {}
  tolerations: []
  affinity: {}
  # of the webhooks
  resources:
    requests: { cpu: 100m, memory: 128Mi }
    limits: { memory: 512Mi }
  # of the passes
  rolloutResources:
    requests: { cpu: 50m, memory: 128Mi }
    limits: { memory: 512Mi }
  # numbers for Prometheus on port ${METRICS_PORT} of the pods, in plain HTTP and for anybody who reaches them
  metrics:
    enabled: false
    # these two take the CustomResourceDefinitions of Prometheus Operator; labels: by which your Prometheus selects them
    podMonitor: false
    prometheusRule: false
    labels: {}
# what else is to be served: see docs/install.md
features:
${features.join("")}`;
}

const ANNOTATION = "^[A-Za-z0-9][A-Za-z0-9._/-]*$";
const HTTPS = "^https://[^/?#@]+/*$";

export function schema() {
  const flag = { type: "boolean" };
  const features = Object.fromEntries([...featureFiles().keys()].map((feature) => [valueName(feature), flag]));
  const object = (properties: object) => ({ type: "object", properties, additionalProperties: false });
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    ...object({
      url: { type: "string", pattern: `^$|${HTTPS}` },
      urls: { type: "object", additionalProperties: { type: "string", pattern: HTTPS } },
      caBundle: { type: "string", pattern: "^[A-Za-z0-9+/]*={0,2}$" },
      pathSecrets: {
        type: "object",
        propertyNames: { pattern: "^/" },
        additionalProperties: { type: "string", pattern: "^[A-Za-z0-9_-]{43}$" },
      },
      failurePolicy: { type: "string", pattern: "^(Ignore|Fail)$" },
      namespace: object({ create: flag }),
      fence: object({ enabled: flag, annotations: { type: "array", items: { type: "string", pattern: ANNOTATION } } }),
      serve: object({
        enabled: flag,
        image: { type: "string", minLength: 1 },
        replicas: { type: "integer", minimum: 0 },
        maxUnavailable: {
          anyOf: [
            { type: "integer", minimum: 0 },
            { type: "string", pattern: "^[0-9]+%$" },
          ],
        },
        metrics: object({ enabled: flag, podMonitor: flag, prometheusRule: flag, labels: { type: "object" } }),
        priorityClassName: { type: "string" },
        ...Object.fromEntries(
          ["podAnnotations", "nodeSelector", "affinity", "resources", "rolloutResources"].map((name) => [
            name,
            { type: "object" },
          ]),
        ),
        ...Object.fromEntries(["env", "imagePullSecrets", "tolerations"].map((name) => [name, { type: "array" }])),
      }),
      features: object(features),
      global: { type: "object" },
    }),
  };
}
