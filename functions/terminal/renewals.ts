/** Commands that recreate pods, each on its own line, ready to copy. */
import type { Renewal } from "../../shared/core/pod/workload.ts";
import type { Screen } from "./screen.ts";

const NAMED = 5;

export function showRenewals(renewals: readonly Renewal[], screen: Screen): void {
  if (renewals.length === 0) return;
  screen.line();
  screen.line({ text: "These commands recreate the pods that need it, by workload:", color: "bold" });
  for (const { command, workload } of renewals.slice(0, NAMED))
    screen.line(`  ${command}${workload === "" ? "  # nothing creates another" : ""}`);
  if (renewals.length > NAMED)
    screen.line({ text: `  ${renewals.length - NAMED} more workloads (-o json has all)`, color: "dim" });
}
