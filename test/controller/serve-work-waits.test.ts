/** Tests how long a queue's message waits for its change, to the millisecond. The pass has no time left. */
import { expect, it } from "vitest";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { listWork, serveWork } from "../../shared/controller/serve-work.ts";
import { isPassDue } from "../../shared/core/rollout/queue/work.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";

interface Stored {
  readonly generation: number;
  readonly hash?: string;
}

function cluster(stored: Stored | undefined, refuse?: Refuse) {
  const on = bareRollout("set", refuse);
  const store = ({ generation, hash }: Stored) => {
    on.release(1);
    const set = on.readSet();
    const annotations = hash === undefined ? {} : { [HASH_ANNOTATION]: hash };
    on.server.put("test", SIDECARSETS, {
      ...set,
      metadata: { ...set.metadata, generation, annotations },
    } as SidecarSet);
  };
  if (stored) store(stored);
  /** Returns the times of the reads, in milliseconds. */
  const looks = () => on.calls.filter(([, call]) => call.startsWith("GET sidecarsets")).map(([atMs]) => atMs);
  return { ...on, store, looks };
}

async function waitFor(on: ReturnType<typeof cluster>, { generation, hash = "" }: Stored): Promise<readonly number[]> {
  const work = { kind: "change", sidecarSet: "set", hash, generation, request: "uid" } as const;
  await serveWork(on.cluster, work, {
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    follow: false,
    clock: on.clock,
    remainingMs: () => 0,
    served: new Map(),
  });
  return on.looks();
}

/** The times of looks every quarter of a second, from 0 to 5,000 ms. */
const ALL_LOOKS = Array.from({ length: 21 }, (_, index) => 250 * index);

it.each<[string, Stored | undefined, Stored]>([
  ["for a SidecarSet that does not exist", undefined, { generation: 1, hash: "new" }],
  ["while the older generation is stored", { generation: 1, hash: "new" }, { generation: 2, hash: "new" }],
  ["while the same generation has another spec", { generation: 2, hash: "old" }, { generation: 2, hash: "new" }],
  [
    "of unknown generation while another spec is stored",
    { generation: 2, hash: "old" },
    { generation: 0, hash: "new" },
  ],
])(
  "serveWork looks for a change every quarter of a second for five seconds: a change %s",
  async (_, stored, wanted) => {
    expect(await waitFor(cluster(stored), wanted)).toEqual(ALL_LOOKS);
  },
);

it.each<[string, Stored, Stored]>([
  ["that is stored", { generation: 2, hash: "new" }, { generation: 2, hash: "new" }],
  ["that is stored without a hash", { generation: 2 }, { generation: 2 }],
  ["of unknown generation that is stored", { generation: 7, hash: "new" }, { generation: 0, hash: "new" }],
  ["that was followed by a newer one", { generation: 3, hash: "newer" }, { generation: 2, hash: "new" }],
])("serveWork does not wait for a change %s", async (_, stored, wanted) => {
  expect(await waitFor(cluster(stored), wanted)).toEqual([0]);
});

it("serveWork stops waiting as soon as it reads the change", async () => {
  const on = cluster({ generation: 1, hash: "old" });
  on.plan(600, () => on.store({ generation: 2, hash: "new" }));
  expect(await waitFor(on, { generation: 2, hash: "new" })).toEqual([0, 250, 500, 750]);
});

it("serveWork fails at once when reading SidecarSets is forbidden", async () => {
  const on = cluster({ generation: 1 }, (call) => (call === "GET sidecarsets" ? refusal(403, "Forbidden") : undefined));
  await expect(waitFor(on, { generation: 2 })).rejects.toThrow("Forbidden");
  expect(on.looks()).toEqual([0]);
});

it("listWork lists a settled SidecarSet in one of five minutes, at any second of that minute", async () => {
  const on = cluster({ generation: 1 });
  const status = {
    observedGeneration: 1,
    latestRevision: "set-1",
    matchedPods: 0,
    updatedPods: 0,
    updatedReadyPods: 0,
  };
  on.server.put("test", SIDECARSETS, { ...on.readSet(), status } as SidecarSet);
  const minutes = Array.from({ length: 5 }, (_, index) => 29_000_000 + index);
  const ticks = await Promise.all(
    minutes.flatMap((minute) => [0, 59_999].map((more) => listWork(on.cluster, minute * 60_000 + more))),
  );
  const minute = minutes.find((one) => isPassDue(on.readSet(), one));
  const tick = { kind: "tick", sidecarSet: "set", minute };
  expect(ticks.flat()).toEqual([tick, tick]);
});
