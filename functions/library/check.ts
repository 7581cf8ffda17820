/** The library: faults of an installation that its objects show. Objects in, values out, no I/O. */
import type { ConfigMap, ControllerRevision, KubernetesObject, Namespace, Pod } from "../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { type CheckReport, checkInstallation } from "../../shared/core/inspect/check/check.ts";
import type {
  Definition,
  Deployment,
  Facts,
  Seen,
  WebhookConfiguration,
} from "../../shared/core/inspect/check/facts.ts";
import { ownSchema } from "../../shared/install/crd/sidecarset-crd.ts";
import {
  CONFIGURATIONS,
  DEFINITION,
  NOW,
  OBJECTS,
  optionally,
  PASS,
  PODS,
  REVISIONS,
  readArguments,
  within,
} from "./arguments.ts";
import { budgetsOf, hubSidecarSet, type PassInput, settingsOf, storedSidecarSet } from "./pass-input.ts";

/**
 * A part that is left out becomes a finding `NotLookedAt`. Rights, probes and dry runs need a cluster and do so too.
 */
export interface CheckInput extends PassInput {
  /** all MutatingWebhookConfigurations in the cluster */
  readonly mutatingWebhookConfigurations?: readonly KubernetesObject[];
  /** all ValidatingWebhookConfigurations in the cluster */
  readonly validatingWebhookConfigurations?: readonly KubernetesObject[];
  /** CustomResourceDefinition of SidecarSets; null: there is none */
  readonly definition?: KubernetesObject | null;
  /** SidecarSets as the API server returns them, hashes included */
  readonly sidecarSets?: readonly KubernetesObject[];
  /** all namespaces in the cluster, with their labels */
  readonly namespaces?: readonly Namespace[];
  /** all pods in the cluster, with their status */
  readonly pods?: readonly Pod[];
  /** the revisions of all SidecarSets */
  readonly revisions?: readonly ControllerRevision[];
  /** ConfigMaps of the namespace kruise-system */
  readonly configMaps?: readonly ConfigMap[];
  /** Deployments named kruise-controller-manager */
  readonly managers?: readonly KubernetesObject[];
  /** time of the last pass, RFC 3339; null: no pass ever ran */
  readonly lastPass?: string | null;
  /** the present time, RFC 3339 */
  readonly now: string;
}

const ARGUMENTS = {
  ...PASS,
  mutatingWebhookConfigurations: optionally(CONFIGURATIONS),
  validatingWebhookConfigurations: optionally(CONFIGURATIONS),
  definition: orNull(DEFINITION),
  sidecarSets: optionally(OBJECTS),
  namespaces: optionally(OBJECTS),
  pods: optionally(PODS),
  revisions: REVISIONS,
  configMaps: optionally(OBJECTS),
  managers: optionally(OBJECTS),
  lastPass: orNull(NOW),
  now: NOW,
};

function orNull({ problem }: typeof NOW) {
  return { problem: (value: unknown) => (value === null ? undefined : problem(value)), isOptional: true } as const;
}

const NOT_GIVEN = { why: "it was not given" } as const;

function seen<T>(value: T | undefined): Seen<T> {
  return value === undefined ? NOT_GIVEN : { value };
}

/** The stored object. A missing hash is a finding; an unreadable object is a wrong argument. */
function readable(object: KubernetesObject): SidecarSet {
  storedSidecarSet(object);
  const sidecarSet = hubSidecarSet(object);
  if (typeof sidecarSet.spec !== "object") throw new TypeError("it has no spec");
  return sidecarSet;
}

/** The gravest findings first. @throws TypeError that says in one sentence which argument is wrong */
export function check(given: CheckInput): CheckReport {
  const input = readArguments("check", given, ARGUMENTS);
  const { now, definition, lastPass, kubelets, isResizeServed } = input;
  // An object that cannot be stored is a wrong argument; one without hashes is a finding.
  const sidecarSets = input.sidecarSets?.map((one, index) =>
    within("check", `sidecarSets[${index}]`, () => readable(one)),
  );
  const facts: Facts = {
    now,
    kruiseNamespace: KRUISE_NAMESPACE,
    mutating: seen(input.mutatingWebhookConfigurations as readonly WebhookConfiguration[] | undefined),
    validating: seen(input.validatingWebhookConfigurations as readonly WebhookConfiguration[] | undefined),
    definition: definition === null ? { value: undefined } : seen(definition as Definition | undefined),
    ownSchema: ownSchema(),
    sidecarSets: seen(sidecarSets),
    namespaces: seen(input.namespaces),
    pods: seen(input.pods),
    revisions: seen(input.revisions),
    configMaps: seen(input.configMaps),
    lastPass: lastPass === null ? { value: undefined } : seen(lastPass),
    managers: seen(input.managers as readonly Deployment[] | undefined),
    ...{ version: NOT_GIVEN, skewSeconds: NOT_GIVEN, trial: NOT_GIVEN, rights: NOT_GIVEN, optionalObjects: NOT_GIVEN },
    probes: [],
    settings: settingsOf(input),
    kubelets: seen(kubelets ?? new Map()),
    declaredFeatures: { value: new Map() },
    podTrial: { value: undefined },
    isResizeServed: seen(isResizeServed ?? false),
    disruptionBudgets: seen(budgetsOf(input)),
  };
  return checkInstallation(facts);
}
