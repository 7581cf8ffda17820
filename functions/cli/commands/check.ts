/** `check`: what is wrong with an installation, or will be. */

import { checkBeforeInstall } from "../../../shared/core/inspect/check/before-install.ts";
import { type CheckReport, checkInstallation } from "../../../shared/core/inspect/check/check.ts";
import type { Finding, Severity } from "../../../shared/core/inspect/check/finding.ts";
import { counted } from "../../../shared/go/counted.ts";
import type { Command, Input } from "../command.ts";
import { readBeforeInstall } from "../input/before-install.ts";
import { readCheckFacts } from "../input/check-facts.ts";
import type { Session } from "../session.ts";
import type { Color, Screen } from "../terminal/screen.ts";
import { wrap } from "../terminal/table.ts";

const WARNINGS = 3;
const ERRORS = 4;

export const CHECK: Command = {
  name: "check",
  group: "Install it",
  summary: "whether the installation works: webhooks, certificates, rights, passes, SidecarSets and their pods",
  details:
    "Reads the cluster, knocks at the registered addresses without a proof of who asks, and has the API server create a SidecarSet in a dry run. Nothing is written. docs/check.md describes every finding.",
  options: [
    {
      flags: "--pre <FILE>",
      about: "before an install: whether what install printed would be accepted and could work; - is stdin",
    },
  ],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset check",
    "sidecarset check -o json | jq -r '.findings[].id'",
    "sidecarset install --url https://webhooks.example.com | sidecarset check --pre -",
  ],
  exits: [`${WARNINGS} warnings, and no error`, `${ERRORS} errors`],
  run: async (input, session) => {
    const report = withoutPathSecrets(await reportOf(input, session));
    session.print(report, (screen) => showReport(report, screen));
    if (report.counts.error > 0) return ERRORS;
    return report.counts.warning > 0 ? WARNINGS : 0;
  },
};

async function reportOf(input: Input, session: Session): Promise<CheckReport> {
  const manifest = input.text("pre");
  if (manifest === undefined) return checkInstallation(await readCheckFacts(session));
  const { facts, tried } = await readBeforeInstall(session, manifest);
  return checkBeforeInstall(facts, tried);
}

/** API servers tell the whole URL where they were not answered. */
function withoutPathSecrets(report: CheckReport): CheckReport {
  const text = JSON.stringify(report).replaceAll(/\/s\/[A-Za-z0-9_-]{20,}/g, "/s/[not shown]");
  return JSON.parse(text) as CheckReport;
}

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
