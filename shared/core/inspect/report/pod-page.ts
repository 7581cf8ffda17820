/** Decides how the explanation of one pod reads as a page: every rule in the order in which it is looked at. */
import type { Step, Verdict } from "../explain/step.ts";
import { document, type Frame } from "./document.ts";
import { type Html, html } from "./html.ts";

export interface PodExplanation {
  readonly sidecarSet: string;
  readonly namespace: string;
  readonly name: string;
  readonly steps: readonly Step[];
}

/** Mark, what it says to who cannot see it, and how grave it looks. */
const MARKS: Readonly<Record<Verdict, readonly [string, string, string]>> = {
  ok: ["✓", "nothing in the way", "fine"],
  note: ["·", "good to know", "held"],
  wait: ["…", "goes on by itself", "wait"],
  stop: ["✗", "needs you to do something", "trouble"],
};

/** Pure. The whole document, as text. */
export function renderPodPage(explanation: PodExplanation, frame: Omit<Frame, "title">): string {
  const { sidecarSet, namespace, name, steps } = explanation;
  return document(
    { ...frame, title: `${name} · ${sidecarSet}` },
    html`<section class="set" aria-labelledby="pod"><h2 id="pod">${name}</h2>
<p class="lead">Pod in the namespace ${namespace}, and the SidecarSet ${sidecarSet}.</p>
<div class="cards"><section class="card wide"><h3>Why it is as it is</h3><ul class="reasons">${steps.map(
      ({ verdict, reason, message, hint }) => {
        const [mark, said, kind] = MARKS[verdict];
        return html`<li class="why ${kind}"><strong><span role="img" aria-label="${said}">${mark}</span> ${reason}</strong><p>${message}.</p>${hint !== undefined && html`<p>To do: ${withCommands(hint)}</p>`}</li>`;
      },
    )}</ul></section></div></section>`,
  );
}

// Which words of an advice are a command, so that readers can copy it and nothing else.

/**
 * Something quoted, which is somebody's text and no command; or a command, and what separates it from the words behind it.
 * Punctuation ends a command, and so does a word that never is part of one.
 */
const QUOTED_OR_COMMAND =
  /"(?:[^"\\]|\\.)*"|\b((?:kubectl|sidecarset) (?=[a-z-])(?:(?![,;] | [(#]| (?:or|says|shows|tells|makes|names|when) ).)+)(?:[,;] | # )?/g;

/**
 * The advice as a sentence, with each command of kubectl and sidecarset in a box of its own.
 * @param advice in words of ours, because whatever looks like a command in it can be copied
 */
export function withCommands(advice: string): Html {
  const parts: Html[] = [];
  let from = 0;
  for (const { 0: all, 1: command, index } of advice.matchAll(QUOTED_OR_COMMAND)) {
    if (command === undefined) continue;
    parts.push(html`${advice.slice(from, index)}<span class="cmd"><code>${command}</code></span>`);
    from = index + all.length;
  }
  const rest = advice.slice(from);
  return html`${parts}${rest}${rest !== "" && "."}`;
}
