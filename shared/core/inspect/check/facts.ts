/** Decides nothing: what is known of an installation when it is checked. */
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

/** Something that was looked at, or the sentence that says why it could not be. */
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

/** One of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration. */
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

/** JSONSchemaProps, as far as names of fields go. */
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
  /** some add a plus: 32+ */
  readonly minor: string;
  readonly gitVersion: string;
}

/** What the API server said when it was asked to create a SidecarSet, or a pod, without storing it. */
export type Trial =
  /** the SidecarSet got its hashes, the pod its sidecars */
  | { readonly kind: "admitted" }
  /** it came back as it was */
  | { readonly kind: "untouched" }
  /** a webhook did not answer; in the API server's words */
  | { readonly kind: "unanswered"; readonly message: string };

/** A certificate as it was shown. Times are RFC3339. */
interface ShownCertificate {
  readonly validFrom: string;
  readonly validTo: string;
  /** host names and addresses that it is for */
  readonly names: readonly string[];
}

/** Codes of OpenSSL and Node, undefined: all is well. */
export interface Handshake {
  readonly certificate: ShownCertificate;
  readonly problem: string | undefined;
}

/** What came back to a request. */
export interface Answer {
  /** HTTP status; 0: the connection was closed, as by one who wants a certificate */
  readonly code: number;
  readonly ms: number;
}

export interface Probe {
  /** without the secret of its path: https://host:port */
  readonly origin: string;
  /** the caBundle that is registered is no certificate */
  readonly isCaBroken: boolean;
  /** the sentence that says why there is none */
  readonly handshake: Handshake | { readonly unreachable: string };
  /** to somebody who proves nothing */
  readonly toStranger?: Answer;
  /** to the path that is registered, where that is the proof */
  readonly toRegistered?: Answer;
}

/** One question to the API server, and its answer. */
export interface Right {
  /** such as sidecarset-reconciler */
  readonly account: string;
  /** such as `patch pods/status` or `get configmaps kruise-configuration in kruise-system` */
  readonly what: string;
  /** base: every installation needs it; none: nobody does; else the optional role that grants it */
  readonly role: string;
  readonly isAllowed: boolean;
}

export interface Facts {
  /** RFC3339, of the clock here */
  readonly now: string;
  /** of the ControllerRevisions, ledgers and the Lease */
  readonly kruiseNamespace: string;
  readonly mutating: Seen<readonly WebhookConfiguration[]>;
  readonly validating: Seen<readonly WebhookConfiguration[]>;
  /** undefined: there is none */
  readonly definition: Seen<Definition | undefined>;
  /** of the SidecarSet that we would install, for comparison */
  readonly ownSchema: SchemaNode;
  readonly sidecarSets: Seen<readonly SidecarSet[]>;
  readonly namespaces: Seen<readonly Namespace[]>;
  /** those that run, or are to */
  readonly pods: Seen<readonly Pod[]>;
  /** of all SidecarSets */
  readonly revisions: Seen<readonly ControllerRevision[]>;
  /** in the namespace of the ledgers */
  readonly configMaps: Seen<readonly ConfigMap[]>;
  /** RFC3339: when a pass renewed its Lease last; undefined: there is none */
  readonly lastPass: Seen<string | undefined>;
  /** of the name that OpenKruise's manager has */
  readonly managers: Seen<readonly Deployment[]>;
  readonly version: Seen<ServerVersion>;
  /** seconds that the API server's clock is ahead of the one here */
  readonly skewSeconds: Seen<number>;
  readonly trial: Seen<Trial>;
  /** of a pod; undefined: its registration can be read, or no SidecarSet selects pods, so none was tried */
  readonly podTrial: Seen<Trial | undefined>;
  readonly probes: readonly Probe[];
  readonly rights: Seen<readonly Right[]>;
  /** optional role → how many objects there are that only it serves */
  readonly optionalObjects: Seen<Readonly<Record<string, number>>>;
  /** of the passes */
  readonly settings: RolloutSettings;
  /** version by node; none where no pass needs to know */
  readonly kubelets: Seen<ReadonlyMap<string, string>>;
  /** by node: `status.declaredFeatures`, from Kubernetes 1.36 on; none where no SidecarSet depends on one */
  readonly declaredFeatures: Seen<ReadonlyMap<string, readonly string[]>>;
  /** the API server serves pods/resize; false also where no pass needs to know */
  readonly isResizeServed: Seen<boolean>;
  /** none without gate RespectDisruptionBudgets */
  readonly disruptionBudgets: Seen<readonly DisruptionBudget[]>;
}

/** A Node of Kubernetes 1.36 or newer. */
export interface DeclaringNode extends KubernetesObject {
  readonly status?: { readonly declaredFeatures?: readonly string[] };
}

export function seenOf<T>(seen: Seen<T>): T | undefined {
  return "value" in seen ? seen.value : undefined;
}
