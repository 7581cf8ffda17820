/** The pods of infra/container/deployment.yaml as a template, with what differs between installations as values. */
import { METRICS_VALUES } from "./metrics-template.ts";

/** In infra/container/deployment.yaml → what Helm puts there. Each is found at least once, or the chart is not written. */
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

/** Of the text of that file. */
export function serveTemplate(deployment: string, version: string): string {
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
