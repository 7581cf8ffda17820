/** Decides what the page says about why a rollout does no more than it does. */

import type { SidecarSet } from "../../api/sidecarset.ts";
import { isPlainNo } from "../gate/gate.ts";
import { lastUndone } from "../halt/undo.ts";
import { counted } from "../lib/counted.ts";
import { CREATED_BEFORE, type PodStanding, type Standing } from "./pod-standing.ts";

export interface Reason {
  /** trouble: somebody has to do something; wait: it goes on by itself; held: as it was asked for */
  readonly kind: "trouble" | "wait" | "held";
  readonly title: string;
  /** one sentence or two: what it is, and what to do */
  readonly text: string;
  /** pods that it is about, in the order of the list */
  readonly pods: readonly { readonly name: string; readonly why: string }[];
}

/** What a decision counted. */
export interface Counted {
  readonly hold: string;
  /** where ordinals are followed: what pods of StatefulSets wait for */
  readonly order?: string;
  /** why the rollout was stopped */
  readonly halt?: string;
  /** why a gate has not allowed the next batch */
  readonly gate?: string;
  /** where owners have budgets: how many pods wait for them, and who is in their way */
  readonly owners?: { readonly waiting: number; readonly full: readonly string[] };
  readonly partition: number;
  readonly selected: number;
  readonly used: number;
  readonly maxUnavailable: number;
  readonly immutableFields: readonly string[];
  readonly problems: readonly { readonly namespace: string; readonly name: string; readonly message: string }[];
}

/** What a container says when it does not come up by itself. Source: kubelet, pkg/kubelet/images and kuberuntime. */
const ERRORS =
  /: (ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|ImageInspectError|RegistryUnavailable|CrashLoopBackOff|CreateContainer\w*Error|RunContainerError|OOMKilled|Error|ContainerCannotRun)$/;

/** Those that need somebody first. */
export function reasonsOf(sidecarSet: SidecarSet, pods: readonly PodStanding[], counted: Counted): readonly Reason[] {
  const all = [
    ...observation(sidecarSet),
    ...troubles(pods, counted),
    ...care(sidecarSet, counted),
    ...missing(pods),
    ...injection(sidecarSet),
    ...holds(pods, counted),
    ...waits(pods, counted),
  ];
  const rank = { trouble: 0, wait: 1, held: 2 };
  return all.toSorted((a, b) => rank[a.kind] - rank[b.kind]);
}

function observation({ metadata, status }: SidecarSet): readonly Reason[] {
  const [generation, seen] = [metadata?.generation ?? 0, status?.observedGeneration ?? 0];
  if (generation <= seen) return [];
  const text = `Its generation is ${generation}, and the last one that a pass has recorded is ${seen}. If this stays, no pass runs: look at the schedule, or at the log of the rollout function.`;
  return [{ kind: "wait", title: "The last change was not taken up yet", text, pods: [] }];
}

function troubles(pods: readonly PodStanding[], { immutableFields, problems }: Counted): readonly Reason[] {
  const failing = pods.filter(({ standing, why }) => standing === "down" && ERRORS.test(why));
  const fixed = ofStanding(pods, "notUpgradable");
  const fields = immutableFields.length > 0 ? ` What changed: ${immutableFields.join(", ")}.` : "";
  return [
    ...reason("trouble", failing, `${count(failing.length, "pod")} cannot start the current version`, [
      "Nothing goes on beyond maxUnavailable until they are ready. Correct the image, or go back to the version before.",
    ]),
    ...reason("trouble", fixed.map(withoutWhy), `${count(fixed.length, "pod")} cannot be updated in place`, [
      `Only images can be changed in a running pod.${fields} Restart their workload to get new pods, or undo the change.`,
    ]),
    ...(problems.length === 0
      ? []
      : [
          {
            kind: "trouble" as const,
            title: `${count(problems.length, "pod")} left alone`,
            text: "What they carry cannot be handled. The others are not held up by them.",
            pods: problems.map(({ namespace, name, message }) => ({ name: `${namespace}/${name}`, why: message })),
          },
        ]),
  ];
}

/** What annotations of the SidecarSet have passes do, or leave. */
function care(sidecarSet: SidecarSet, { hold, halt, gate, owners }: Counted): readonly Reason[] {
  const fact = (kind: Reason["kind"], title: string, text: string): Reason => ({ kind, title, text, pods: [] });
  const undone = lastUndone(sidecarSet);
  const stopped = hold === "unreadable" ? "An annotation cannot be read" : "The rollout was stopped";
  const isOpen = gate !== undefined && isPlainNo(gate);
  return [
    ...(halt === undefined ? [] : [fact("trouble", stopped, `${sentence(halt)}.`)]),
    ...(undone?.isCurrent ? [fact("held", "A release was taken back", `It was ${undone.message}.`)] : []),
    ...(gate === undefined
      ? []
      : [fact(isOpen ? "held" : "trouble", "A gate has not allowed the next batch", `${sentence(gate)}.`)]),
    ...(owners === undefined
      ? []
      : [
          fact(
            "wait",
            `${count(owners.waiting, "pod")} ${owners.waiting === 1 ? "waits" : "wait"} for others of the same owner`,
            `${owners.full.join("; ")}.`,
          ),
        ]),
  ];
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function injection({ spec }: SidecarSet): readonly Reason[] {
  if (!spec.injectionStrategy?.paused) return [];
  const text = "New pods come without its sidecars. Set spec.injectionStrategy.paused to false to go on.";
  return [{ kind: "held", title: "Injection is paused", text, pods: [] }];
}

function missing(pods: readonly PodStanding[]): readonly Reason[] {
  const without = ofStanding(pods, "without");
  const [before, missed] = [
    without.filter(({ why }) => why === CREATED_BEFORE),
    without.filter(({ why }) => why !== CREATED_BEFORE),
  ];
  return [
    ...reason("trouble", missed, `${count(missed.length, "pod")} without the sidecars`, [
      "They match, and were not injected: the webhook was not asked, or not reached. Delete them to get them anew.",
    ]),
    ...reason("held", before.map(withoutWhy), `${count(before.length, "pod")} older than the SidecarSet`, [
      "Sidecars come with the creation of a pod. Restart their workload to get them.",
    ]),
  ];
}

function holds(pods: readonly PodStanding[], { hold, partition }: Counted): readonly Reason[] {
  const waiting = ofStanding(pods, "waiting");
  const left = ofStanding(pods, "notSelected");
  const fact = (title: string, text: string): Reason => ({ kind: "held", title, text, pods: [] });
  return [
    ...(hold === "paused"
      ? [
          fact(
            "Paused",
            `${count(waiting.length, "pod")} would be next. Set spec.updateStrategy.paused to false to go on.`,
          ),
        ]
      : []),
    ...(hold === "NotUpdate"
      ? [
          fact(
            "The update strategy is NotUpdate",
            "Running pods are left as they are, only new ones get the current version.",
          ),
        ]
      : []),
    ...(partition > 0
      ? [
          fact(
            `The partition keeps ${count(partition, "pod")}`,
            "Lower spec.updateStrategy.partition to let more of them go.",
          ),
        ]
      : []),
    ...reason("held", left.map(withoutWhy), `${count(left.length, "pod")} not selected`, [
      "spec.updateStrategy.selector leaves them out: they stay at their version.",
    ]),
  ];
}

const ORDERED = "Pods of StatefulSets are updated one at a time, set after set, highest ordinal first";

function waits(
  pods: readonly PodStanding[],
  { hold, selected, used, maxUnavailable, order }: Counted,
): readonly Reason[] {
  const starting = pods.filter(({ standing, why }) => standing === "down" && !ERRORS.test(why));
  const changing = ofStanding(pods, "changing");
  const budget: Reason = {
    kind: "wait",
    title: `${used} of at most ${counted(maxUnavailable, "pod is", "pods are")} unavailable`,
    text: "The next ones get their turn when these are ready, or when spec.updateStrategy.maxUnavailable is higher.",
    pods: [],
  };
  return [
    ...(hold === "budget" && selected === 0 ? [budget] : []),
    ...(order === undefined ? [] : [{ kind: "wait", title: ORDERED, text: `${order}.`, pods: [] } as const]),
    ...reason("wait", starting, `${count(starting.length, "pod")} not ready yet`, ["They have the current version."]),
    ...reason("wait", changing.map(withoutWhy), `${count(changing.length, "pod")} between two versions`, [
      "Their last change has not come to its end, which the next one waits for.",
    ]),
  ];
}

function ofStanding(pods: readonly PodStanding[], wanted: Standing): readonly PodStanding[] {
  return pods.filter(({ standing }) => standing === wanted);
}

function reason(
  kind: Reason["kind"],
  pods: readonly PodStanding[],
  title: string,
  [text]: readonly [string],
): readonly Reason[] {
  if (pods.length === 0) return [];
  return [{ kind, title, text, pods: pods.map(({ namespace, name, why }) => ({ name: `${namespace}/${name}`, why })) }];
}

/** Where the title has said it. */
function withoutWhy(pod: PodStanding): PodStanding {
  return { ...pod, why: "" };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
