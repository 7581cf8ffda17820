/** When a watch of a rollout ends because nothing but a person helps any more. */
import { expect, it } from "vitest";
import { progressOf } from "../../functions/cli/input/progress.ts";
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { SetFacts } from "../../shared/core/inspect/explain/trace-rollout.ts";
import { LABELS, setOf, updatedPod } from "../core/check/fixture.ts";
import { CONTEXT, NOW, podOf, reservedFor, takenDown, UNTOUCHED } from "../support/rollout-fixture.ts";

const SET = setOf("ss", { updateStrategy: { type: "RollingUpdate", maxUnavailable: 2 } });
const oldPod = (name: string, isReady = true, withoutImage = withoutImageOf(SET)) =>
  podOf({ labels: LABELS, name, isReady, withoutImage });

function withoutImageOf({ metadata }: SidecarSet): string {
  return metadata?.annotations?.["kruise.io/sidecarset-hash-without-image"] ?? "";
}

/** Taken down by the rollout, and not back. */
function down(name: string, reason: string): Pod {
  const statuses = [
    { name: "main", ready: true },
    { name: "sc", ready: false, state: { waiting: { reason } } },
  ];
  return takenDown(updatedPod(SET, { name, isReady: false, statuses }));
}

const LOST = down("lost", "ImagePullBackOff");
const LOST_TOO = down("lost-too", "CrashLoopBackOff");
const STRICT = { settings: { ...CONTEXT.settings, StrictMaxUnavailable: true } };

it.each<readonly [string, boolean, readonly Pod[], Partial<SetFacts>]>([
  ["all that holds the budget is lost", true, [LOST, LOST_TOO, oldPod("a")], {}],
  ["one of them is about to start", false, [LOST, down("new", "ContainerCreating"), oldPod("a")], {}],
  ["there is room for one more, and others wait", false, [LOST, oldPod("a"), oldPod("b")], {}],
  ["a pass is writing to one", false, [LOST, oldPod("a"), oldPod("b")], { reserved: reservedFor(["uid-a"]) }],
  ["one that is lost may be written to", false, [LOST, LOST_TOO, oldPod("a")], { reserved: reservedFor(["uid-lost"]) }],
  [
    "strictly, an old one that cannot be updated comes back",
    false,
    [LOST, oldPod("x", false, "no"), oldPod("a")],
    STRICT,
  ],
])("%s: %s", (_title, isStopped, pods, given) => {
  const own = { pods, revisions: [], ...UNTOUCHED, lastPass: NOW, ...CONTEXT, ...given };
  expect(progressOf(SET, own).isStopped === true).toBe(isStopped);
});
