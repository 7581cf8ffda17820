/** Decides which words of an advice are a command, so that readers can copy it and nothing else. */
import { type Html, html } from "./html.ts";

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
