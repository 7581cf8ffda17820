/** The faults of an installation, from the facts about it. */
import type { ControllerRevision, Namespace, Pod } from "../../../api/kubernetes.ts";
import { HASH_ANNOTATION, SIDECARSET_NAME_LABEL } from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { matches, replaceByCanary } from "../../injection/match/matches.ts";
import { candidates, indexSidecarSets } from "../../injection/match/sidecarset-index.ts";
import { mayHaveMissed, missedPods } from "../../injection/missed/missed-pods.ts";
import { EMPTY_LEDGER, ledgerName, ledgerSubject, parseLedger, reconcileLedger } from "../../ledger.ts";
import { isActive } from "../../pod/is-matched.ts";
import { decide } from "../../rollout/decide.ts";
import { outcomeFacts, wayBack } from "../../rollout/history/history.ts";
import { asLastAnswered } from "../../rollout/narrow.ts";
import { recordsIn } from "../../rollout/rules/checks/check-records.ts";
import { selectionOf } from "../../rollout/rules/missed/selection.ts";
import { remembered } from "../../rollout/rules/replacement/missing-pods.ts";
import { classify } from "../../rollout/select/classify.ts";
import { type Surroundings, stateReader } from "../../rollout/select/observed-states.ts";
import { reservedOf } from "../../rollout/select/reserved.ts";
import { mutateSidecarSet } from "../../sidecarset/mutate.ts";
import { restartAdvice } from "../restart-advice.ts";
import { checkDefinition } from "./definition.ts";
import { type Facts, type Seen, seenOf } from "./facts.ts";
import { type Finding, type FindingId, finding, SEVERITIES, type Severity } from "./finding.ts";
import { checkOthers } from "./others.ts";
import { checkBlocked, checkPasses, type Decided } from "./passes.ts";
import { checkCoverage, checkRollout, type Rollout } from "./pods.ts";
import { checkRegistration, checkRights } from "./registration.ts";
import { checkSidecarSets } from "./sidecar-sets.ts";
import { checkProbes, OUTSIDE_OF_EXEMPT, type Registrations, registrationsOf, selects } from "./webhooks.ts";

export interface CheckReport {
  /** worst first */
  readonly findings: readonly Finding[];
  readonly counts: Readonly<Record<Severity, number>>;
  /** counts of the checked objects */
  readonly looked: {
    readonly kindsOfFindings: number;
    readonly sidecarSets: number;
    readonly pods: number;
    readonly webhooks: number;
    readonly addresses: number;
    readonly rights: number;
    /** objects of a manifest, tried in a dry run; absent: no manifest */
    readonly objects?: number;
  };
}

const ORDER: readonly Severity[] = ["error", "warning", "note"];

/** Pure. A fact that could not be read is a finding itself. */
export function checkInstallation(facts: Facts): CheckReport {
  const registrations = registrationsOf(facts);
  const rollouts = rolloutsOf(facts, registrations);
  const decisions = new Map(rollouts.map(({ sidecarSet, decided }) => [sidecarSet, decided]));
  const found = [
    ...checkSeen(facts),
    ...(registrations ? checkRegistered(facts, registrations) : []),
    ...checkOthers(facts, registrations),
    ...checkDefinition(facts),
    ...checkRights(facts),
    ...checkPasses(facts),
    ...checkSidecarSets(facts, hashOf),
    ...rollouts.flatMap(checkRollout),
    ...(seenOf(facts.sidecarSets) ?? []).flatMap((one) => checkBlocked(one, decisions.get(one))),
  ];
  const findings = ORDER.flatMap((severity) => found.filter((one) => one.severity === severity));
  const count = (severity: Severity) => found.filter((one) => one.severity === severity).length;
  return {
    findings,
    counts: { error: count("error"), warning: count("warning"), note: count("note") },
    looked: {
      kindsOfFindings: Object.keys(SEVERITIES).length,
      sidecarSets: seenOf(facts.sidecarSets)?.length ?? 0,
      pods: seenOf(facts.pods)?.length ?? 0,
      webhooks: [...(seenOf(facts.mutating) ?? []), ...(seenOf(facts.validating) ?? [])].flatMap(
        ({ webhooks = [] }) => webhooks,
      ).length,
      addresses: facts.probes.length,
      rights: seenOf(facts.rights)?.length ?? 0,
    },
  };
}

function checkRegistered(facts: Facts, registrations: Registrations): readonly Finding[] {
  return [
    ...checkRegistration(facts, registrations),
    ...checkProbes(facts, registrations),
    ...checkCoverage(facts, registrations),
  ];
}

/** The use of each fact, for the finding that it is missing. */
const LOOKED_AT = {
  mutating: "how the webhooks are registered",
  validating: "how the webhooks are registered",
  definition: "the definition of SidecarSets",
  sidecarSets: "the SidecarSets",
  namespaces: "which namespaces the webhook is asked about",
  pods: "the pods",
  revisions: "the revisions",
  configMaps: "the ledgers",
  lastPass: "when a pass ran last",
  managers: "whether OpenKruise's manager runs",
  version: "the API server's version",
  skewSeconds: "the API server's clock",
  trial: "whether the API server is answered",
  podTrial: "whether the API server asks about pods",
  rights: "what our accounts may do",
  optionalObjects: "which optional features are used",
  kubelets: "which kubelets the nodes have",
  declaredFeatures: "which features the nodes declare",
  isResizeServed: "whether the API server changes resources in place",
  disruptionBudgets: "the disruption budgets",
} as const satisfies Partial<Record<keyof Facts, string>>;

function checkSeen(facts: Facts): readonly Finding[] {
  return Object.entries(LOOKED_AT).flatMap(([key, purpose]) => {
    const seen: Seen<unknown> = facts[key as keyof typeof LOOKED_AT];
    if (!("why" in seen)) return [];
    const message = `${purpose} could not be looked at: ${seen.why}`;
    return [
      finding(
        "NotLookedAt",
        key,
        message,
        "where a right is missing: check as a user who has it, with --context or --kubeconfig",
      ),
    ];
  });
}

function hashOf(sidecarSet: SidecarSet): string | undefined {
  const resource = { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const admission = mutateSidecarSet({ uid: "check", operation: "UPDATE", resource, object: sidecarSet });
  if (admission.kind === "denied") return undefined;
  return (admission.object ?? sidecarSet).metadata?.annotations?.[HASH_ANNOTATION];
}

function rolloutsOf(facts: Facts, registrations: Registrations | undefined): readonly DecidedRollout[] {
  const [sets, pods] = [seenOf(facts.sidecarSets), seenOf(facts.pods)];
  const inPlace = inPlaceOf(facts);
  // Only facts that passes would see count here, because a guess would be no finding.
  if (sets === undefined || pods === undefined || inPlace === undefined) return [];
  const meant = podsBySet(sets, pods, seenOf(facts.namespaces) ?? []);
  const seen = { facts, registrations, inPlace };
  return sets.map((one) => rolloutOf(one, meant.get(one) ?? [], seen));
}

function inPlaceOf(facts: Facts): RolloutFacts["inPlace"] | undefined {
  const [kubelets, isResizeServed] = [seenOf(facts.kubelets), seenOf(facts.isResizeServed)];
  const disruptionBudgets = seenOf(facts.disruptionBudgets);
  if (kubelets === undefined || isResizeServed === undefined || disruptionBudgets === undefined) return undefined;
  return { kubelets, isResizeServed, disruptionBudgets };
}

interface DecidedRollout extends Rollout {
  readonly decided: Decided;
}

/** Assigns a pod that a canary selects to the canary, not to its base. */
function podsBySet(
  sets: readonly SidecarSet[],
  pods: readonly Pod[],
  namespaces: readonly Namespace[],
): ReadonlyMap<SidecarSet, readonly Pod[]> {
  const byName = new Map(namespaces.map((one) => [one.metadata?.name ?? "", one]));
  const index = indexSidecarSets(sets);
  const found = new Map<SidecarSet, Pod[]>(sets.map((one) => [one, []]));
  for (const pod of pods.filter(isActive)) {
    const { namespace = "", labels: podLabels } = pod.metadata ?? {};
    const subject = { namespace: byName.get(namespace), podLabels };
    const all = candidates(index, namespace, podLabels).filter((one) => matches(one, subject) === true);
    for (const one of replaceByCanary(all)) found.get(one)?.push(pod);
  }
  return found;
}

interface RolloutFacts {
  readonly facts: Facts;
  readonly registrations: Registrations | undefined;
  readonly inPlace: Pick<Surroundings, "kubelets" | "isResizeServed" | "disruptionBudgets">;
}

function rolloutOf(
  sidecarSet: SidecarSet,
  pods: readonly Pod[],
  { facts, registrations, inPlace }: RolloutFacts,
): DecidedRollout {
  const { now, kruiseNamespace, settings } = facts;
  const revisions = revisionsOf(sidecarSet, seenOf(facts.revisions) ?? []);
  const name = ledgerName(sidecarSet.metadata?.name ?? "");
  const stored = seenOf(facts.configMaps)?.find(({ metadata }) => metadata?.name === name);
  const ledger = parseLedger(stored?.data) ?? EMPTY_LEDGER;
  const versions = new Map(pods.map((pod) => [pod.metadata?.uid ?? "", pod.metadata?.resourceVersion ?? ""]));
  const subject = ledgerSubject(sidecarSet);
  const kept = reconcileLedger(ledger, versions, subject)?.kept ?? ledger.reservations;
  const departed = remembered(ledger.departed ?? [], new Set(kept.map(({ uid }) => uid)), facts.now);
  const reserved = reservedOf(kept, subject, { departed });
  const namespaceLabels = new Map(
    (seenOf(facts.namespaces) ?? []).map(({ metadata }) => [metadata?.name ?? "", metadata?.labels ?? {}]),
  );
  const checks = recordsIn(ledger, sidecarSet);
  const observation = { sidecarSet, pods, revisions, taken: [], checks, reserved, namespaceLabels, ...inPlace };
  const stateOf = stateReader(observation, settings);
  const decided = asLastAnswered(observation, decide(observation, { now, kruiseNamespace, settings }), now);
  const { summary, actions } = decided;
  // Without the revisions nobody knows whether an undo has a revision to go back to.
  const known = seenOf(facts.revisions) && {
    halt: {
      ...summary.rules.halt,
      hasWayBack: wayBack(outcomeFacts(sidecarSet, revisions, pods.map(stateOf))) !== undefined,
    },
  };
  const { notUpgradable, immutableFields, problems } = summary;
  return {
    decided: { ...decided, summary: { ...summary, rules: { ...summary.rules, ...known } } },
    sidecarSet,
    pods,
    missed: missedOf(sidecarSet, pods, facts, registrations),
    revisions: revisions.length,
    deletable: actions.filter(({ kind }) => kind === "DeleteRevision").length,
    notUpgradable,
    renewal:
      notUpgradable === 0
        ? ""
        : restartAdvice(
            pods.filter((pod) => classify(stateOf(pod), sidecarSet) === "notUpgradable"),
            sidecarSet,
          ),
    immutableFields,
    refused: problems.map(({ namespace, name, message }) => `${namespace}/${name} (${message})`),
  };
}

function revisionsOf({ metadata }: SidecarSet, all: readonly ControllerRevision[]): readonly ControllerRevision[] {
  return all.filter((one) => one.metadata?.labels?.[SIDECARSET_NAME_LABEL] === metadata?.name);
}

/** Pods without sidecars although API servers should have asked the webhook about them. */
function missedOf(
  sidecarSet: SidecarSet,
  pods: readonly Pod[],
  facts: Facts,
  registrations: Registrations | undefined,
): readonly Pod[] {
  const namespaces = seenOf(facts.namespaces);
  if (registrations === undefined || namespaces === undefined) return [];
  const { pods: registered, isInFiles } = registrations;
  const selectors = isInFiles ? [OUTSIDE_OF_EXEMPT] : registered.map(({ webhook }) => webhook.namespaceSelector);
  const isAsked = ({ metadata }: Namespace) => selectors.some((one) => selects(one, metadata?.labels));
  const exempt = namespaces.filter((one) => !isAsked(one)).map(({ metadata }) => metadata?.name ?? "");
  const candidates = mayHaveMissed(pods, sidecarSet, selectionOf(sidecarSet, facts.now).since);
  // The canaries were assigned before.
  return missedPods(candidates, { exemptNamespaces: new Set(exempt), canaries: [] });
}

// The check of a manifest before it is applied: the findings as if it were installed already.

/** The result of creating or changing one object of the manifest in a dry run. */
export interface Tried {
  /** such as `ClusterRole sidecarset-reconciler` */
  readonly object: string;
  /** the API server's sentence; undefined: it would accept the object */
  readonly refusal?: string;
  /** the caller lacks the right */
  readonly isForbidden?: boolean;
  /** its namespace does not exist yet */
  readonly isUntried?: boolean;
}

/** Findings that make sense before an installation. The others say that it is missing, or not in use yet. */
const MEANT: ReadonlySet<FindingId> = new Set<FindingId>([
  "NotLookedAt",
  "PlaceholderAddress",
  "FailsOpen",
  "FailsClosed",
  "FailsClosedForAll",
  "WebhookUnreachable",
  "NotReachableFromHere",
  "NotProbed",
  "CertificateNotTrusted",
  "CertificateNameWrong",
  "CertificateExpired",
  "CertificateExpiresSoon",
  "CaBundleBroken",
  "AnyoneIsAnswered",
  "CallerRefused",
  "WebhookFailing",
  "WebhookSlow",
  "OpenKruiseActive",
  "OpenKruiseWebhooksLeft",
  "InjectedTwice",
  "OtherPodWebhooks",
  "OldVersionStored",
  "ApiServerOld",
  "ApiServerUntested",
  "ClockSkew",
]);

/** Pure. `facts`: the current cluster, with the manifest's registrations and CRD in place of the replaced ones. */
export function checkBeforeInstall(facts: Facts, tried: readonly Tried[]): CheckReport {
  const { findings, looked } = checkInstallation(facts);
  const refused = tried.flatMap((one) => (one.refusal === undefined ? [] : refusedBy(one, one.refusal)));
  const all = [...refused, ...findings.filter(({ id }) => MEANT.has(id))];
  const count = (severity: Finding["severity"]) => all.filter((one) => one.severity === severity).length;
  return {
    findings: all,
    counts: { error: count("error"), warning: count("warning"), note: count("note") },
    looked: { ...looked, objects: tried.filter(({ isUntried }) => !isUntried).length, kindsOfFindings: MEANT.size + 1 },
  };
}

function hintFor(object: string): string {
  const why = "see what refuses it: a policy of the cluster, or an API server that does not serve this kind";
  const isFence = object.startsWith("ValidatingAdmissionPolicy");
  return isFence ? `${why} (install --without-fence leaves out what Kubernetes before 1.30 lacks)` : why;
}

function refusedBy({ object, isForbidden }: Tried, refusal: string): readonly Finding[] {
  const hint = isForbidden ? "apply the manifest as a user who may, with --context or --kubeconfig" : hintFor(object);
  return [finding("InstallRefused", object, `the API server would refuse it: ${refusal}`, hint)];
}
