/** Decides what the page says about annotations of a SidecarSet that have passes do something, or leave it. */

import type { SidecarSet } from "../../../api/sidecarset.ts";
import { counted } from "../../../go/counted.ts";
import { isPlainNo } from "../../rollout/approval.ts";
import type { Held } from "../../rollout/checks/check-records.ts";
import { lastUndone } from "../../rollout/halt/undone.ts";
import type { Hold } from "../../rollout/hold.ts";
import type { WavesSummary } from "../../rollout/waves/standing.ts";
import { waveReason, wavesText } from "../../rollout/waves/wave-text.ts";
import { type Counted, type Mark, type Reason, sentence } from "./reason.ts";

export function annotationReasons(
  sidecarSet: SidecarSet,
  { hold, halt, gate, metrics, owners, waves, disruptionBudgets }: Counted,
): readonly Reason[] {
  const undone = lastUndone(sidecarSet);
  const isOpen = gate !== undefined && isPlainNo(gate);
  return [
    ...haltReasons(hold, halt),
    ...(undone?.isCurrent
      ? [fact(["ReleaseUndone", "held"], "A release was taken back", `It was ${undone.message}.`)]
      : []),
    ...(gate === undefined
      ? []
      : [
          fact(
            ["GateRefused", isOpen ? "held" : "trouble"],
            "A gate has not allowed the next batch",
            `${sentence(gate)}.`,
          ),
        ]),
    ...(metrics === undefined ? [] : [checkReason(metrics)]),
    ...(owners === undefined
      ? []
      : [
          fact(
            ["OwnerBudgetUsed", "wait"],
            `${counted(owners.waiting, "pod waits", "pods wait")} for others of the same owner`,
            `${owners.full.join("; ")}.`,
          ),
        ]),
    ...waveReasons(hold, waves),
    ...(disruptionBudgets === undefined
      ? []
      : [
          fact(
            ["HeldByDisruptionBudget", "wait"],
            `${counted(disruptionBudgets.waiting, "pod waits", "pods wait")} for disruption budgets`,
            `${disruptionBudgets.full.join("; ")}.`,
          ),
        ]),
  ];
}

function waveReasons(hold: Hold, waves: WavesSummary | undefined): readonly Reason[] {
  if (waves === undefined || (waves.behind === 0 && hold !== "wave")) return [];
  const reason = waveReason(waves);
  const waiting = `${counted(waves.behind, "pod waits", "pods wait")} for ${waves.behind === 1 ? "its" : "their"} wave`;
  const title = waves.behind === 0 ? "The last wave is not passed yet" : waiting;
  return [fact([reason, reason === "WavePaused" ? "held" : "wait"], title, `${sentence(wavesText(waves))}.`)];
}

function checkReason({ reason, isPaced }: Held): Reason {
  const title = isPaced ? "The next batch waits for its metrics" : "Metrics keep the next batch";
  return fact(["ChecksFirst", isPaced ? "wait" : "held"], title, `${sentence(reason)}.`);
}

function haltReasons(hold: Hold, halt: string | undefined): readonly Reason[] {
  if (halt === undefined) return [];
  const text = `${sentence(halt)}.`;
  if (hold === "unreadable") return [fact(["AnnotationUnreadable", "trouble"], "An annotation cannot be read", text)];
  return [fact(["RolloutHalted", "trouble"], "The rollout was stopped", text)];
}

function fact([reason, kind]: Mark, title: string, text: string): Reason {
  return { reason, kind, title, text, pods: [] };
}
