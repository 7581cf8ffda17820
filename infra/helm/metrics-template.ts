/** The chart's parts for Prometheus: a port on the pods, a PodMonitor, and alerts on the numbers of shared/metrics. */
import { writeYaml } from "../../shared/kube/yaml.ts";

export const METRICS_PORT = 9090;

interface Alert {
  readonly alert: string;
  readonly expr: string;
  /** duration before somebody is called */
  readonly for: string;
  /** page: somebody has to look at once; ticket: by day */
  readonly severity: "page" | "ticket";
  readonly summary: string;
  /** of docs/alarms.md: what to do */
  readonly section: string;
}

/** Alerts. A replica that does not make the passes has no numbers of SidecarSets. */
export const ALERTS: readonly Alert[] = [
  {
    alert: "SidecarSetInTrouble",
    expr: "max by (sidecarset) (sidecarset_in_trouble) > 0",
    for: "10m",
    severity: "ticket",
    summary: "SidecarSet {{ $labels.sidecarset }} needs attention: kubectl get sidecarset says what its state is",
    section: "needsattention",
  },
  {
    alert: "SidecarSetPodsMissed",
    expr: "max by (sidecarset) (sidecarset_recently_missed_pods) > 0",
    for: "0m",
    severity: "page",
    summary:
      "{{ $value }} pods were created without the sidecars of {{ $labels.sidecarset }} in the last ten minutes: was the webhook down?",
    section: "podsmissed",
  },
  {
    alert: "SidecarSetPassesFail",
    expr: "sum(increase(sidecarset_failed_passes_total[2m])) > 0",
    for: "3m",
    severity: "page",
    summary: "passes cannot list SidecarSets, so no rollout goes on: see the log of sidecarset-rollout",
    section: "tickerrors",
  },
  {
    alert: "SidecarSetNoPasses",
    expr: "(sum(increase(sidecarset_passes_total[5m])) or vector(0)) == 0",
    for: "0m",
    severity: "page",
    summary: "no pass was made for 5 minutes, so no rollout goes on: does sidecarset-rollout run?",
    section: "noticks",
  },
  {
    alert: "SidecarSetWebhookFails",
    expr: 'sum by (webhook) (increase(sidecarset_webhook_requests_total{code=~"5.."}[2m])) > 0',
    for: "2m",
    severity: "page",
    summary: "the webhook {{ $labels.webhook }} answers with errors: pods may be created without sidecars",
    section: "poderrors",
  },
  {
    alert: "SidecarSetWebhookSlow",
    expr: 'sum by (webhook) (increase(sidecarset_webhook_request_duration_seconds_bucket{le="+Inf"}[10m])) - sum by (webhook) (increase(sidecarset_webhook_request_duration_seconds_bucket{le="2.5"}[10m])) > 0',
    for: "10m",
    severity: "ticket",
    summary: "the webhook {{ $labels.webhook }} took longer than half of the 5 seconds that API servers wait for it",
    section: "podsslow",
  },
  {
    alert: "SidecarSetCallersRefused",
    expr: 'sum by (webhook) (increase(sidecarset_webhook_requests_total{code="401",webhook!="none"}[5m])) > 0',
    for: "0m",
    severity: "page",
    summary:
      "the webhook {{ $labels.webhook }} refuses a caller at its own path: most likely another secret is registered than sidecarset-serve has",
    section: "callersrefused",
  },
  {
    alert: "SidecarSetUnread",
    expr: "max(sidecarset_unread) > 0",
    for: "10m",
    severity: "ticket",
    summary:
      "passes are too short to read the pods of {{ $value }} SidecarSets: the log of sidecarset-rollout names them",
    section: "passproblems",
  },
];

const NAMES = ["sidecarset-serve", "sidecarset-rollout"];

/** Helm's own braces, in a text that Helm must not fill in. */
function escaped(text: string): string {
  return text.replaceAll(/\{\{ \$\w[\w.]* \}\}/g, (braces) => `{{ "${braces}" }}`);
}

/** Body of templates/metrics.yaml. */
export function metricsTemplate(): string {
  const monitor = {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PodMonitor",
    metadata: { name: "sidecarset", namespace: "kruise-system" },
    spec: {
      selector: { matchExpressions: [{ key: "app.kubernetes.io/name", operator: "In", values: NAMES }] },
      podMetricsEndpoints: [{ port: "metrics" }],
    },
  };
  const rules = ALERTS.map(({ summary, severity, section, ...rule }) => ({
    ...rule,
    labels: { severity },
    annotations: { summary, runbook_url: `docs/alarms.md#${section}` },
  }));
  const rule = {
    apiVersion: "monitoring.coreos.com/v1",
    kind: "PrometheusRule",
    metadata: { name: "sidecarset", namespace: "kruise-system" },
    spec: { groups: [{ name: "sidecarset", rules }] },
  };
  const yaml = (object: object) => escaped(writeYaml(object));
  const withLabels = (text: string) =>
    text.replace(
      "  namespace: kruise-system\n",
      "  namespace: kruise-system\n  {{- with .Values.serve.metrics.labels }}\n  labels: {{- toYaml . | nindent 4 }}\n  {{- end }}\n",
    );
  return [
    "{{- if .Values.serve.metrics.podMonitor }}\n",
    withLabels(yaml(monitor)),
    "{{- end }}\n---\n{{- if .Values.serve.metrics.prometheusRule }}\n",
    withLabels(yaml(rule)),
    "{{- end }}\n",
  ].join("");
}

/** pattern in infra/container/deployment.yaml → the text with the port, if the values ask for it. */
export const METRICS_VALUES: readonly (readonly [RegExp, string])[] = [
  [
    /^ {12}- (--tick=never|--every=10s)$/gm,
    `            - $1\n${when(`            - --metrics-port=${METRICS_PORT}`)}`,
  ],
  [
    /^( {12}- \{ name: https, containerPort: 9443 \})$/gm,
    `$1\n${when(`            - { name: metrics, containerPort: ${METRICS_PORT} }`)}`,
  ],
  [
    /^( {12}- --every=10s\n(?:.*\n){3})( {10}resources:)/gm,
    `$1${when(`          ports:\n            - { name: metrics, containerPort: ${METRICS_PORT} }`)}\n$2`,
  ],
];

function when(text: string): string {
  return `          {{- if .Values.serve.metrics.enabled }}\n${text}\n          {{- end }}`;
}
