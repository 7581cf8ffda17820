/** `check`: what is wrong with an installation, or will be. */

import { checkBeforeInstall } from "../../../shared/core/inspect/check/before-install.ts";
import { type CheckReport, checkInstallation } from "../../../shared/core/inspect/check/check.ts";
import { showReport } from "../../terminal/show-check.ts";
import type { Command, Input } from "../command.ts";
import { readBeforeInstall } from "../input/before-install.ts";
import { readCheckFacts } from "../input/check-facts.ts";
import type { Session } from "../session.ts";

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
