/** Figures from a real node with kubelet, containerd and a registry (`npm run test:node`; CI runs a part of it). */
import { at, numberAt, type Part, type WantedFigure } from "./wanted-figure.ts";

const ROLLOUT = "a rollout of 110 pods, 22 at once, in ms";
const BARE = "a bare loop of patches over the same pods, as many at once, in ms";

function ofBareLoop(part: Part): number | undefined {
  const [rollout, bare] = [ROLLOUT, BARE].map((name) => numberAt(part, name));
  return rollout === undefined || bare === undefined ? undefined : rollout / bare;
}

export const NODE_FIGURES: readonly WantedFigure[] = [
  {
    what: "tests on a real node that fail",
    by: "bench",
    from: "node",
    pick: at("failed"),
    of: at("passed"),
    atMost: 0,
  },
  {
    what: "what nodes do: rows that the real node and both stand-ins pass",
    by: "bench",
    from: "node.figures",
    pick: at("behaviours of nodes that are the same on all three"),
    atLeast: 17,
  },
  {
    what: "what nodes do: rows in which a stand-in differs, by name",
    by: "bench",
    from: "node.figures",
    pick: at("behaviours of nodes that differ, by name"),
    atMost: 1,
  },
  {
    what: "time of a rollout over 110 pods of a real node, divided by the time of a bare loop of patches",
    by: "bench",
    from: "node.figures",
    pick: ofBareLoop,
    atMost: 1.5,
    isMain: true,
  },
  {
    what: "from a pod's PATCH to its sidecar running again on a real node, 22 at once on 2 cores, p50, ms",
    by: "bench",
    from: "node.figures",
    pick: at("from a pod's patch to its sidecar running again, p50 in ms"),
    atMost: 20_000,
  },
  {
    what: "time until a patched sidecar runs again on a real node, p99 of 22 at once, ms",
    by: "bench",
    from: "node.figures",
    pick: at("from a pod's patch to its sidecar running again, p99 in ms"),
    atMost: 40_000,
    isMain: true,
  },
  {
    what: "requests of clients that fail while their sidecar is hot-upgraded twice on a real node",
    by: "bench",
    from: "node.figures",
    pick: at("requests that failed during two hot upgrades"),
    of: at("requests answered during two hot upgrades"),
    atMost: 0,
    isMain: true,
  },
  {
    what: "from a container's readiness to the key that lets the next in its launch order start, on a real node, slowest, ms",
    by: "bench",
    from: "node.figures",
    pick: at("slowest key of a launch, in ms"),
    atMost: 2_000,
  },
  {
    what: "a requested container is replaced on a real node, ms",
    by: "bench",
    from: "node.figures",
    pick: at("a requested container has been replaced, in ms"),
    atMost: 10_000,
  },
  {
    what: "a job is complete after its own container on a real node, ms",
    by: "bench",
    from: "node.figures",
    pick: at("a job is complete after its own container, in ms"),
    atMost: 10_000,
  },
  {
    what: "a batch of four recreated containers, two at once, is completed on a real node, ms",
    by: "bench",
    from: "node.figures",
    pick: at("a batch of 4 requests, 2 at once, is completed, in ms"),
    atMost: 60_000,
  },
];
