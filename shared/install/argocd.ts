/** How Argo CD tells that a SidecarSet is healthy: a check in Lua, for its ConfigMap `argocd-cm`. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { ROLLOUT_VERDICTS, type RolloutVerdict } from "../core/rollout/conditions/verdict.ts";

type Health = "Healthy" | "Progressing" | "Degraded" | "Suspended";

/** As kstatus has them, where it has a word: what is ready is healthy, what is stalled is degraded. */
const HEALTH_OF: Readonly<Record<RolloutVerdict, Health>> = {
  Halted: "Degraded",
  Blocked: "Degraded",
  Degraded: "Degraded",
  NotUpgradable: "Degraded",
  WaitingForApproval: "Suspended",
  WaitingForMetrics: "Progressing",
  Updating: "Progressing",
  Incomplete: "Progressing",
  Paused: "Suspended",
  HeldByPartition: "Healthy",
  Ready: "Healthy",
};

export const HEALTH_KEY = "resource.customizations.health.apps.kruise.io_SidecarSet";

/** Argo CD's interpreter has Lua's basic functions, and neither `string` nor `math`. */
function healthCheck(): string {
  const table = ROLLOUT_VERDICTS.map((verdict) => `  ${verdict} = "${HEALTH_OF[verdict]}",`);
  return `${[
    "local health_of = {",
    ...table,
    "}",
    'local health = { status = "Progressing", message = "no pass has seen this SidecarSet as it is now" }',
    "local status = obj.status or {}",
    "if obj.metadata.deletionTimestamp ~= nil then",
    '  health.message = "it is being deleted"',
    "  return health",
    "end",
    "if (status.observedGeneration or 0) < (obj.metadata.generation or 0) then",
    "  return health",
    "end",
    "for _, condition in ipairs(status.conditions or {}) do",
    '  if condition.type == "Ready" and health_of[condition.reason] ~= nil then',
    "    health.status = health_of[condition.reason]",
    '    health.message = condition.reason .. ": " .. (condition.message or "")',
    "    return health",
    "  end",
    "end",
    "-- OpenKruise's definition keeps no conditions: there the counts say it",
    "local matched, updated = status.matchedPods or 0, status.updatedPods or 0",
    "local ready = status.updatedReadyPods or 0",
    "local strategy = (obj.spec or {}).updateStrategy or {}",
    'health.message = updated .. " of " .. matched .. " pods updated, " .. ready .. " of them ready"',
    "if updated == matched and ready == matched then",
    '  health.status = "Healthy"',
    'elseif strategy.paused or strategy.type == "NotUpdate" then',
    '  health.status = "Suspended"',
    "end",
    "return health",
  ].join("\n")}\n`;
}

/** For `kubectl apply --server-side`, which leaves what else Argo CD's ConfigMap has as it is. */
export function argoCdConfigMap(): KubernetesObject & { readonly data: Readonly<Record<string, string>> } {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "argocd-cm",
      namespace: "argocd",
      labels: { "app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd" },
    },
    data: { [HEALTH_KEY]: healthCheck() },
  };
}
