/** The severity of each finding about an installation. */

/** error: something fails; warning: something will fail or work badly; note: good to know. */
export type Severity = "error" | "warning" | "note";

/** All findings. docs/check.md has a heading for each. */
export const SEVERITIES = {
  // Could everything be read?
  NotLookedAt: "warning",
  // Would the API server accept the manifest?
  InstallRefused: "error",
  // Do API servers call the webhooks?
  PodWebhookMissing: "error",
  RegisteredInFiles: "note",
  SidecarSetWebhookMissing: "error",
  PlaceholderAddress: "error",
  NotInForce: "error",
  ApiServerNotAnswered: "error",
  // Which requests do they send?
  SidecarSetNotAsked: "error",
  SidecarSetPartlyAsked: "warning",
  ConditionStale: "error",
  ConditionUnknown: "note",
  EveryPodAsked: "note",
  KubeSystemAsked: "warning",
  // The fate of pods without an answer.
  FailsOpen: "note",
  FailsClosed: "note",
  FailsClosedForAll: "warning",
  SidecarSetsUnguarded: "warning",
  WritesNotAnnounced: "note",
  TimeoutLong: "warning",
  TimeoutShort: "warning",
  Reinvoked: "warning",
  SideEffects: "error",
  MatchPolicyExact: "warning",
  // Can the webhooks be reached?
  WebhookUnreachable: "error",
  NotReachableFromHere: "note",
  NotProbed: "note",
  CertificateNotTrusted: "error",
  CertificateNameWrong: "error",
  CertificateExpired: "error",
  CertificateExpiresSoon: "warning",
  CaBundleBroken: "error",
  AnyoneIsAnswered: "error",
  CallerRefused: "error",
  WebhookFailing: "error",
  WebhookSlow: "warning",
  // Who else changes the same pods?
  OpenKruiseActive: "error",
  OpenKruiseWebhooksLeft: "error",
  InjectedTwice: "warning",
  FormerNameRegistered: "warning",
  OtherPodWebhooks: "note",
  // The CRD of SidecarSets, and the API server.
  DefinitionMissing: "error",
  VersionNotServed: "error",
  VersionNotStored: "warning",
  OldVersionStored: "warning",
  ConversionMissing: "error",
  ConversionElsewhere: "warning",
  SchemaOld: "warning",
  ApiServerOld: "error",
  ApiServerUntested: "note",
  // Rights.
  RightMissing: "error",
  RightTooWide: "warning",
  OptionalRoleMissing: "warning",
  // Passes.
  TickNeverRan: "error",
  TickUnknown: "note",
  TickNotRunning: "error",
  NotificationsWait: "warning",
  ClockSkew: "warning",
  LedgerUnreadable: "error",
  ReservationsHeld: "warning",
  LedgerLeft: "note",
  ChangeNotSeen: "warning",
  // SidecarSets.
  HashMissing: "error",
  HashWrong: "error",
  SidecarSetsConflict: "error",
  SelectsNothing: "warning",
  MatchesNoPods: "note",
  BudgetZero: "warning",
  AllAtOnce: "warning",
  PausedLong: "warning",
  RevisionsBeyondLimit: "warning",
  RevisionMissing: "error",
  AnnotationIgnored: "error",
  WaveWithoutNamespaces: "warning",
  PrivilegesShared: "warning",
  FieldsTooNew: "warning",
  NodesLackFeature: "warning",
  // Pods of SidecarSets.
  InjectionMissed: "warning",
  ContainersMissing: "warning",
  ContainerNameTaken: "warning",
  PodsNotUpgradable: "warning",
  PodsRefused: "warning",
  RolloutBlocked: "warning",
  PodsFail: "warning",
} as const satisfies Readonly<Record<string, Severity>>;

export type FindingId = keyof typeof SEVERITIES;

export interface Finding {
  readonly id: FindingId;
  readonly severity: Severity;
  /** such as `SidecarSet log-agent` */
  readonly about: string;
  /** one sentence */
  readonly message: string;
  /** the advice */
  readonly hint: string;
  /** the page of this repository that describes it */
  readonly link: string;
}

const DOCS = "docs/check.md";

export function finding(id: FindingId, about: string, message: string, hint: string): Finding {
  return { id, severity: SEVERITIES[id], about, message, hint, link: `${DOCS}#${id.toLowerCase()}` };
}

/** The finding, if the condition holds. */
export function where(isSo: boolean, found: Finding): readonly Finding[] {
  return isSo ? [found] : [];
}

const NAMED = 3;

/** `a, b, c and 4 more` */
export function someOf(names: readonly string[]): string {
  const more = names.length - NAMED;
  return names.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
