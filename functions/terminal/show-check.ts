/** The findings of `check` for people. */
import type { CheckReport } from "../../shared/core/inspect/check/check.ts";
import type { Finding, Severity } from "../../shared/core/inspect/check/finding.ts";
import { counted } from "../../shared/go/counted.ts";
import type { Color, Screen } from "./screen.ts";
import { wrap } from "./table.ts";

const MARKS: Readonly<Record<Severity, readonly [string, Color]>> = {
  error: ["✗", "red"],
  warning: ["!", "yellow"],
  note: ["·", "dim"],
};

export function showReport({ findings, counts, looked }: CheckReport, screen: Screen): void {
  for (const kind of Map.groupBy(findings, ({ id }) => id).values()) showKind(kind, screen);
  const { sidecarSets, pods, webhooks, addresses, rights, objects, kindsOfFindings } = looked;
  const total = [counted(counts.error, "error"), counted(counts.warning, "warning"), counted(counts.note, "note")].join(
    ", ",
  );
  const seen =
    objects === undefined
      ? `${counted(sidecarSets, "SidecarSet")}, ${counted(pods, "pod")}, ${counted(webhooks, "webhook")}, ${counted(addresses, "address", "addresses")} and ${counted(rights, "right")}`
      : `${counted(objects, "object")} of the manifest in a dry run, ${counted(webhooks, "webhook")} and ${counted(addresses, "address", "addresses")}`;
  const scope = `Looked at ${seen}, for ${kindsOfFindings} kinds of findings.`;
  screen.line({ text: total, color: "bold" });
  for (const line of wrap(scope, screen.width)) screen.line({ text: line, color: "dim" });
}

/** Findings of one kind that are shown in full, and names of further ones. */
const SHOWN = 3;
const NAMED = 5;

/** One heading and one link for all findings of a kind; a common hint is printed once. */
function showKind(kind: readonly Finding[], screen: Screen): void {
  const [first] = kind;
  if (first === undefined) return;
  const { severity, id, hint, link } = first;
  const [mark, color] = MARKS[severity];
  const title = { text: id, color: "bold" } as const;
  if (kind.length === 1) screen.line({ text: mark, color }, " ", title);
  else screen.line({ text: mark, color }, " ", title, { text: ` (${kind.length} findings)`, color: "dim" });
  const paragraph = (text: string, of?: Color) => {
    for (const line of wrap(text, screen.width - 2)) screen.line("  ", of ? { text: line, color: of } : line);
  };
  const isSameHint = kind.every((one) => one.hint === hint);
  for (const one of kind.slice(0, SHOWN)) {
    paragraph(`${one.about}: ${one.message}`);
    if (!isSameHint) paragraph(`→ ${one.hint}`, "cyan");
  }
  const others = kind.slice(SHOWN);
  const names = others.slice(0, NAMED).map(({ about }) => about);
  if (others.length > 0)
    paragraph(
      `and ${others.length} more: ${names.join(", ")}${others.length > NAMED ? ", …" : ""}; -o json has them all`,
    );
  if (isSameHint) paragraph(`→ ${hint}`, "cyan");
  paragraph(link, "dim");
}
