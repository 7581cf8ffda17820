/** Decides how grave each finding about an installation is. */

/** error: something does not work; warning: something will not, or not as it should; note: good to know. */
export type Severity = "error" | "warning" | "note";

/** Every finding there is. docs/check.md has a heading for each. */
export const SEVERITIES = {
  // whether everything could be looked at
  NotLookedAt: "warning",
  // whether a manifest would be accepted
  InstallRefused: "error",
  // whether API servers call the webhooks
  PodWebhookMissing: "error",
  RegisteredInFiles: "note",
  SidecarSetWebhookMissing: "error",
  PlaceholderAddress: "error",
  NotInForce: "error",
  ApiServerNotAnswered: "error",
  // what they ask about
  SidecarSetNotAsked: "error",
  SidecarSetPartlyAsked: "warning",
  ConditionStale: "error",
  ConditionUnknown: "note",
  EveryPodAsked: "note",
  KubeSystemAsked: "warning",
  // what becomes of pods when there is no answer
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
  // where the webhooks are
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
  // who else is at work
  OpenKruiseActive: "error",
  OpenKruiseWebhooksLeft: "error",
  InjectedTwice: "warning",
  FormerNameRegistered: "warning",
  OtherPodWebhooks: "note",
  // the definition of SidecarSets, and the API server
  DefinitionMissing: "error",
  VersionNotServed: "error",
  VersionNotStored: "warning",
  OldVersionStored: "warning",
  ConversionMissing: "error",
  ConversionElsewhere: "warning",
  SchemaOld: "warning",
  ApiServerOld: "error",
  ApiServerUntested: "note",
  // rights
  RightMissing: "error",
  RightTooWide: "warning",
  OptionalRoleMissing: "warning",
  // passes
  TickNeverRan: "error",
  TickUnknown: "note",
  TickNotRunning: "error",
  NotificationsWait: "warning",
  ClockSkew: "warning",
  LedgerUnreadable: "error",
  ReservationsHeld: "warning",
  LedgerLeft: "note",
  ChangeNotSeen: "warning",
  // SidecarSets
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
  // their pods
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
  /** what to do about it */
  readonly hint: string;
  /** where it is described, in this repository */
  readonly link: string;
}

const DOCS = "docs/check.md";

export function finding(id: FindingId, about: string, message: string, hint: string): Finding {
  return { id, severity: SEVERITIES[id], about, message, hint, link: `${DOCS}#${id.toLowerCase()}` };
}

/** The finding, where it is one. */
export function where(isSo: boolean, found: Finding): readonly Finding[] {
  return isSo ? [found] : [];
}

const NAMED = 3;

/** `a, b, c and 4 more` */
export function someOf(names: readonly string[]): string {
  const more = names.length - NAMED;
  return names.slice(0, NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
