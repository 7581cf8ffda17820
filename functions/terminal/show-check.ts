/** What `check` found, as a person reads it. */
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
  for (const one of findings) showFinding(one, screen);
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

function showFinding({ severity, id, about, message, hint, link }: Finding, screen: Screen): void {
  const [mark, color] = MARKS[severity];
  screen.line({ text: mark, color }, " ", { text: id, color: "bold" });
  const paragraph = (text: string, of?: Color) => {
    for (const line of wrap(text, screen.width - 2)) screen.line("  ", of ? { text: line, color: of } : line);
  };
  paragraph(`${about}: ${message}`);
  paragraph(`→ ${hint}`, "cyan");
  paragraph(link, "dim");
}
