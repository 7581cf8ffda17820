/** The Helm chart: the checked-in manifests with what differs between installations as values. */
import { readFile } from "node:fs/promises";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { manifestFiles, optionalFiles } from "../../shared/install/manifests.ts";
import { readYaml, writeYamlDocuments } from "../../shared/kube/yaml.ts";
import { featureFiles, schema, valueName, values } from "./chart-values.ts";
import { metricsTemplate } from "./metrics-template.ts";
import { serveTemplate } from "./serve-template.ts";

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

/** Removing the chart must not take along what users have made: SidecarSets, their history, their pods' records. */
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

/** As `clientConfig` of shared/install/webhooks/address.ts: a Service of the cluster is named as one. */
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
`;
}
