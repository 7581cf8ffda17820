/** The texts about the wave that holds the others. Passes, conditions, explanations and the page use the same ones. */
import { counted } from "../../../../go/counted.ts";
import type { HoldWords } from "../../hold-words.ts";
import type { WaveRow, WavesSummary } from "./standing.ts";

/** The reason why pods of later waves wait, with its name in conditions and explanations. */
type WaveReason = "LaterWave" | "WaveSoaking" | "WaveChecking" | "WavePaused";

function waveReason({ holder }: WavesSummary): WaveReason {
  if (holder?.stage === "soaking") return "WaveSoaking";
  if (holder?.stage === "checking") return "WaveChecking";
  return holder?.stage === "paused" ? "WavePaused" : "LaterWave";
}

/** The wave that holds later ones, as the middle of a sentence; undefined: there is none. */
function holderText({ holder }: WavesSummary): string | undefined {
  return holder && textOf(holder);
}

/** Text about the holding wave, and how many pods wait for it. */
export function wavesText(summary: WavesSummary): string {
  const { behind, isTurning } = summary;
  const waiting = counted(behind, "pod of later waves waits", "pods of later waves wait");
  const text = isTurning ? turnText(summary) : (holderText(summary) ?? "all waves have begun");
  return behind === 0 ? text : `${text}; ${waiting}`;
}

function turnText({ rows }: WavesSummary): string {
  const passed = rows.findLast(({ stage }) => stage === "passed");
  return `wave ${passed?.name} is passed, the next one begins`;
}

function textOf({ name, stage, pods, left, restarts = 0, soaksUntil }: WaveRow): string {
  if (stage === "soaking") return `wave ${name} is complete and soaks until ${soaksUntil}`;
  if (stage === "checking") return `wave ${name} is complete and is passed once its checks of metrics pass`;
  if (stage === "paused") return `wave ${name} is paused`;
  const podsLeft = left - restarts;
  const parts = [
    ...(podsLeft === 0 && restarts > 0
      ? []
      : [`${podsLeft} of its ${counted(pods, "pod")} ${podsLeft === 1 ? "is" : "are"} not updated and ready yet`]),
    ...(restarts === 0 ? [] : [`${counted(restarts, "workload is", "workloads are")} being restarted, or to be`]),
  ];
  return `wave ${name} comes first, ${parts.join(", and ")}`;
}

/** The name of a wave in a text. The namespaces outside all waves have none. */
export function waveName(name: string): string {
  return name === "" ? "no wave" : `wave ${name}`;
}

/** The stage of a wave in a few words. */
export function stageText({ stage, pods, updatedReady, soaksUntil }: WaveRow): string {
  const until = soaksUntil === undefined || stage !== "soaking" ? "" : ` until ${soaksUntil}`;
  return `${stage}${until}, ${updatedReady} of ${counted(pods, "pod")} updated and ready`;
}

export const WAVE_WORDS: HoldWords = {
  applies: ({ rules: { waves }, hold }) => hold === "wave" || (waves !== undefined && waves.behind > 0),
  cause: ({ rules: { waves } }) => (waves ? waveReason(waves) : "LaterWave"),
  isExplainedApart: true,
  severity: ({ rules: { waves } }) => (waves && waveReason(waves) === "WavePaused" ? "held" : "wait"),
  ends: ({ rules: { waves } }) => (waves && waveReason(waves) === "WavePaused" ? "badly" : undefined),
  reason: ({ rules: { waves } }) => (waves ? waveReason(waves) : "NothingToUpgrade"),
  progress: ({ rules: { waves } }) => waves && wavesText(waves),
  // A soaking wave continues by itself; a paused one does not.
  goesOn: ({ rules: { waves } }) => waves !== undefined && waveReason(waves) !== "WavePaused",
  verdict: "Paused",
  blocked: undefined,
  clause: ({ selected, rules: { waves } }) =>
    `${selected === 0 ? "" : `${selected} being upgraded; `}${waves ? wavesText(waves) : "pods of later waves wait"}`,
  sentence: ({ rules: { waves } }) => (waves ? wavesText(waves) : "pods of later waves wait"),
  title: ({ rules: { waves } }) => {
    const behind = waves?.behind ?? 0;
    if (behind === 0) return "The last wave is not passed yet";
    return `${counted(behind, "pod waits", "pods wait")} for ${behind === 1 ? "its" : "their"} wave`;
  },
  next: (_, { rules: { waves } }) =>
    waves && waveReason(waves) === "WavePaused"
      ? 'take "paused" of that wave out of the annotation sidecarset.kruise.io/waves'
      : undefined,
};
