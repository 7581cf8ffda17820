/** `set partition` and `set max-unavailable`: how far, and how fast, a rollout goes. */
import type { IntOrString } from "../../../shared/api/kubernetes.ts";
import { CliError } from "../../terminal/error.ts";
import type { Command } from "../command.ts";
import { changeSet, DRY_RUN, showUnchanged } from "../input/change-set.ts";
import { readSet } from "../input/read-set.ts";

interface Field {
  readonly field: "partition" | "maxUnavailable";
  readonly word: string;
  readonly summary: string;
  readonly details: string;
  /** where nothing is written */
  readonly byDefault: IntOrString;
}

function setField({ field, word, summary, details, byDefault }: Field): Command {
  return {
    name: `set ${word}`,
    group: "During a rollout",
    summary,
    details,
    arguments: [
      { name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" },
      { name: "<PODS>", about: "a number of pods, or a share of all as in 10%", completion: "none" },
    ],
    options: [DRY_RUN],
    outputs: ["table", "json", "yaml"],
    examples: [`sidecarset set ${word} log-agent 10%`, `sidecarset set ${word} log-agent 5 --dry-run`],
    run: async (input, session) => {
      const [name = "", text = ""] = input.arguments;
      const value = intOrShare(text, text);
      const cluster = await session.cluster();
      const sidecarSet = await readSet(cluster, name);
      const before = sidecarSet.spec.updateStrategy?.[field] ?? byDefault;
      if (String(before) === String(value)) {
        showUnchanged(session, { sidecarSet: name }, `${field} is ${value} already`);
        return 0;
      }
      const isStopped = field === "maxUnavailable" && (value === 0 || value === "0%");
      const notes = isStopped ? ["With 0 no pod is updated; sidecarset pause says the same more plainly."] : [];
      const change = { spec: { updateStrategy: { [field]: value } }, text: `${field} ${before} → ${value}`, notes };
      await changeSet(input, session, cluster, { sidecarSet, change });
      return 0;
    },
  };
}

export const SET_PARTITION = setField({
  field: "partition",
  word: "partition",
  summary: "how many pods stay at the old version; more than now holds the rollout there",
  details: "Pods that are updated already stay updated. promote only lowers it, and says how many pods that lets go.",
  byDefault: 0,
});

export const SET_MAX_UNAVAILABLE = setField({
  field: "maxUnavailable",
  word: "max-unavailable",
  summary: "how many pods a rollout may have down at once",
  details: "A smaller number holds for what is written from then on; pods that are down already come back first.",
  byDefault: 1,
});

// A number of pods, or a share of all, as it is typed.

/** `where`: what was typed, for the sentence. @throws CliError */
export function intOrShare(where: string, text: string): IntOrString {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  if (/^\d{1,3}%$/.test(text) && Number.parseInt(text, 10) <= 100) return text;
  throw new CliError(`${where}: write a number of pods, or a share such as 10%`);
}
