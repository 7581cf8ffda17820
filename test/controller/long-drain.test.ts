/** Tests the other work of a pass during a drain that is longer than the pass. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { DRAIN_ANNOTATION, TRAFFIC_LABEL } from "../../shared/api/names.ts";
import { beginRollout, followRollout } from "../../shared/controller/rollout/rollout.ts";
import { refusal } from "./bare-cluster.ts";
import { podOf, rolloutPart, SET, setOf } from "./rollout-part.ts";

function servingPod(name: string): Pod {
  const { metadata, ...pod } = podOf(name);
  return { ...pod, metadata: { ...metadata, labels: { ...metadata?.labels, [TRAFFIC_LABEL]: "serving" } } };
}

it("a pass tries a pod again that was refused once, although another one is drained for long", async () => {
  const on = rolloutPart((call, nth) => (call === "PATCH pods" && nth === 2 ? refusal(422, "Invalid") : undefined));
  on.put(setOf({ annotations: { [DRAIN_ANNOTATION]: "5m" }, maxUnavailable: 2 }), servingPod("a"), servingPod("b"));
  const begun = await beginRollout(on.context, SET);
  if (typeof begun === "string") throw new Error(begun);
  const { stop } = await followRollout(on.context, begun, { endsAtMs: 50_000 });
  const traffic = ["a", "b"].map((name) => on.readPod(name)?.metadata?.labels?.[TRAFFIC_LABEL]);
  expect([stop, traffic]).toEqual(["settled", ["drained", "drained"]]);
});
