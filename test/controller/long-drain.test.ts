/** Tests the other work of a pass during a drain that lasts longer than the pass. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  DRAIN_ANNOTATION,
  DRAINED_BY_ANNOTATION,
  INJECTED_LIST_ANNOTATION,
  TRAFFIC_LABEL,
} from "../../shared/api/names.ts";
import { beginRollout, followRollout } from "../../shared/controller/rollout/rollout.ts";
import { secondText } from "../../shared/time-text.ts";
import { refusal } from "./bare-cluster.ts";
import { podOf, rolloutPart, SET, setOf } from "./rollout-part.ts";

function servingPod(name: string): Pod {
  const { metadata, ...pod } = podOf(name);
  return { ...pod, metadata: { ...metadata, labels: { ...metadata?.labels, [TRAFFIC_LABEL]: "serving" } } };
}

it("a pass retries a pod that was refused once, while another pod has a long drain", async () => {
  const on = rolloutPart((call, nth) => (call === "PATCH pods" && nth === 2 ? refusal(422, "Invalid") : undefined));
  on.put(setOf({ annotations: { [DRAIN_ANNOTATION]: "5m" }, maxUnavailable: 2 }), servingPod("a"), servingPod("b"));
  const begun = await beginRollout(on.context, SET);
  if (typeof begun === "string") throw new Error(begun);
  const { stop } = await followRollout(on.context, begun, { endsAtMs: 50_000 });
  const traffic = ["a", "b"].map((name) => on.readPod(name)?.metadata?.labels?.[TRAFFIC_LABEL]);
  expect([stop, traffic]).toEqual(["settled", ["drained", "drained"]]);
});

it("a pass waits half a minute for pods that only another SidecarSet drains, and the next pass continues", async () => {
  const on = rolloutPart();
  const { metadata, ...pod } = podOf("a", 2);
  const drained = {
    labels: { ...metadata?.labels, [TRAFFIC_LABEL]: "drained" },
    annotations: {
      ...metadata?.annotations,
      [INJECTED_LIST_ANNOTATION]: `${SET},other`,
      [DRAINED_BY_ANNOTATION]: JSON.stringify({ other: { since: secondText(on.clock.epochMs()), release: "r" } }),
    },
  };
  on.put(setOf({ maxUnavailable: 1 }), { ...pod, metadata: { ...metadata, ...drained } }, podOf("b"));
  const begun = await beginRollout(on.context, SET);
  if (typeof begun === "string") throw new Error(begun);
  expect(begun.result.decision.summary).toMatchObject({ hold: "budget", drainedElsewhere: 1, used: 0 });
  const { stop } = await followRollout(on.context, begun, { endsAtMs: 600_000 });
  expect([stop, Math.round(on.clock.now() / 1_000)]).toEqual(["stalled", 30]);
});
