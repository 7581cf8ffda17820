/** `undo`, `abort` and `history`: return to a recorded revision. */
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { specChanges } from "../../../shared/core/inspect/diff/spec-changes.ts";
import { revisionOutcome } from "../../../shared/core/rollout/history/history.ts";
import { restoreRevision } from "../../../shared/core/sidecarset/revision/restore-revision.ts";
import { imagesText } from "../../terminal/table.ts";
import type { Command } from "../command.ts";
import {
  abortChange,
  changeSet,
  DRY_RUN,
  isCurrent,
  outcomesOf,
  recordedRevisions,
  revisionFor,
  undoChange,
} from "../input/change-set.ts";
import { podRows } from "../input/pod-rows.ts";
import { readFacts, TARGET_ARGUMENT, targetOf } from "../input/read-set.ts";
import { printHistory, showHistory, undoStatefulSet } from "../statefulset/change-statefulset.ts";

const COMMON = {
  group: "During a rollout",
  arguments: [{ name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" }],
  outputs: ["table", "json", "yaml"],
} as const;

export const UNDO: Command = {
  ...COMMON,
  arguments: [TARGET_ARGUMENT],
  name: "undo",
  summary: "make the SidecarSet what it was, by the previous revision or another one",
  details:
    "Containers, volumes, pull secrets and patched metadata are those of the revision, of an ordered set the pod template, as with kubectl rollout undo; selectors and strategies stay as they are now. Pods go back as any rollout goes: within partition and maxUnavailable.",
  options: [
    { flags: "--to-revision <NUMBER>", about: "as history shows them; default: the previous one" },
    {
      flags: "--skip-waves",
      about: "all waves at once, whether or not they have soaked or are paused; default: one after the other",
    },
    DRY_RUN,
  ],
  examples: [
    "sidecarset undo log-agent",
    "sidecarset undo log-agent --to-revision 3 --dry-run",
    "sidecarset undo log-agent --skip-waves",
    "sidecarset undo statefulset.apps.kruise.io/db -n shop",
  ],
  run: async (input, session) => {
    const target = targetOf(input.argument(0));
    if (target.kind === "statefulset") return undoStatefulSet(input, session, target);
    const cluster = await session.cluster();
    const read = await readFacts(session, cluster, target.name);
    const revision = revisionFor(read, input.number("to-revision", 1));
    const change = undoChange(read, revision, input.isSet("skip-waves"));
    await changeSet(input, session, cluster, { sidecarSet: read.sidecarSet, change });
    return 0;
  },
};

export const ABORT: Command = {
  ...COMMON,
  name: "abort",
  summary: "give a rollout up: the pods that are updated go back to what the others have",
  details:
    "The SidecarSet becomes the revision that most of the pods run that are not updated yet, unless that one was given up itself or never worked; pause, partition and the order of waves are taken away, so that all go back, within maxUnavailable.",
  options: [DRY_RUN],
  examples: ["sidecarset abort log-agent"],
  run: async (input, session) => {
    const cluster = await session.cluster();
    const read = await readFacts(session, cluster, input.argument(0));
    const change = abortChange(read);
    await changeSet(input, session, cluster, { sidecarSet: read.sidecarSet, change });
    return 0;
  },
};

export const HISTORY: Command = {
  ...COMMON,
  arguments: [TARGET_ARGUMENT],
  name: "history",
  summary: "the revisions that are kept, what became of them, their images, and how many pods run them",
  details:
    "OUTCOME says ready, rolling out, no pods, aborted, undone, halted, never ready, or unknown for a revision from before passes wrote that down. undo and abort go back to a revision that is ready or unknown, unless one is named. CHANGED names what differs from the revision before, beside images.",
  examples: ["sidecarset history log-agent"],
  run: async (input, session) => {
    const target = targetOf(input.argument(0));
    if (target.kind === "statefulset") return showHistory(session, target);
    const read = await readFacts(session, await session.cluster(), target.name);
    const { sidecarSet, facts } = read;
    const pods = podRows({ sidecarSet, facts });
    const outcomes = outcomesOf(read);
    const revisions = recordedRevisions(read);
    const rows = revisions.map((one, index) => ({
      revision: one.revision,
      name: one.metadata?.name ?? "",
      created: one.metadata?.creationTimestamp ?? "",
      images: imagesText(one),
      pods: pods.filter(({ revision }) => revision === one.metadata?.name).length,
      isCurrent: isCurrent(one, sidecarSet),
      outcome: revisionOutcome(one, outcomes),
      changed: changedFields(sidecarSet, revisions[index + 1], one),
    }));
    printHistory(session, rows);
    return 0;
  },
};

/** Paths of the fields that a revision changed, beside images; empty if the revision before it is not kept. */
function changedFields(sidecarSet: SidecarSet, before: ControllerRevision | undefined, after: ControllerRevision) {
  if (before === undefined) return [];
  const [old, young] = [before, after].map((one) => restoreRevision(sidecarSet, one));
  if (old?.kind !== "Decoded" || young?.kind !== "Decoded") return [];
  const changes = specChanges(old.value, young.value, { NativeSidecarInPlaceUpdate: false, canResize: false });
  return changes.map(({ path }) => path).filter((path) => !path.endsWith("}.image"));
}
