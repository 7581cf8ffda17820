/** The Helm chart: the checked-in manifests, with values where installations differ. */
import { readFile } from "node:fs/promises";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { manifestFiles, optionalFiles } from "../../shared/install/manifests.ts";
import { readYaml, writeYamlDocuments } from "../../shared/kube/yaml.ts";
import { METRICS_PORT, METRICS_VALUES, metricsTemplate } from "./metrics-template.ts";

// The values of the Helm chart, with their meaning, and their schema.

/** Files beside the rights of a feature that its users apply. */
const BESIDE_RIGHTS: Readonly<Record<string, readonly string[]>> = {
  "container-recreate": ["infra/crd/containerrecreaterequests.yaml", "infra/webhooks/container-recreate.yaml"],
  "ordered-sets": ["infra/crd/statefulsets.yaml", "infra/webhooks/stateful-sets.yaml"],
  "status-hints": ["infra/webhooks/status-hints.yaml"],
};

const RIGHTS = /^infra\/rbac\/optional\/(.+)\.yaml$/;

/** Name of a feature → paths of its files. */
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

/** The feature's name in the values: `launchOrder`. */
export function valueName(feature: string): string {
  return feature.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function values(version: string): string {
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

function schema() {
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

const CHART = "infra/helm/sidecarset";

interface ChartSource {
  readonly version: string;
  /** text of infra/container/deployment.yaml */
  readonly deployment: string;
}

export async function readChartSource(): Promise<ChartSource> {
  const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), "utf8");
  const { version } = JSON.parse(await read("package.json")) as { readonly version: string };
  return { version, deployment: await read("infra/container/deployment.yaml") };
}

/** Relative path → text. */
export function chartFiles({ version, deployment }: ChartSource): ReadonlyMap<string, string> {
  const optional = optionalFiles();
  const features = [...featureFiles()].map(([feature, paths]): [string, string] => [
    `${CHART}/templates/feature-${feature}.yaml`,
    guarded(
      `.Values.features.${valueName(feature)}`,
      paths.map((path) => template(optional.get(path) ?? "")).join("---\n"),
    ),
  ]);
  const always = [...manifestFiles()].map(([path, text]): [string, string] => {
    const name = path.split("/").at(-1) ?? "";
    const body = template(text)
      .replace("failurePolicy: Ignore", "failurePolicy: {{ .Values.failurePolicy }}")
      .replace('expression: "[]"', "expression: {{ .Values.fence.annotations | toJson | quote }}");
    const condition = CHOSEN[name];
    return [`${CHART}/templates/${name}`, condition === undefined ? NOTE + body : guarded(condition, body)];
  });
  return new Map([
    [`${CHART}/Chart.yaml`, chartYaml(version)],
    [`${CHART}/values.yaml`, values(version)],
    [`${CHART}/values.schema.json`, `${JSON.stringify(schema(), null, 2)}\n`],
    [`${CHART}/templates/_client-config.tpl`, CLIENT_CONFIG],
    [`${CHART}/templates/NOTES.txt`, NOTES],
    [
      `${CHART}/templates/metrics.yaml`,
      guarded("and .Values.serve.enabled .Values.serve.metrics.enabled", metricsTemplate()),
    ],
    [`${CHART}/templates/serve.yaml`, guarded(".Values.serve.enabled", serveTemplate(deployment, version))],
    ...always,
    ...features,
  ]);
}

/** Files of an installation that may be left out. */
const CHOSEN: Readonly<Record<string, string>> = {
  "namespace.yaml": ".Values.namespace.create",
  "fence.yaml": ".Values.fence.enabled",
};

const NOTE = "{{- /* Written by `node infra/generate.ts`. */ -}}\n";

function guarded(condition: string, body: string): string {
  return `${NOTE}{{- if ${condition} }}\n${body}{{- end }}\n`;
}

/**
 * Kinds that stay when the chart is removed, with users' own objects: SidecarSets, their history, their pods' records.
 */
const KEPT: ReadonlySet<string> = new Set(["CustomResourceDefinition", "Namespace"]);

function template(text: string): string {
  const objects = readYaml(text).map(({ value }) => kept(value as KubernetesObject));
  const yaml = writeYamlDocuments(objects);
  if (yaml.includes("{{")) throw new Error("a manifest contains what Helm would take for a template");
  const addressed = yaml.replace(
    /^( *)url: https:\/\/sidecarset-webhooks\.invalid(\/\S+)$/gm,
    (_, indent: string, path: string) =>
      `${indent}{{- include "sidecarset.clientConfig" (dict "values" .Values "path" "${path}") | nindent ${indent.length} }}`,
  );
  return addressed;
}

function kept(object: KubernetesObject): KubernetesObject {
  if (!KEPT.has(object.kind ?? "")) return object;
  const annotations = { ...object.metadata?.annotations, "helm.sh/resource-policy": "keep" };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/** A `clientConfig` as in shared/install/webhooks/address.ts; a Service of the cluster is named as one. */
const CLIENT_CONFIG = `{{- define "sidecarset.clientConfig" -}}
{{- $own := ternary "https://sidecarset-serve.kruise-system.svc" "" .values.serve.enabled -}}
{{- $url := index .values.urls .path | default .values.url | default $own | required "url is missing: where the webhooks answer, such as --set url=https://webhooks.example.com" | trimSuffix "/" -}}
{{- $path := .path -}}
{{- if .values.pathSecrets }}{{ $path = printf "/s/%s%s" (index .values.pathSecrets .path | required (printf "pathSecrets has none for %s: sidecarset path-secrets prints all" .path)) .path }}{{ end -}}
{{- $service := regexFindAll "^https://[a-z0-9-]+[.][a-z0-9-]+[.]svc(:[0-9]+)?$" $url 1 -}}
{{- if $service }}
{{- $parts := splitList "." (trimPrefix "https://" $url) -}}
service:
  namespace: {{ index $parts 1 }}
  name: {{ index $parts 0 }}
  path: {{ $path }}
  port: {{ $url | regexFind "[0-9]+$" | default "443" }}
{{- else }}
url: {{ $url }}{{ $path }}
{{- end }}
{{- with .values.caBundle }}
caBundle: {{ . }}
{{- end }}
{{- end }}
`;

const NOTES = `SidecarSets are served at {{ .Values.url | default "the Service sidecarset-serve" }}.
Try: kubectl get sidecarsets
Removing this chart keeps the definitions, the namespace and with them every SidecarSet.
`;

function chartYaml(version: string): string {
  return `# Written by \`node infra/generate.ts\`.
apiVersion: v2
name: sidecarset
description: "SidecarSet without a control plane: definitions, rights and webhook registrations"
type: application
version: ${version}
appVersion: ${version}
# match conditions
kubeVersion: ">=1.30.0-0"
keywords: [sidecar, sidecarset, openkruise, injection, serverless]
annotations:
  artifacthub.io/category: integration-delivery
  artifacthub.io/license: Apache-2.0
  artifacthub.io/crds: |
    - kind: SidecarSet
      version: v1beta1
      name: sidecarsets.apps.kruise.io
      displayName: SidecarSet
      description: Sidecar containers that are injected into pods when they are created, and updated in place
`;
}

// The pods of infra/container/deployment.yaml as a template, with values where installations differ.

/**
 * pattern in infra/container/deployment.yaml → the chart's text. Every pattern must match, or the chart is not written.
 */
const SERVE_VALUES: readonly (readonly [RegExp, string])[] = [
  [/^ {2}maxUnavailable: 1$/gm, "  maxUnavailable: {{ .Values.serve.maxUnavailable }}"],
  [/^ {2}replicas: 2$/gm, "  replicas: {{ .Values.serve.replicas }}"],
  [
    /^( {6}labels: \{ app\.kubernetes\.io\/name: sidecarset-\w+ \})$/gm,
    "$1\n      {{- with .Values.serve.podAnnotations }}\n      annotations: {{- toYaml . | nindent 8 }}\n      {{- end }}",
  ],
  [
    /^ {6}priorityClassName: system-cluster-critical$/gm,
    `      {{- with .Values.serve.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
${["nodeSelector", "tolerations", "affinity", "imagePullSecrets"].map(podField).join("\n")}`,
  ],
  [
    /^ {10}resources:\n {12}requests: \{ cpu: 100m, memory: 128Mi \}\n {12}limits: \{ memory: 512Mi \}$/gm,
    "          resources: {{- toYaml .Values.serve.resources | nindent 12 }}",
  ],
  [
    /^ {10}resources:\n {12}requests: \{ cpu: 50m, memory: 128Mi \}\n {12}limits: \{ memory: 512Mi \}$/gm,
    "          resources: {{- toYaml .Values.serve.rolloutResources | nindent 12 }}",
  ],
];

function podField(name: string): string {
  return `      {{- with .Values.serve.${name} }}\n      ${name}: {{- toYaml . | nindent 8 }}\n      {{- end }}`;
}

function containerField(name: string): string {
  return `          {{- with .Values.serve.${name} }}\n          ${name}: {{- toYaml . | nindent 12 }}\n          {{- end }}`;
}

/** Makes the template from the text of deployment.yaml. */
function serveTemplate(deployment: string, version: string): string {
  const image = `image: sidecarset-serverless:${version}`;
  return [
    ...METRICS_VALUES,
    ...SERVE_VALUES,
    [new RegExp(image, "g"), `image: {{ .Values.serve.image }}\n${containerField("env")}`] as const,
  ].reduce((text, [pattern, value]) => {
    const next = text.replace(pattern, value);
    if (next === text) throw new Error(`infra/container/deployment.yaml has no ${pattern.source}`);
    return next;
  }, deployment);
}
