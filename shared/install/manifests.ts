/** All objects of an installation: in TypeScript for installers, as YAML files for readers. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { RECREATE_REQUEST_KIND, SIDECARSET_GROUP } from "../api/names.ts";
import type { Resource } from "../kube/port.ts";
import { writeYamlDocuments } from "../kube/yaml.ts";
import { MUTATE_STATEFUL_SET_PATH, VALIDATE_STATEFUL_SET_PATH } from "../webhook/server/paths.ts";
import { sidecarSetCrd } from "./crd/sidecarset-crd.ts";
import { containerRecreateRequestSchema, statefulSetCrd } from "./crd/stateful-set-crd.ts";
import { OBJECT_POLICIES, policyObjects } from "./fence/fence-objects.ts";
import { podPolicy } from "./fence/fence-pods.ts";
import { accessObjects, kruiseNamespace, peopleObjects } from "./rbac/access.ts";
import { optionalAccess } from "./rbac/optional-access.ts";
import { clientConfig, type WebhookAddress } from "./webhooks/address.ts";
import { statusHintsWebhook } from "./webhooks/status-hints.ts";
import {
  formerConfiguration,
  inFile,
  type RegistrationOptions,
  recreateRequestWebhook,
  replacedByFile,
  webhookConfigurations,
} from "./webhooks/webhook-configurations.ts";

/** The address to replace in the checked-in files; .invalid never resolves. */
const PLACEHOLDER: WebhookAddress = { url: "https://sidecarset-webhooks.invalid" };

const NOTE = "# Written by `node infra/generate.ts`: change the TypeScript beside it.\n";
const ADDRESS_NOTE = `# Replace ${PLACEHOLDER.url}, and add caBundle beside url unless its certificate is publicly trusted.\n`;

/** Relative path → YAML text, in the order to apply them in. */
export function manifestFiles(): ReadonlyMap<string, string> {
  return new Map([
    ["infra/rbac/namespace.yaml", NOTE + yaml([kruiseNamespace()])],
    ["infra/rbac/access.yaml", NOTE + yaml([...accessObjects(), ...peopleObjects()])],
    ["infra/rbac/fence.yaml", NOTE + yaml(fenceObjects())],
    ["infra/crd/sidecarsets.yaml", NOTE + ADDRESS_NOTE + yaml([sidecarSetCrd(PLACEHOLDER)])],
    ["infra/webhooks/webhook-configurations.yaml", NOTE + ADDRESS_NOTE + yaml(registrations(PLACEHOLDER))],
  ]);
}

/** Relative path and YAML text of objects that only certain features need. */
export function optionalFiles(): ReadonlyMap<string, string> {
  const access = optionalAccess().map(({ feature, purpose, objects }): [string, string] => [
    `infra/rbac/optional/${feature}.yaml`,
    `${NOTE}# Apply it only ${purpose}\n${yaml(objects)}`,
  ]);
  return new Map([
    ...access,
    ["infra/crd/containerrecreaterequests.yaml", NOTE + yaml([containerRecreateRequestCrd()])],
    ["infra/crd/statefulsets.yaml", NOTE + yaml([statefulSetCrd()])],
    ["infra/webhooks/stateful-sets.yaml", NOTE + ADDRESS_NOTE + yaml(statefulSetWebhooks(PLACEHOLDER))],
    ["infra/webhooks/container-recreate.yaml", NOTE + ADDRESS_NOTE + yaml([recreateRequestWebhook(PLACEHOLDER)])],
    ["infra/webhooks/status-hints.yaml", NOTE + ADDRESS_NOTE + yaml([statusHintsWebhook(PLACEHOLDER)])],
  ]);
}

/** The additional objects for ContainerRecreateRequests, in the order of their creation. */
export function recreateInstallation(address: WebhookAddress): readonly KubernetesObject[] {
  const access = optionalAccess().find(({ feature }) => feature === "container-recreate");
  return [...(access?.objects ?? []), containerRecreateRequestCrd(), recreateRequestWebhook(address)];
}

/** The additional objects for Advanced StatefulSets, in the order of their creation. */
export function statefulSetInstallation(address: WebhookAddress): readonly KubernetesObject[] {
  const access = optionalAccess().find(({ feature }) => feature === "ordered-sets");
  return [...(access?.objects ?? []), statefulSetCrd(), ...statefulSetWebhooks(address)];
}

/** YAML text of the webhook registrations as OpenKruise has them. */
export function registrationsLikeOpenKruise(): string {
  return ADDRESS_NOTE + yaml(registrations(PLACEHOLDER, { likeOpenKruise: true }));
}

interface InstallationOptions extends RegistrationOptions {
  /** true: without the policies that refuse the reconciler writes that no rollout makes */
  readonly isUnfenced?: boolean;
  /** annotations that SidecarSets may patch into running pods despite these policies; a prefix ends with a slash */
  readonly fenceAnnotations?: readonly string[];
}

/** The same objects for a webhook that answers at `address`, in the order to create them in. */
export function installation(
  address: WebhookAddress,
  { isUnfenced = false, fenceAnnotations, ...options }: InstallationOptions = {},
): readonly KubernetesObject[] {
  const fence = isUnfenced ? [] : fenceObjects(fenceAnnotations);
  const access = [kruiseNamespace(), ...accessObjects(), ...peopleObjects(), ...fence];
  return [...access, sidecarSetCrd(address), ...registrations(address, options)];
}

/** The registrations, and an empty one under the former name. */
export function registrations(address: WebhookAddress, options: RegistrationOptions = {}): readonly KubernetesObject[] {
  const [mutating, validating] = webhookConfigurations(address, options);
  if (options.staticPart === "file") return [inFile(mutating)];
  const asked = options.staticPart === "cluster" ? replacedByFile(mutating) : mutating;
  return [asked, validating, ...(options.likeOpenKruise ? [] : [formerConfiguration()])];
}

function yaml(objects: readonly KubernetesObject[]): string {
  return writeYamlDocuments(objects);
}

// The ContainerRecreateRequest's CustomResourceDefinition: two versions with the same spec, v1beta1 is stored.

interface CustomResourceDefinition extends KubernetesObject {
  readonly spec: { readonly versions: readonly object[] };
}

const column = (name: string, type: string, jsonPath: string) => ({ name, type, jsonPath });

const printerColumns = [
  column("PHASE", "string", ".status.phase"),
  column("POD", "string", ".spec.podName"),
  column("NODE", "string", ".metadata.labels.crr\\.apps\\.kruise\\.io/node-name"),
  column("AGE", "date", ".metadata.creationTimestamp"),
];

function version(name: "v1alpha1" | "v1beta1") {
  return {
    name,
    served: true,
    storage: name === "v1beta1",
    schema: { openAPIV3Schema: containerRecreateRequestSchema(name) },
    subresources: { status: {} },
    additionalPrinterColumns: printerColumns,
  };
}

/** No conversion webhook: the versions differ only in status fields that v1alpha1 lacks. */
export function containerRecreateRequestCrd(): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `containerrecreaterequests.${SIDECARSET_GROUP}` },
    spec: {
      group: SIDECARSET_GROUP,
      names: {
        kind: RECREATE_REQUEST_KIND,
        listKind: `${RECREATE_REQUEST_KIND}List`,
        plural: "containerrecreaterequests",
        singular: "containerrecreaterequest",
        shortNames: ["crr"],
      },
      scope: "Namespaced",
      conversion: { strategy: "None" },
      versions: [version("v1alpha1"), version("v1beta1")],
    },
  } as CustomResourceDefinition;
}

// A fence around the reconciler: API servers refuse writes that its roles permit but no pass makes. Roles name kinds;
// these policies check the content, so that a stolen token is worth no more than a rollout.

/** Policies and bindings. `annotations`: SidecarSets may patch these into running pods; a prefix ends with a slash. */
export function fenceObjects(annotations: readonly string[] = []): readonly KubernetesObject[] {
  return [podPolicy(annotations), ...OBJECT_POLICIES].flatMap(policyObjects);
}

// Optional: the API server's requests about Advanced StatefulSets before it stores them. Applied with their CRD.

/** Fail: a set stored without its defaults, or against the rules, would not be reconciled as intended. */
const COMMON = {
  failurePolicy: "Fail",
  matchPolicy: "Equivalent",
  sideEffects: "None",
  timeoutSeconds: 5,
  admissionReviewVersions: ["v1", "v1beta1"],
};

function rules(...operations: readonly string[]) {
  return [{ operations, apiGroups: [SIDECARSET_GROUP], apiVersions: ["v1beta1"], resources: ["statefulsets"] }];
}

function configuration(prefix: "Mutating" | "Validating", webhook: object): KubernetesObject {
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: `${prefix}WebhookConfiguration`,
    metadata: { name: `sidecarset-stateful-sets-${prefix.toLowerCase()}-webhook-configuration` },
    ...{ webhooks: [webhook] },
  };
}

/** The webhooks have OpenKruise's names. */
function statefulSetWebhooks(address: WebhookAddress): readonly KubernetesObject[] {
  const mutating = {
    name: "mstatefulset.kb.io",
    clientConfig: clientConfig(address, MUTATE_STATEFUL_SET_PATH),
    rules: rules("CREATE", "UPDATE"),
    reinvocationPolicy: "Never",
    ...COMMON,
  };
  const validating = {
    name: "vstatefulset.kb.io",
    clientConfig: clientConfig(address, VALIDATE_STATEFUL_SET_PATH),
    rules: rules("CREATE", "UPDATE", "DELETE"),
    ...COMMON,
  };
  return [configuration("Mutating", mutating), configuration("Validating", validating)];
}

/** The resource of an object's kind. It has a regular plural, as all installed kinds have. */
export function installedResource({ apiVersion = "", kind = "", metadata }: KubernetesObject): Resource {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return {
    group,
    version,
    plural: `${kind.toLowerCase()}s`.replace(/ys$/, "ies"),
    namespaced: metadata?.namespace !== undefined,
  };
}
