/** Faults of the SidecarSets themselves, whatever their pods. */

import type { ControllerRevision, Namespace } from "../../../api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, HASH_ANNOTATION, SIDECARSET_NAME_LABEL } from "../../../api/names.ts";
import type { ContainerDetails } from "../../../api/pod-parts.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { isEmptySelector } from "../../../go/label-selector.ts";
import { secondsBetween } from "../../../go/seconds-between.ts";
import { commandText } from "../../pod/command-text.ts";
import { steeringOf } from "../../pod/steering/steering.ts";
import { waveOf } from "../../pod/steering/waves.ts";
import { maxUnavailableOf } from "../../rollout/select/budget.ts";
import { wantedRevision } from "../../sidecarset/revision/wanted-revision.ts";
import { validateConflicts } from "../../sidecarset/validate/conflict.ts";
import { powerfulSharing } from "../../sidecarset/validate/doubts.ts";
import { fieldsBeyond } from "../../sidecarset/validate/newer-fields.ts";
import { type Facts, seenOf } from "./facts.ts";
import { type Finding, finding, someOf, where } from "./finding.ts";
import { lastWriteOf } from "./passes.ts";

const LONG_SECONDS = 7 * 86_400;
const MANY_PODS = 100;

/** `hashOf`: the hash that it should have; undefined: it cannot be computed. */
export function checkSidecarSets(
  facts: Facts,
  hashOf: (sidecarSet: SidecarSet) => string | undefined,
): readonly Finding[] {
  const all = seenOf(facts.sidecarSets) ?? [];
  return all.flatMap((one) => [
    ...checkHash(one, hashOf),
    ...checkConflicts(one, all),
    ...checkSelector(one),
    ...checkBudget(one),
    ...checkPause(one, facts.now),
    ...checkCare(one),
    ...checkWaves(one, seenOf(facts.namespaces)),
    ...checkPrivileges(one),
    ...checkRevision(one, seenOf(facts.revisions)),
    ...checkFields(one, facts),
    ...checkNodes(one, seenOf(facts.declaredFeatures) ?? new Map()),
  ]);
}

function checkFields(one: SidecarSet, { version }: Facts): readonly Finding[] {
  const { major, minor = "" } = seenOf(version) ?? {};
  const fields = major === "1" ? fieldsBeyond(one, Number.parseInt(minor, 10)) : [];
  return where(
    fields.length > 0,
    finding(
      "FieldsTooNew",
      aboutOf(one),
      someOf(fields),
      "leave them out, update the API server, or turn the feature gate on",
    ),
  );
}

/** The feature that a node must declare: schedulers since Kubernetes 1.36 place a pod with it nowhere else. */
const RESTARTS_ALL = "RestartAllContainersOnContainerExits";

export function restartsAllContainers({ spec }: SidecarSet): boolean {
  const all: readonly ContainerDetails[] = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  return all.some((one) => one.restartPolicyRules?.some(({ action }) => action === "RestartAllContainers"));
}

function checkNodes(one: SidecarSet, declared: ReadonlyMap<string, readonly string[]>): readonly Finding[] {
  const nodes = [...declared].filter(([, features]) => !features.includes(RESTARTS_ALL)).map(([name]) => name);
  return where(
    restartsAllContainers(one) && nodes.length > 0,
    finding(
      "NodesLackFeature",
      aboutOf(one),
      `pods with a container that restarts all others are not scheduled on nodes that do not declare ${RESTARTS_ALL}: ${someOf(nodes)}`,
      "update the kubelets of these nodes, or leave the action RestartAllContainers out",
    ),
  );
}

function aboutOf({ metadata }: SidecarSet): string {
  return `SidecarSet ${metadata?.name}`;
}

/** The advice for a SidecarSet that no webhook gave its hashes. */
export function writeAgain(name: string | undefined): string {
  return commandText`write it once more while the webhooks answer: kubectl annotate --overwrite sidecarset ${name} sidecarset.kruise.io/written=again`;
}

function checkHash(one: SidecarSet, hashOf: (one: SidecarSet) => string | undefined): readonly Finding[] {
  const [stored, wanted] = [one.metadata?.annotations?.[HASH_ANNOTATION], hashOf(one)];
  const again = writeAgain(one.metadata?.name);
  if (stored === undefined)
    return [
      finding(
        "HashMissing",
        aboutOf(one),
        "it was stored without its hashes, as happens while the webhooks are not registered: it is never rolled out",
        again,
      ),
    ];
  return where(
    wanted !== undefined && wanted !== stored,
    finding(
      "HashWrong",
      aboutOf(one),
      "its hash is not that of its containers: pods that have the newest version are taken for old ones, or the other way round",
      again,
    ),
  );
}

function checkConflicts(one: SidecarSet, all: readonly SidecarSet[]): readonly Finding[] {
  const details = [...new Set(validateConflicts(one, all).map(({ detail }) => detail))];
  return where(
    details.length > 0,
    finding(
      "SidecarSetsConflict",
      aboutOf(one),
      `it gets in the way of another one that may select the same pods: ${someOf(details)}`,
      "rename what both have, or make their selectors exclude each other",
    ),
  );
}

function checkSelector(one: SidecarSet): readonly Finding[] {
  const { selector } = one.spec;
  return where(
    !selector || isEmptySelector(selector),
    finding(
      "SelectsNothing",
      aboutOf(one),
      "it has no selector, or an empty one, and is meant for no pod",
      "give it a spec.selector",
    ),
  );
}

/** Checks the strategy's limits, calculated for a hundred pods. */
function checkBudget(one: SidecarSet): readonly Finding[] {
  const strategy = one.spec.updateStrategy;
  if (strategy?.type === "NotUpdate") return [];
  const limit = maxUnavailableOf(strategy, MANY_PODS);
  return [
    ...where(
      limit === 0,
      finding(
        "BudgetZero",
        aboutOf(one),
        `maxUnavailable ${strategy?.maxUnavailable} allows no pod to be down, so no pod that is ready is ever updated`,
        "set 1 or more, or a percentage",
      ),
    ),
    ...where(
      limit >= MANY_PODS,
      finding(
        "AllAtOnce",
        aboutOf(one),
        `maxUnavailable ${strategy?.maxUnavailable} takes all pods down at once with each change`,
        "set it to what you can do without, such as 10%",
      ),
    ),
  ];
}

const PAUSED = ["spec", "updateStrategy", "paused"];
const INJECTION_PAUSED = ["spec", "injectionStrategy", "paused"];

function checkPause(one: SidecarSet, now: string): readonly Finding[] {
  const { updateStrategy, injectionStrategy } = one.spec;
  const since = (path: readonly string[]) => lastWriteOf(one, path);
  const isLong = (time: string | undefined) => time !== undefined && (secondsBetween(time, now) ?? 0) > LONG_SECONDS;
  const [rollout, injection] = [since(PAUSED), since(INJECTION_PAUSED)];
  const name = one.metadata?.name;
  return [
    ...where(
      updateStrategy?.paused === true && isLong(rollout),
      finding(
        "PausedLong",
        aboutOf(one),
        `its rollout is paused since ${rollout} or longer`,
        commandText`resume it: kubectl patch sidecarset ${name} --type=merge -p '{"spec":{"updateStrategy":{"paused":false}}}'`,
      ),
    ),
    ...where(
      injectionStrategy?.paused === true && isLong(injection),
      finding(
        "PausedLong",
        aboutOf(one),
        `its injection is paused since ${injection} or longer: new pods come without its sidecars`,
        commandText`resume it: kubectl patch sidecarset ${name} --type=merge -p '{"spec":{"injectionStrategy":{"paused":false}}}'`,
      ),
    ),
  ];
}

/** Annotations that cannot be read but stop nothing. The book of holds has the others. */
function checkCare(one: SidecarSet): readonly Finding[] {
  const problem = steeringOf(one).problems.find(({ isStopping }) => !isStopping);
  if (problem === undefined) return [];
  return [finding("AnnotationIgnored", aboutOf(one), problem.text, "correct the annotation, or take it away")];
}

/** A wave without namespaces passes at once, and its intended namespaces come last, or with another wave. */
function checkWaves(one: SidecarSet, namespaces: readonly Namespace[] | undefined): readonly Finding[] {
  const { waves = [] } = steeringOf(one);
  if (namespaces === undefined) return [];
  const reached = new Set(namespaces.map(({ metadata }) => waveOf(waves, metadata?.labels ?? {})));
  const empty = waves.filter((_, rank) => !reached.has(rank)).map(({ name }) => name);
  return where(
    empty.length > 0,
    finding(
      "WaveWithoutNamespaces",
      aboutOf(one),
      `no namespace belongs to the ${empty.length === 1 ? "wave" : "waves"} ${someOf(empty)}: none has the labels, or those that do belong to a wave before`,
      "label the namespaces, or correct namespaceSelector in the annotation sidecarset.kruise.io/waves",
    ),
  );
}

function checkPrivileges(one: SidecarSet): readonly Finding[] {
  const names = powerfulSharing(one.spec);
  return where(
    names.length > 0,
    finding(
      "PrivilegesShared",
      aboutOf(one),
      `what pods bring is shared with containers that have more privileges than others (${someOf(names)}): anyone who creates a pod can put files and variables there that they go by`,
      "take shareVolumePolicy away, or what they may do beyond others",
    ),
  );
}

/** A missing revision makes the webhook refuse new pods. */
function checkRevision(one: SidecarSet, revisions: readonly ControllerRevision[] | undefined): readonly Finding[] {
  const wanted = wantedRevision(one);
  if (wanted === undefined || revisions === undefined) return [];
  const { revisionName, customVersion } = wanted;
  const isThere = revisions.some(({ metadata }) =>
    revisionName === undefined
      ? metadata?.labels?.[SIDECARSET_NAME_LABEL] === one.metadata?.name &&
        metadata?.labels?.[CUSTOM_VERSION_LABEL] === customVersion
      : metadata?.name === revisionName,
  );
  return where(
    !isThere,
    finding(
      "RevisionMissing",
      aboutOf(one),
      `injectionStrategy.revision names ${revisionName ?? `the version ${customVersion}`}, which is not there: its new pods are refused`,
      "name one that is there, or take injectionStrategy.revision out",
    ),
  );
}
