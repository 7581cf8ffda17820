/** Scripts in Lua for Argo CD's ConfigMap `argocd-cm`: the health of a SidecarSet, and the actions of its menu. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { ROLLOUT_VERDICTS, type RolloutVerdict } from "../core/rollout/conditions/verdict.ts";
import { writeYaml } from "../kube/yaml.ts";

type Health = "Healthy" | "Progressing" | "Degraded" | "Suspended";

/** Health by state, as kstatus has it: ready is healthy, stalled is degraded. */
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

export const ACTIONS_KEY = "resource.customizations.actions.apps.kruise.io_SidecarSet";

/** Both scripts read the SidecarSet's spec. Argo CD stores an action's result, on condition of its version. */
const STRATEGY = ["local strategy = obj.spec.updateStrategy or {}"];

/**
 * The menu's actions for a SidecarSet, equal to the commands of the same names. There is no abort, because a script
 * sees only the SidecarSet, and a revision holds the release to go back to.
 */
function actions(): string {
  const lua = (...lines: readonly string[]) => `${[...STRATEGY, ...lines].join("\n")}\n`;
  const discovery = lua(
    "local partition = strategy.partition or 0",
    'local is_all = partition == 0 or partition == "0" or partition == "0%"',
    "return {",
    "  pause = { disabled = strategy.paused == true },",
    "  resume = { disabled = strategy.paused ~= true },",
    "  promote = { disabled = is_all },",
    "}",
  );
  const paused = (value: boolean) =>
    lua(`strategy.paused = ${value}`, "obj.spec.updateStrategy = strategy", "return obj");
  const promote = lua(
    "strategy.partition = 0",
    "obj.spec.updateStrategy = strategy",
    "-- as the command does: new pods of a canary go by the partition too, until it is over",
    "local injection = obj.spec.injectionStrategy",
    'if injection ~= nil and injection.revision ~= nil and injection.revision.policy == "Partial" then',
    "  injection.revision = nil",
    "end",
    "return obj",
  );
  const definitions = [
    { name: "pause", "action.lua": paused(true) },
    { name: "resume", "action.lua": paused(false) },
    { name: "promote", "action.lua": promote },
  ];
  return writeYaml({ "discovery.lua": discovery, definitions });
}

/** The ConfigMap, for `kubectl apply --server-side`, which keeps its other parts. */
export function argoCdConfigMap(): KubernetesObject & { readonly data: Readonly<Record<string, string>> } {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "argocd-cm",
      namespace: "argocd",
      labels: { "app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd" },
    },
    data: { [HEALTH_KEY]: healthCheck(), [ACTIONS_KEY]: actions() },
  };
}
