/** The check of a manifest before it is applied: the findings as if it were installed already. */
import { type CheckReport, checkInstallation } from "./check.ts";
import type { Facts } from "./facts.ts";
import { type Finding, type FindingId, finding } from "./finding.ts";

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
