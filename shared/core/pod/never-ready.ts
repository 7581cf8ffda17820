/** Decides whether pods that have never been ready use budget: they do, as in OpenKruise, unless a SidecarSet's owner says otherwise. */
import type { Pod } from "../../api/kubernetes.ts";
import { IGNORE_NEVER_READY_ANNOTATION } from "../../api/names.ts";
import type { SidecarSet } from "../../api/sidecarset.ts";
import { shownText } from "../../go/shown-text.ts";
import { isNeverReady } from "./was-ready.ts";

/** "true" alone: what widens a budget is not guessed. */
export function ignoresNeverReady(sidecarSet: SidecarSet): boolean {
  return textOf(sidecarSet) === "true";
}

/** No rollout took it down, so none waits for it. */
export function isIgnored(pod: Pod, sidecarSet: SidecarSet): boolean {
  return ignoresNeverReady(sidecarSet) && isNeverReady(pod, sidecarSet);
}

/** One sentence; undefined: the annotation is not there, or can be read. */
export function neverReadyProblem(sidecarSet: SidecarSet): string | undefined {
  const text = textOf(sidecarSet);
  if (text === undefined || text === "true" || text === "false") return undefined;
  return `the annotation ${IGNORE_NEVER_READY_ANNOTATION} says ${shownText(text)}: write true or false; until then pods that were never ready use budget`;
}

function textOf({ metadata }: SidecarSet): string | undefined {
  return metadata?.annotations?.[IGNORE_NEVER_READY_ANNOTATION]?.trim();
}
