/** The facts about an installation that a check reads. */
import type {
  ConfigMap,
  ControllerRevision,
  KubernetesObject,
  LabelSelector,
  Namespace,
  Pod,
} from "../../../api/kubernetes.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import type { RolloutSettings } from "../../rollout/rollout-settings.ts";
import type { DisruptionBudget } from "../../rollout/rules/disruption-budgets/disruption-budget.ts";

/** A fact, or the sentence that says why it could not be read. */
export type Seen<T> = { readonly value: T } | { readonly why: string };

export interface ClientConfig {
  readonly url?: string;
  readonly service?: {
    readonly namespace?: string;
    readonly name?: string;
    readonly path?: string;
    readonly port?: number;
  };
  /** PEM in base64 */
  readonly caBundle?: string;
}

interface WebhookRule {
  readonly operations?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly resources?: readonly string[];
}

/** One webhook of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration. */
export interface Webhook {
  readonly name: string;
  readonly clientConfig?: ClientConfig;
  readonly rules?: readonly WebhookRule[];
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly failurePolicy?: string;
  readonly matchPolicy?: string;
  readonly timeoutSeconds?: number;
  readonly sideEffects?: string;
  readonly reinvocationPolicy?: string;
}

export interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks?: readonly Webhook[];
}

interface DefinitionVersion {
  readonly name: string;
  readonly served?: boolean;
  readonly storage?: boolean;
  readonly schema?: { readonly openAPIV3Schema?: SchemaNode };
}

/** JSONSchemaProps, reduced to the names of fields. */
export interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
}

/** apiextensions.k8s.io/v1 CustomResourceDefinition. */
export interface Definition extends KubernetesObject {
  readonly spec?: {
    readonly versions?: readonly DefinitionVersion[];
    readonly conversion?: {
      readonly strategy?: string;
      readonly webhook?: { readonly clientConfig?: ClientConfig };
    };
  };
  readonly status?: { readonly storedVersions?: readonly string[] };
}

export interface Deployment extends KubernetesObject {
  readonly spec?: {
    readonly replicas?: number;
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly { readonly image?: string; readonly args?: readonly string[] }[];
      };
    };
  };
  readonly status?: { readonly readyReplicas?: number };
}

interface ServerVersion {
  readonly major: string;
  /** some API servers add a plus: 32+ */
  readonly minor: string;
  readonly gitVersion: string;
}

/** The API server's answer to the dry run of a SidecarSet or a pod. */
export type Trial =
  /** the SidecarSet got its hashes, or the pod its sidecars */
  | { readonly kind: "admitted" }
  /** the object returned unchanged */
  | { readonly kind: "untouched" }
  /** a webhook did not answer; the message is the API server's */
  | { readonly kind: "unanswered"; readonly message: string };

/** A certificate that a server presented. Times are RFC3339. */
interface ShownCertificate {
  readonly validFrom: string;
  readonly validTo: string;
  /** host names and addresses in the certificate */
  readonly names: readonly string[];
}

/** Error codes of OpenSSL and Node, undefined: no error. */
export interface Handshake {
  readonly certificate: ShownCertificate;
  readonly problem: string | undefined;
}

/** The answer to a request. */
export interface Answer {
  /** HTTP status; 0: the server closed the connection, for example because it wants a certificate */
  readonly code: number;
  readonly ms: number;
}

export interface Probe {
  /** https://host:port, without the path, which may hold a secret */
  readonly origin: string;
  /** the registered caBundle is not a certificate */
  readonly isCaBroken: boolean;
  /** the sentence that says why there is no connection */
  readonly handshake: Handshake | { readonly unreachable: string };
  /** answer to an unauthenticated request */
  readonly toStranger?: Answer;
  /** answer at the registered path, when the path is the proof */
  readonly toRegistered?: Answer;
}

/** One question about a right, and the API server's answer. */
export interface Right {
  /** service account, such as sidecarset-reconciler */
  readonly account: string;
  /** such as `patch pods/status` or `get configmaps kruise-configuration in kruise-system` */
  readonly what: string;
  /** base: every installation needs the right; none: nobody needs it; otherwise the optional role that grants it */
  readonly role: string;
  readonly isAllowed: boolean;
}

export interface Facts {
  /** RFC3339, by the local clock */
  readonly now: string;
  /** namespace of the ControllerRevisions, ledgers and the Lease */
  readonly kruiseNamespace: string;
  readonly mutating: Seen<readonly WebhookConfiguration[]>;
  readonly validating: Seen<readonly WebhookConfiguration[]>;
  /** undefined: not installed */
  readonly definition: Seen<Definition | undefined>;
  /** schema of this version's SidecarSet CRD, for comparison */
  readonly ownSchema: SchemaNode;
  readonly sidecarSets: Seen<readonly SidecarSet[]>;
  readonly namespaces: Seen<readonly Namespace[]>;
  /** running and pending pods */
  readonly pods: Seen<readonly Pod[]>;
  /** ControllerRevisions of all SidecarSets */
  readonly revisions: Seen<readonly ControllerRevision[]>;
  /** ConfigMaps in the namespace of the ledgers */
  readonly configMaps: Seen<readonly ConfigMap[]>;
  /** RFC3339: when a pass last renewed its Lease; undefined: no Lease */
  readonly lastPass: Seen<string | undefined>;
  /** Deployments with the name of OpenKruise's manager */
  readonly managers: Seen<readonly Deployment[]>;
  readonly version: Seen<ServerVersion>;
  /** seconds by which the API server's clock is ahead of the local one */
  readonly skewSeconds: Seen<number>;
  readonly trial: Seen<Trial>;
  /** the trial of a pod; undefined: none, because its registration can be read or no SidecarSet selects pods */
  readonly podTrial: Seen<Trial | undefined>;
  readonly probes: readonly Probe[];
  readonly rights: Seen<readonly Right[]>;
  /** optional role → number of objects that only it serves */
  readonly optionalObjects: Seen<Readonly<Record<string, number>>>;
  /** settings of the passes */
  readonly settings: RolloutSettings;
  /** version by node; empty when no pass needs it */
  readonly kubelets: Seen<ReadonlyMap<string, string>>;
  /** `status.declaredFeatures` by node, since Kubernetes 1.36; empty when no SidecarSet depends on one */
  readonly declaredFeatures: Seen<ReadonlyMap<string, readonly string[]>>;
  /** the API server serves pods/resize; false also when no pass needs it */
  readonly isResizeServed: Seen<boolean>;
  /** empty without gate RespectDisruptionBudgets */
  readonly disruptionBudgets: Seen<readonly DisruptionBudget[]>;
}

/** A Node of Kubernetes 1.36 or newer. */
export interface DeclaringNode extends KubernetesObject {
  readonly status?: { readonly declaredFeatures?: readonly string[] };
}

export function seenOf<T>(seen: Seen<T>): T | undefined {
  return "value" in seen ? seen.value : undefined;
}
