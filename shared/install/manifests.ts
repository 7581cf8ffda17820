/** Everything a cluster needs of us: in TypeScript for who installs it, as YAML files for who reads or applies them. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import { writeYamlDocuments } from "../kube/yaml.ts";
import { containerRecreateRequestCrd } from "./crd/container-recreate-request-crd.ts";
import { sidecarSetCrd } from "./crd/sidecarset-crd.ts";
import { statefulSetCrd } from "./crd/stateful-set-crd.ts";
import { fenceObjects } from "./fence/fence.ts";
import { accessObjects, kruiseNamespace, peopleObjects } from "./rbac/access.ts";
import { optionalAccess } from "./rbac/optional-access.ts";
import type { WebhookAddress } from "./webhooks/address.ts";
import { statefulSetWebhooks } from "./webhooks/stateful-sets.ts";
import { statusHintsWebhook } from "./webhooks/status-hints.ts";
import {
  emptiedConfiguration,
  type RegistrationOptions,
  recreateRequestWebhook,
  webhookConfigurations,
} from "./webhooks/webhook-configurations.ts";

/** What to replace in the checked-in files; .invalid never resolves. */
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

/** The same for what is applied only by those who use a feature that needs it. */
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

/** What ContainerRecreateRequests need beside an installation, in the order to create it in. */
export function recreateInstallation(address: WebhookAddress): readonly KubernetesObject[] {
  const access = optionalAccess().find(({ feature }) => feature === "container-recreate");
  return [...(access?.objects ?? []), containerRecreateRequestCrd(), recreateRequestWebhook(address)];
}

/** What Advanced StatefulSets need beside an installation, in the order to create it in. */
export function statefulSetInstallation(address: WebhookAddress): readonly KubernetesObject[] {
  const access = optionalAccess().find(({ feature }) => feature === "ordered-sets");
  return [...(access?.objects ?? []), statefulSetCrd(), ...statefulSetWebhooks(address)];
}

/** YAML text of the webhook registrations as OpenKruise has them. */
export function registrationsLikeOpenKruise(): string {
  return ADDRESS_NOTE + yaml(registrations(PLACEHOLDER, { likeOpenKruise: true }));
}

interface InstallationOptions extends RegistrationOptions {
  /** without the policies that refuse the reconciler what no rollout writes */
  readonly isUnfenced?: boolean;
  /** that SidecarSets may patch into pods which run, in spite of those policies; a prefix ends with a slash */
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

/** What API servers ask about, and under the former name nothing. */
export function registrations(address: WebhookAddress, options: RegistrationOptions = {}): readonly KubernetesObject[] {
  const emptied = options.likeOpenKruise ? [] : [emptiedConfiguration()];
  return [...webhookConfigurations(address, options), ...emptied];
}

function yaml(objects: readonly KubernetesObject[]): string {
  return writeYamlDocuments(objects);
}
