/** The page's reasons why a rollout makes no faster progress. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { foreignHint } from "../../pod/failing-pods.ts";
import { renewalText } from "../../pod/workload.ts";
import { BOOK, holdsIn, wordsOf } from "../../rollout/book.ts";
import { undoHint } from "../../rollout/history/history.ts";
import type { Hold } from "../../rollout/hold.ts";
import type { Counted, Severity } from "../../rollout/hold-words.ts";
import { lastUndone } from "../../rollout/rules/halt/undone.ts";
import type { LeftDown } from "../../rollout/select/down-pods.ts";
import { NOTHING_COUNTED } from "../../rollout/summary.ts";
import type { Reason as ReasonName } from "../explain/step.ts";
import { elsewhereHint } from "../explain/trace-updated.ts";
import { whyNotByNewPods } from "../restart-advice.ts";
import { CREATED_BEFORE, NO_WORKLOAD, type PodStanding, type Standing } from "./pod-standing.ts";

/** The reasons; reasons that need a person come first. */
export function reasonsOf(sidecarSet: SidecarSet, pods: readonly PodStanding[], counted: Counted): readonly Reason[] {
  const all = [
    ...observation(sidecarSet),
    ...troubles(sidecarSet, pods, counted),
    ...undone(sidecarSet),
    ...holds(sidecarSet, counted),
    ...missing(sidecarSet, pods),
    ...injection(sidecarSet),
    ...waits(pods),
  ];
  const rank = { trouble: 0, wait: 1, held: 2 };
  return all.toSorted((a, b) => rank[a.kind] - rank[b.kind]);
}

function observation({ metadata, status }: SidecarSet): readonly Reason[] {
  const [generation, seen] = [metadata?.generation ?? 0, status?.observedGeneration ?? 0];
  if (generation <= seen) return [];
  const text = `Its generation is ${generation}, and the last one that a pass has recorded is ${seen}. If this stays, no pass runs: look at the schedule, or at the log of the rollout function.`;
  return [{ reason: "ChangeNotSeen", kind: "wait", title: "The last change was not taken up yet", text, pods: [] }];
}

function troubles(sidecarSet: SidecarSet, pods: readonly PodStanding[], counted: Counted): readonly Reason[] {
  const failing = ofStanding(pods, "failing").filter(({ isForeign }) => !isForeign);
  const foreign = ofStanding(pods, "failing").filter(({ isForeign }) => isForeign);
  const name = sidecarSet.metadata?.name ?? "";
  const fixed = ofStanding(pods, "notUpgradable");
  const {
    immutableFields,
    problems,
    rules: { halt },
    leftDown,
  } = counted;
  const fields = immutableFields.length > 0 ? ` What changed: ${immutableFields.join(", ")}.` : "";
  return [
    ...reason(
      ["ContainerFailing", "trouble"],
      failing,
      `${count(failing.length, "pod")} cannot start the current version`,
      ["Nothing goes on beyond maxUnavailable until they are ready.", undoHint(name, halt?.hasWayBack)],
    ),
    ...reason(
      ["ContainerFailing", "trouble"],
      foreign,
      `${count(foreign.length, "pod")} with a failure that is not the release's`,
      ["Nothing goes on beyond maxUnavailable until they are ready.", foreignHint(foreign[0]?.why ?? "", name)],
    ),
    ...(leftDown ? [sinceOlder(leftDown)] : []),
    ...reason(
      areReplaced(counted) ? [markOf("nothingWaits")[0], "wait"] : markOf("nothingWaits"),
      fixed.map(withoutWhy),
      `${count(fixed.length, "pod")} cannot be updated in place`,
      areReplaced(counted)
        ? [`Passes replace them.${fields}`]
        : [
            `Only images can be changed in a running pod.${fields}`,
            `undo the change, or ${renewal(fixed, sidecarSet, "newest")}`,
          ],
    ),
    ...reason(
      markOf("leftAlone"),
      problems.map(({ message, ...pod }) => ({ ...pod, why: message })),
      `${count(problems.length, "pod")} left alone`,
      ["What they carry cannot be handled. The others are not held up by them."],
    ),
  ];
}

/** True when passes replace every pod that cannot be updated in place. */
function areReplaced({ notUpgradable, rules: { replacement, restarts } }: Counted): boolean {
  return notUpgradable === 0 && replacement !== undefined && (restarts?.held.length ?? 0) === 0;
}

function sinceOlder({ areFailing, count: total, pods }: LeftDown): Reason {
  return {
    ...(areFailing ? { reason: "ContainerFailing", kind: "trouble" } : { reason: "PodNotReady", kind: "wait" }),
    title: `${count(total, "pod")} down since an older release`,
    text: "The newest version takes the place of theirs when the rollout reaches them.",
    pods: pods.map(({ namespace, name, why }) => ({ name: `${namespace}/${name}`, why })),
  };
}

function injection({ spec }: SidecarSet): readonly Reason[] {
  if (!spec.injectionStrategy?.paused) return [];
  const text = "New pods come without its sidecars. Set spec.injectionStrategy.paused to false to go on.";
  return [{ reason: "InjectionPaused", kind: "held", title: "Injection is paused", text, pods: [] }];
}

function missing(sidecarSet: SidecarSet, pods: readonly PodStanding[]): readonly Reason[] {
  const without = ofStanding(pods, "without");
  const [before, missed] = [
    without.filter(({ why }) => why === CREATED_BEFORE),
    without.filter(({ why }) => why !== CREATED_BEFORE),
  ];
  return [
    ...reason(["WebhookMissed", "trouble"], missed, `${count(missed.length, "pod")} without the sidecars`, [
      "They match, and were not injected: the webhook was not asked, or not reached.",
      renewal(missed, sidecarSet, "any"),
    ]),
    ...reason(
      ["CreatedBeforeSidecarSet", "held"],
      before.map(withoutWhy),
      `${count(before.length, "pod")} older than the SidecarSet`,
      ["Sidecars come with the creation of a pod.", renewal(before, sidecarSet, "any")],
    ),
  ];
}

/** The present holds, from the book of holds. */
function holds({ metadata }: SidecarSet, counted: Counted): readonly Reason[] {
  return holdsIn(counted)
    .filter((hold) => !BOOK[hold].isToldWithPods)
    .flatMap((hold) => {
      const { cause, severity, title, sentence: text, next } = wordsOf(hold, counted, metadata?.name ?? "");
      if (severity === "none") return [];
      return [{ reason: cause, kind: severity, title, text: `${sentence(text)}.`, next, pods: [] }];
    });
}

function undone(sidecarSet: SidecarSet): readonly Reason[] {
  const last = lastUndone(sidecarSet);
  if (!last?.isCurrent) return [];
  const text = `It was ${last.message}.`;
  return [{ reason: "ReleaseUndone", kind: "held", title: "A release was taken back", text, pods: [] }];
}

/** Reasons that concern single pods: they wait, or the selector leaves them out. */
function waits(pods: readonly PodStanding[]): readonly Reason[] {
  const starting = ofStanding(pods, "down").filter((pod) => !pod.isHeldElsewhere);
  const kept = ofStanding(pods, "down").filter((pod) => pod.isHeldElsewhere);
  const changing = ofStanding(pods, "changing");
  const left = ofStanding(pods, "notSelected");
  return [
    ...reason(markOf("notSelected"), left.map(withoutWhy), `${count(left.length, "pod")} not selected`, [
      "spec.updateStrategy.selector leaves them out: they stay at their version.",
    ]),
    ...reason(["PodNotReady", "trouble"], kept, `${count(kept.length, "pod")} kept from being ready`, [
      "They have the current version.",
      kept[0] && elsewhereHint({ metadata: kept[0] }),
    ]),
    ...reason(["PodNotReady", "wait"], starting, `${count(starting.length, "pod")} not ready yet`, [
      "They have the current version.",
    ]),
    ...reason(markOf("inFlight"), changing.map(withoutWhy), `${count(changing.length, "pod")} between two versions`, [
      "Their last change has not come to its end, which the next one waits for.",
    ]),
  ];
}

/** The book's name and severity of a hold. */
function markOf(hold: Hold): Mark {
  const { cause, severity } = wordsOf(hold, { ...NOTHING_COUNTED, hold }, "");
  return [cause, severity === "none" ? "held" : severity];
}

function ofStanding(pods: readonly PodStanding[], wanted: Standing): readonly PodStanding[] {
  return pods.filter(({ standing }) => standing === wanted);
}

function reason(
  [name, kind]: Mark,
  pods: readonly Pick<PodStanding, "namespace" | "name" | "why">[],
  title: string,
  [text, next]: readonly [string, (string | undefined)?],
): readonly Reason[] {
  if (pods.length === 0) return [];
  return [
    {
      reason: name,
      kind,
      title,
      text,
      next,
      pods: pods.map(({ namespace, name, why }) => ({ name: `${namespace}/${name}`, why })),
    },
  ];
}

/** The command that recreates the pods, by workload, or the reason why new pods would lack `promised`. */
function renewal(pods: readonly PodStanding[], sidecarSet: SidecarSet, promised: "newest" | "any"): string {
  const why = whyNotByNewPods(sidecarSet, promised);
  if (why !== undefined) return why;
  return renewalText(
    pods.map(({ namespace, name, workload }) => {
      const [, own = ""] = workload.split(/\/(.*)/);
      return { namespace, name, workload: own === NO_WORKLOAD ? "" : own };
    }),
  );
}

/** Removes the clause that the title repeats. */
function withoutWhy(pod: PodStanding): PodStanding {
  return { ...pod, why: "" };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** A reason on the page why a rollout makes no faster progress. */
export interface Reason {
  /** name of the reason in docs/reasons.md */
  readonly reason: ReasonName;
  /** trouble: a person has to act; wait: the rollout continues by itself; held: a user asked for the hold */
  readonly kind: Exclude<Severity, "none">;
  readonly title: string;
  /** the reason in one or two sentences */
  readonly text: string;
  /** the advice, written only by this code, because readers can copy commands; absent: none, or `text` has it */
  readonly next?: string | undefined;
  /** the pods that the reason concerns, in the list's order */
  readonly pods: readonly { readonly name: string; readonly why: string }[];
}

/** Name and severity of a reason. */
type Mark = readonly [ReasonName, Reason["kind"]];

export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
