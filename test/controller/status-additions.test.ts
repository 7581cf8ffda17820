/** Tests the parts of a status that OpenKruise lacks, from the stored status, and its one-word verdict. */
import { describe, expect, it } from "vitest";
import { HALT_ON_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import { decideOn, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { statusAdditions, verdictNow } from "../../shared/controller/rollout/status-additions.ts";
import { steeringDigest } from "../../shared/core/pod/steering/steered.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { type Asked, podOf, rolloutPart, setOf } from "./rollout-part.ts";

/** Prepares a cluster with one pod of version 1, and a SidecarSet with the given status. */
async function stage(status: Partial<SidecarSetStatus> | undefined, asked: Asked = {}) {
  const on = rolloutPart();
  on.put({ ...setOf(asked), ...(status ? { status: status as SidecarSetStatus } : {}) }, podOf("a"));
  const snapshot = await on.look();
  const decision = decideOn(on.context, snapshot, []);
  const additions = (seen: Snapshot = snapshot) => statusAdditions(on.context, seen, decision);
  return { ...on, snapshot, additions, verdict: () => verdictNow(on.context, snapshot, decision) };
}

const steered = { annotations: { [HALT_ON_ANNOTATION]: "3" } };

describe("statusAdditions:", () => {
  it.each<[string, Partial<SidecarSetStatus> | undefined, readonly string[]]>([
    [
      "all fields when there is no status yet",
      undefined,
      ["conditions", "ledgerNamespace", "observedAnnotations", "selection"],
    ],
    ["no field when the definition prunes conditions", { matchedPods: 1 }, []],
    [
      "no ledger namespace when the definition is an older one of ours",
      { conditions: [] },
      ["conditions", "selection"],
    ],
    [
      "all fields when the definition is the current one",
      { conditions: [], ledgerNamespace: "" },
      ["conditions", "ledgerNamespace", "observedAnnotations", "selection"],
    ],
  ])("statusAdditions returns %s", async (_, status, fields) => {
    const { additions } = await stage(status);
    expect(Object.keys(additions()).toSorted()).toEqual(fields);
  });

  it("the status shows the annotations that steer once the ledger has them, and the older ones until then", async () => {
    const before = { "sidecarset.kruise.io/halt-on": "1" };
    const status = { conditions: [], ledgerNamespace: KRUISE_NAMESPACE, observedAnnotations: before };
    const { additions, snapshot } = await stage(status, steered);
    expect(additions().observedAnnotations).toEqual(before);
    const ledger = { ...snapshot.stored.ledger, steering: steeringDigest(snapshot.sidecarSet) };
    const stored = { ...snapshot.stored, ledger };
    expect(additions({ ...snapshot, stored }).observedAnnotations).toEqual(steered.annotations);
  });

  it("the status shows no annotations when no ledger has them yet", async () => {
    const { additions } = await stage({ conditions: [], ledgerNamespace: "" }, steered);
    expect(additions().observedAnnotations).toEqual({});
  });
});

it.each<[string, Asked]>([
  ["Updating", {}],
  ["Paused", { paused: true }],
  ["Ready", { version: 1 }],
])("verdictNow sums up a rollout in one word: %s", async (word, asked) => {
  const { verdict } = await stage(undefined, asked);
  expect(verdict()).toBe(word);
});
