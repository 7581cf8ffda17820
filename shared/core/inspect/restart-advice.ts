/** Finds out whether new pods would get the sidecars, and only then gives the command that recreates pods. */
import type { Pod } from "../../api/kubernetes.ts";
import { IGNORE_MISSED_ANNOTATION, MIRROR_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { EXEMPT_NAMESPACES } from "../injection/match/matches.ts";
import { renewalHint } from "../pod/workload.ts";
import { wantedRevision } from "../sidecarset/revision/wanted-revision.ts";

/** The promise of the advice: the newest sidecars, or sidecars of any revision for a pod that has none. */
type Promised = "newest" | "any";

/** Returns the reason why API servers would not ask the webhook about such a new pod; undefined: they would ask it. */
export type Unasked = (pod: Pod) => string | undefined;

interface AdviceFacts {
  readonly promised?: Promised;
  /** tells why no webhook is asked; absent: the registrations are unknown */
  readonly unasked?: Unasked | undefined;
}

/** The command that recreates `pods`, or the reason why it would not help. */
export function restartAdvice(
  pods: readonly Pod[],
  sidecarSet: SidecarSet,
  { promised = "newest", unasked }: AdviceFacts = {},
): string {
  const why = whyNotByNewPods(sidecarSet, promised);
  if (why !== undefined) return why;
  const [first] = pods;
  const whyNever = (pod: Pod) => whyNeverInjected(pod) ?? unasked?.(pod);
  const helped = pods.filter((pod) => whyNever(pod) === undefined);
  if (first === undefined || helped.length > 0) return renewalHint(helped);
  return `no new pod would get sidecars: ${whyNever(first)}`;
}

/** The reason why new pods lack what is promised, with the first thing to change; undefined: they get it. */
export function whyNotByNewPods(sidecarSet: SidecarSet, promised: Promised = "newest"): string | undefined {
  const { injectionStrategy, customVersion: current } = sidecarSet.spec;
  if (injectionStrategy?.paused)
    return "set spec.injectionStrategy.paused to false first: until then a new pod comes without the sidecars";
  const { revisionName, customVersion } = wantedRevision(sidecarSet) ?? {};
  const pinned = revisionName ?? customVersion;
  if (promised === "any" || pinned === undefined) return undefined;
  const newest = revisionName === undefined ? current : sidecarSet.status?.latestRevision;
  if (pinned === newest) return undefined;
  return `take spec.injectionStrategy.revision away first: until then new pods get the revision ${plainOrQuoted(pinned)}, not the newest`;
}

/** Quotes everything except a single word, so that nobody takes it for this program's words. */
function plainOrQuoted(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : JSON.stringify(text);
}

/** The reason why the pod needs no sidecars; undefined: it should have sidecars. */
export function whyNoSidecars({ metadata }: Pod): string | undefined {
  const { [MIRROR_ANNOTATION]: mirror, [IGNORE_MISSED_ANNOTATION]: ignored } = metadata?.annotations ?? {};
  if (mirror !== undefined) return "it is the mirror of a static pod";
  return ignored === "true" ? "it is meant to stay as it is (ignore-missed)" : undefined;
}

/** The reason why a new pod in its place would have no sidecars; undefined: it would have them. */
export function whyNeverInjected(pod: Pod): string | undefined {
  const { namespace = "" } = pod.metadata ?? {};
  const why = whyNoSidecars(pod);
  if (why !== undefined) return why;
  return EXEMPT_NAMESPACES.includes(namespace) ? `API servers ask no webhook about pods of ${namespace}` : undefined;
}
