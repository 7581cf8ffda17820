/** The causes that the book of holds names, and what docs/reasons.md says about each. */

/** Every cause that `explain`, `check` and the page name, with its paragraph in docs/reasons.md. */
export const CAUSES = {
  StrategyPaused: "`updateStrategy.paused` is true. `sidecarset resume` goes on.",
  StrategyNotUpdate: "`updateStrategy.type` is NotUpdate: only new pods get the newest version.",
  RolloutHalted:
    "More updated pods fail than the annotation `halt-on` allows, so nothing is updated. Undo, or set another image.",
  AnnotationUnreadable:
    "An annotation of the SidecarSet cannot be read, so nothing is updated. Correct it, or take it away.",
  WritesRefused:
    "The API server refuses what passes write to the pods: a right is missing, or a policy, a webhook or the fence says no. The message has its words and the first pod. Passes end early and try again, each time.",
  PassRefused:
    "The API server refuses what a pass reads (pods, namespaces, its ledger) or records before it writes to pods. The message has its words. Nothing is updated until the right is there: `sidecarset check` names rights that are missing.",
  ApiServerUnreachable:
    "The API server gave passes no usable answer: it timed out, had no time (429), or failed (5xx). Passes try again, each time.",
  Contention:
    "Somebody wrote the SidecarSet or its ledger each time before the pass could, eight times in a row. Look for a second installation of the passes, or for a tool that keeps writing the object.",
  PassTooShort:
    "The time of a whole pass was over before the pods were read. Give passes more time, or narrow the selector.",
  PassFailed: "A pass over this SidecarSet failed; the message says why. Nothing is updated until that is corrected.",
  GateRefused:
    "The gate (an approval that the annotation `gate` names) has not allowed the next pods. Passes ask it again.",
  GateUnanswered:
    "The gate that the annotation `gate` names cannot be asked, or gives no answer that can be read, so nothing is updated. Fix the gate, or name it in `GATE_HOSTS` of the passes.",
  ChecksFirst:
    "Checks of [metrics](metric-checks.md) have not passed since the last batch; the message has the value and the bound, or why there is no value. They are evaluated again after their interval.",
  AllUpdated: "Every pod has the newest version. Pods that are not ready are told beside it.",
  HotUpgradesFirst: "Hot upgrades that have begun are finished before others begin.",
  ResizeUnderWay:
    "CPU or memory of a container is being changed in place. Where the node cannot give them (`Infeasible`), ask for less.",
  DrainFirst:
    "The pod is out of the endpoints of its Services for as long as the annotation [`drain`](drain.md) asks for; then its sidecars restart. It counts as unavailable.",
  KeptByPartition: "`updateStrategy.partition` keeps the pod at the old version. `sidecarset promote` lowers it.",
  BudgetUsed:
    "As many updated pods are down as `maxUnavailable` allows, so the others wait. The message names them. If they cannot become ready by themselves, set another image or undo. With `maxUnavailable: 0` no pod that is ready is updated.",
  PrePulling: "Images are [pulled](pre-pull.md) to the pod's node first, or to nodes before it. It goes on by itself.",
  PrePullFailed:
    "The node could not [pull the images](pre-pull.md), or the pod that pulls cannot be created; the message says why. It is tried again.",
  OrderOfSets:
    "Pods of StatefulSets are updated one at a time, in their order, because the annotation `follow-ordinals` asks for that.",
  OwnerBudgetUsed: "As many pods of the same owner are down as the annotation `max-unavailable-per-owner` allows.",
  LaterWave:
    "The namespace of the pod comes later than one whose pods are not all updated and ready yet, as the annotation [`waves`](waves.md) asks for.",
  WaveSoaking:
    "The wave before is complete, and not for as long as its `soakSeconds` ask for; the message says until when. It goes on by itself.",
  WaveChecking:
    "The wave before is complete and has soaked, and its [checks of metrics](waves.md#checks-of-a-wave) have not passed since. Passes evaluate them; the message says what they came to.",
  WavePaused: "A wave before has `paused` in the annotation `waves`: take that out to go on.",
  HeldByDisruptionBudget:
    "A [disruption budget](disruption-budgets.md) that selects the pod does not allow one more down, and gate `RespectDisruptionBudgets` has passes ask it.",
  EvictionRefused:
    "Pods wait to be [replaced](replace.md), and evictions of pods of the same controllers were refused, mostly by a PodDisruptionBudget. Passes ask again later.",
  Restarting:
    "The pod's workload is being [restarted](replace-restart.md), or waits for others that are, and for pods that are updated in place.",
  RestartHeld:
    "The pod's workload is to be restarted, and is not: it is paused, recreates only pods that are deleted, has a partition, is being rolled out, was restarted for this version already, or others of its pods have to stay as they are. The message says which.",
  PreviousUpdateUnderWay: "The node has not started the image of the update before this one yet.",
  UpdateSelectorNotMatched: "`updateStrategy.selector` leaves the pod out, so it keeps its version.",
  NotUpgradable:
    "More than images changed since the pod was created, and Kubernetes changes nothing else in place. Recreate it with the command that is printed, or undo the change.",
  NextInLine: "The next pass updates it, where a gate allows that.",
} as const;

export type HoldCause = keyof typeof CAUSES;
