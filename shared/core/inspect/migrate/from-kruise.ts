/** Decides how a cluster is moved from OpenKruise's manager to us: in which order, so that pods are injected at every moment and never rolled out by two. */

import { counted } from "../../../go/counted.ts";
import { isRunning } from "../check/others.ts";
import { stepsOf, type WebhookOptions } from "./from-kruise-steps.ts";
import {
  gatesOf,
  lackingKinds,
  type MigrationFacts,
  OPTIONAL_ROLES,
  optionalKinds,
  protectedNamespaces,
  underWay,
  versionOf,
  type Workload,
} from "./inventory.ts";
import { type Migration, SAME } from "./migration.ts";

/** `problems`: of SidecarSets that would not be accepted here as they are. */
export function planFromKruise(facts: MigrationFacts, options: WebhookOptions, problems: readonly string[]): Migration {
  const blocks = [...problems, ...blocksOf(facts)];
  return {
    direction: "from-kruise",
    found: foundIn(facts),
    blocks,
    same: SAME,
    changes: changesOf(facts),
    risks: RISKS,
    steps: blocks.length > 0 ? [] : stepsOf(facts, options),
  };
}

const RISKS: readonly string[] = [
  "never `helm uninstall kruise`: its chart owns the definition of SidecarSets, so that every SidecarSet goes with it, and the namespace, so that every revision goes with it",
  "OpenKruise's manager must not be scaled down while its webhooks are registered: they have failurePolicy Fail, and no pod would be created",
  "never let both roll out at once: each has a budget of its own, and together they exceed maxUnavailable",
  "from the stop of its manager until the step after it, SidecarSets can't be read or written in the version that they are not stored in; pods are created and injected all the same",
];

export function foundIn(facts: MigrationFacts): readonly string[] {
  const { managers, daemons, theirConfigurations, ourConfigurations, kinds, sidecarSets, pods, revisions } = facts;
  const present = kinds.filter(({ count = 0 }) => count > 0).map(({ kind, count }) => `${count} ${kind}`);
  const going = underWay(facts);
  return [
    ...(managers.length === 0 ? ["OpenKruise's manager is not installed"] : managers.map(managerText)),
    ...daemons.map(({ metadata }) => `its DaemonSet ${metadata?.namespace}/${metadata?.name}`),
    theirConfigurations.length === 0
      ? "none of its webhooks is registered"
      : `its webhooks: ${theirConfigurations.join(", ")}`,
    ourConfigurations.length === 0 ? "none of ours is registered" : `ours: ${ourConfigurations.join(", ")}`,
    `${counted(sidecarSets.length, "SidecarSet")}, ${counted(revisions, "revision")} of ${sidecarSets.length === 1 ? "it" : "them"}, ${counted(pods, "pod")}`,
    ...(going.length > 0 ? [`rollouts under way: ${going.join(", ")}`] : []),
    ...(present.length > 0 ? [`objects of its kinds: ${present.join(", ")}`] : []),
    ...facts.unseen,
  ];
}

function managerText(manager: Workload): string {
  const { metadata, status } = manager;
  const version = versionOf(manager);
  const state = isRunning(manager) ? `${status?.readyReplicas ?? 0} ready` : "scaled to 0";
  const gates = gatesOf(manager);
  const extra = gates.length > 0 ? `, feature gates ${gates.join(",")}` : "";
  return `OpenKruise's manager ${metadata?.namespace}/${metadata?.name}${version ? ` ${version}` : ""}, ${state}${extra}`;
}

/** Its manager can't be told to leave SidecarSets to somebody else, so it has to be stopped altogether. */
function blocksOf(facts: MigrationFacts): readonly string[] {
  const lacking = lackingKinds(facts).map(({ kind, count }) =>
    count === undefined ? `${kind} (not counted)` : `${count} ${kind}`,
  );
  return [
    ...(lacking.length > 0
      ? [
          `only OpenKruise's manager serves ${lacking.join(", ")}, and while it runs it rolls SidecarSets out too: move these to kinds of Kubernetes first, or keep OpenKruise`,
        ]
      : []),
    ...(facts.sidecarSets.length === 0 && facts.managers.length === 0
      ? ["there is neither OpenKruise nor a SidecarSet: nothing to move; sidecarset install --help"]
      : []),
  ];
}

function changesOf(facts: MigrationFacts): readonly string[] {
  const guarded = protectedNamespaces(facts);
  return [
    "while the webhook is down, pods are created without their sidecars (failurePolicy Ignore); OpenKruise has Fail, and sidecarset webhooks --failure-policy Fail has it too",
    "pods in kube-system and kube-node-lease get no sidecars; API servers wait 5 seconds for an answer, not 10",
    "rollouts go on in passes, each minute or each --tick, and follow each batch within a pass",
    ...(guarded.length > 0
      ? [
          `the label that protects from deletion has no effect any more, on namespaces ${guarded.join(", ")} and elsewhere`,
        ]
      : []),
    ...optionalKinds(facts).map(
      ({ kind, plural }) =>
        `${kind} is served here with a role of its own: infra/rbac/optional/${OPTIONAL_ROLES[plural]}.yaml`,
    ),
  ];
}
