/** Decides nothing: what the page says of a rollout that does no more than it does. */

import type { Severity } from "../../rollout/hold-words.ts";
import type { Reason as ReasonName } from "../explain/step.ts";

export interface Reason {
  /** as explanations call it: docs/reasons.md */
  readonly reason: ReasonName;
  /** trouble: needs you to do something; wait: it goes on by itself; held: as it was asked for */
  readonly kind: Exclude<Severity, "none">;
  readonly title: string;
  /** one sentence or two: what it is */
  readonly text: string;
  /** what to do, in words of ours, because commands in it can be copied; absent: nothing, or the text says it */
  readonly next?: string | undefined;
  /** pods that it is about, in the order of the list */
  readonly pods: readonly { readonly name: string; readonly why: string }[];
}

/** Which reason, and how grave. */
export type Mark = readonly [ReasonName, Reason["kind"]];

export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
