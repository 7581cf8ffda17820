/** `install` and `uninstall`: every object that a cluster needs, and the objects to remove again, as YAML. */

import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { argoCdConfigMap } from "../../../shared/install/argocd.ts";
import { installation } from "../../../shared/install/manifests.ts";
import { writeYamlDocuments } from "../../../shared/kube/yaml.ts";
import type { Command } from "../command.ts";
import { printInstallation } from "../manifests.ts";
import { REGISTRATION_OPTIONS, registrationOf } from "./webhooks.ts";

export const INSTALL: Command = {
  name: "install",
  group: "Install it",
  summary: "everything a cluster needs, as YAML for kubectl apply: namespace, roles, policies, definition, webhooks",
  details: "The functions themselves run outside of the cluster: docs/deploy.md. Nothing is written but to stdout.",
  options: [
    ...REGISTRATION_OPTIONS,
    {
      flags: "--argocd",
      about:
        "instead: the health check and the actions of SidecarSets for Argo CD's ConfigMap, for kubectl apply --server-side",
    },
    {
      flags: "--without-fence",
      about: "leave out the policies by which API servers refuse the reconciler what no rollout writes",
    },
    {
      flags: "--fence-annotations <KEYS>",
      about: "what SidecarSets may patch into pods that run: example.com/mesh,logs.example.com/ (a prefix ends with /)",
    },
  ],
  examples: [
    "sidecarset install --url https://webhooks.example.com | kubectl apply -f -",
    "sidecarset install --argocd | kubectl apply --server-side -f -",
    "sidecarset install --url https://webhooks.example.com --static file > sidecarset.yaml",
  ],
  run: async (input, session) => {
    if (input.isSet("argocd")) {
      session.screen.text(writeYamlDocuments([argoCdConfigMap()]));
      return 0;
    }
    const fence = { isUnfenced: input.isSet("without-fence"), fenceAnnotations: input.text("fence-annotations") };
    session.screen.text(await printInstallation({ ...registrationOf(input, session), ...fence }));
    return 0;
  },
};

/** Deletion needs only names, so any address will do. */
const ADDRESS = { url: "https://sidecarset-webhooks.invalid" };

/** The address that converts SidecarSets no longer answers, so reading them as v1alpha1 would fail. */
const NO_CONVERSION = `the definition stays, and still names the webhook that is removed for conversions from v1alpha1; to take that out: kubectl patch crd sidecarsets.apps.kruise.io --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`;

export const UNINSTALL: Command = {
  name: "uninstall",
  group: "Install it",
  summary: "what to take away again, as YAML for kubectl delete: webhooks and roles",
  details:
    "Pods keep the sidecars that they have. What the definition needs is said on stderr. SidecarSets, their revisions and the namespace stay, unless --all is given: the definition takes every SidecarSet with it.",
  options: [{ flags: "--all", about: "the definition, every SidecarSet, and the namespace too" }],
  examples: ["sidecarset uninstall | kubectl delete --ignore-not-found -f -"],
  run: async (input, session) => {
    const isKept = ({ kind }: KubernetesObject) => kind === "CustomResourceDefinition" || kind === "Namespace";
    const objects = installation(ADDRESS).filter((one) => input.isSet("all") || !isKept(one));
    // Reversed: registrations are deleted before the webhooks that answer them.
    const names = objects.toReversed().map(({ apiVersion, kind, metadata: { name, namespace } = {} }) => ({
      apiVersion,
      kind,
      metadata: { name, ...(namespace ? { namespace } : {}) },
    }));
    session.screen.text(writeYamlDocuments(names));
    if (!input.isSet("all")) session.screen.warn(NO_CONVERSION);
    return 0;
  },
};
