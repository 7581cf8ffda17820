/** Other software that works on the same pods: OpenKruise's manager, and foreign webhooks. */
import { FORMER_WEBHOOK_CONFIGURATION } from "../../../api/names.ts";
import { type Deployment, type Facts, seenOf } from "./facts.ts";
import { type Finding, finding, someOf, where } from "./finding.ts";
import type { Registrations } from "./webhooks.ts";

export function isRunning({ spec, status }: Deployment): boolean {
  return (spec?.replicas ?? 1) > 0 || (status?.readyReplicas ?? 0) > 0;
}

export function checkOthers(facts: Facts, registrations: Registrations | undefined): readonly Finding[] {
  const active = (seenOf(facts.managers) ?? []).filter(isRunning).map(shownName);
  return [
    ...where(
      active.length > 0,
      finding(
        "OpenKruiseActive",
        `Deployment ${someOf(active)}`,
        "OpenKruise's manager runs too: both roll SidecarSets out, each within a budget of its own, so that together they exceed maxUnavailable",
        "sidecarset migrate from-kruise tells the steps",
      ),
    ),
    ...(registrations ? checkWebhooks(registrations, active.length > 0, facts) : []),
  ];
}

function shownName({ metadata }: Deployment): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

function checkWebhooks(
  { pods, openKruise, others }: Registrations,
  isActive: boolean,
  { managers }: Facts,
): readonly Finding[] {
  const injecting = [...pods, ...openKruise.filter(({ webhook }) => webhook.name === "mpod.kb.io")];
  const names = injecting.map(({ configuration, webhook }) => `${configuration}/${webhook.name}`);
  const isLeft = openKruise.length > 0 && !isActive && seenOf(managers) !== undefined;
  return [
    ...where(
      isLeft,
      finding(
        "OpenKruiseWebhooksLeft",
        "registration",
        `OpenKruise's manager does not run, and its webhooks are registered still: what they are asked about is refused or late (${someOf([...new Set(openKruise.map(({ configuration }) => configuration))])})`,
        "kubectl delete mutatingwebhookconfiguration kruise-mutating-webhook-configuration, and validating likewise",
      ),
    ),
    ...where(
      injecting.length > 1 && !isLeft,
      finding(
        "InjectedTwice",
        "registration",
        `${injecting.length} webhooks inject sidecars into the same pods: ${someOf(names)}`,
        "keep one; injecting twice is not always injecting once (docs/compatibility-features.md)",
      ),
    ),
    ...checkFormerName(pods),
    ...where(
      others.length > 0,
      finding(
        "OtherPodWebhooks",
        "registration",
        `webhooks of others may change the same pods: ${someOf(others.map(({ configuration, webhook }) => `${configuration}/${webhook.name}`))}`,
        "where they add containers or labels, see by sidecarset preview and a new pod that both agree",
      ),
    ),
  ];
}

/** Warns about a name that sorts after policy engines and meshes, which then see pods without sidecars. */
function checkFormerName(pods: Registrations["pods"]): readonly Finding[] {
  const former = pods.filter(({ configuration }) => configuration === FORMER_WEBHOOK_CONFIGURATION);
  const isAlone = former.length === pods.length;
  return where(
    former.length > 0,
    isAlone
      ? finding(
          "FormerNameRegistered",
          "registration",
          "the pod webhook is registered under its former name, by which API servers call it after most others: what they judge or change has no sidecars yet",
          "register it again: sidecarset webhooks --url URL | kubectl apply -f -",
        )
      : finding(
          "FormerNameRegistered",
          "registration",
          "the pod webhook is registered under its former name too, so that pods are injected twice",
          `kubectl delete mutatingwebhookconfiguration ${FORMER_WEBHOOK_CONFIGURATION}`,
        ),
  );
}
