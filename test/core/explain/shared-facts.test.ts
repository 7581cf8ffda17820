/**
 * Explains every pod of a workload at once, and each pod alone. The results must be equal, and the first way must read
 * the rollout once.
 */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { explainPod } from "../../../shared/core/inspect/explain/explain.ts";
import { CONTEXT, NOW, podOf, sidecarSetOf, takenDown, UNTOUCHED } from "../../support/rollout-fixture.ts";

const LABELS = { app: "web" };
const set = (maxUnavailable: number, partition: number) =>
  sidecarSetOf({
    selector: { matchLabels: LABELS },
    updateStrategy: { type: "RollingUpdate", maxUnavailable, partition },
  });
const factsOf = (pods: readonly Pod[]) => ({
  ...{ pods, revisions: [], ...UNTOUCHED, lastPass: NOW, ...CONTEXT },
  ...{ namespace: { metadata: { name: "default" } }, registrations: undefined, sidecarSets: [] },
});
const old = (name: string) => podOf({ name, labels: LABELS });

describe("explainPod for many pods of one rollout:", () => {
  it("explainPod gives the same steps with shared facts as with facts of its own", () => {
    const down = takenDown(podOf({ name: "down", labels: LABELS, hash: "new", image: "reg/sc:v2", isReady: false }));
    const pods = [down, ...["a", "b", "c", "d"].map(old)];
    const facts = factsOf(pods);
    for (const one of [set(1, 1), set(2, 0), set(3, 2)])
      expect(pods.map((pod) => explainPod(pod, one, facts))).toEqual(
        pods.map((pod) => explainPod(pod, one, factsOf(pods))),
      );
  });

  it("explaining more pods does not read each pod more often", () => {
    const looksAmong = (count: number): number => {
      let looks = 0;
      const { spec, ...rest } = old("watched");
      const watched: Pod = {
        ...rest,
        get spec() {
          looks++;
          return spec;
        },
      };
      const pods = [watched, ...Array.from({ length: count }, (_, index) => old(`web-${index}`))];
      const facts = factsOf(pods);
      const one = set(1, 0);
      expect(pods.map((pod) => explainPod(pod, one, facts).length)).toHaveLength(count + 1);
      return looks;
    };
    expect(looksAmong(10)).toBeGreaterThan(0);
    expect(looksAmong(100)).toBe(looksAmong(10));
  });
});
