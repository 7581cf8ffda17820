/** `webhooks`: the registration for a cluster, as YAML. */
import { STATIC_PARTS } from "../../../shared/install/webhooks/webhook-configurations.ts";
import { readConfig } from "../../../shared/settings/config.ts";
import type { Command, Input } from "../command.ts";
import { printWebhooks, type WebhooksOptions } from "../manifests.ts";
import type { Session } from "../session.ts";

export const REGISTRATION_OPTIONS: NonNullable<Command["options"]> = [
  { flags: "--url <URL>", about: "where the webhooks answer, https" },
  { flags: "--url-of <PATH=URL>", about: "of a webhook that answers elsewhere; may come several times", isList: true },
  { flags: "--ca-bundle <FILE>", about: "who signed its certificate, PEM; absent: a public authority" },
  { flags: "--path-secrets <FILE>", about: "the secrets of the paths are made from its first line" },
  { flags: "--cluster <NAME>", about: "of several that are served at this URL (docs/several-clusters.md)" },
  {
    flags: "--failure-policy <POLICY>",
    about: "what becomes of pods while the webhook is down: Ignore (default) or Fail",
  },
  { flags: "--from-cluster", about: "API servers ask only about pods that a SidecarSet of now may be meant for" },
  { flags: "--like-openkruise", about: "the names, namespaces and timeouts that OpenKruise has" },
  {
    flags: "--static <PART>",
    about: "where API servers (1.37 or newer) read the registration from a file: file, or cluster for all but that",
    choices: STATIC_PARTS,
  },
  { flags: "--status-hints", about: "API servers tell when pods turn ready, so that rollouts go on at once" },
];

export const WEBHOOKS: Command = {
  name: "webhooks",
  group: "Install it",
  summary: "what to register in the cluster, as YAML for kubectl apply",
  options: REGISTRATION_OPTIONS,
  examples: ["sidecarset webhooks --url https://webhooks.example.com | kubectl apply -f -"],
  run: async (input, session) => {
    session.screen.text(await printWebhooks(registrationOf(input, session)));
    return 0;
  },
};

/** Options of the registration, for `webhooks` and `install`. */
export function registrationOf(input: Input, session: Session): WebhooksOptions {
  return {
    url: input.required("url"),
    urlsOf: input.list("url-of"),
    caBundle: input.text("ca-bundle"),
    pathSecrets: input.text("path-secrets"),
    cluster: input.text("cluster"),
    failurePolicy: input.text("failure-policy"),
    fromCluster: input.isSet("from-cluster") ? () => askCluster(session) : undefined,
    likeOpenKruise: input.isSet("like-openkruise"),
    statusHints: input.isSet("status-hints"),
    staticPart: input.text("static"),
  };
}

/**
 * Gates of the passes, read from their Lease. Webhooks and passes must agree on gates, and a setting here may differ.
 */
async function askCluster(session: Session) {
  const cluster = await session.cluster();
  const { KruisePodReadinessGate: isOfPasses } = await session.passSettings(cluster);
  return { cluster, gatesEveryPod: isOfPasses || readConfig().featureGates.KruisePodReadinessGate };
}
