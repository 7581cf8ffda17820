/** What a status has beside OpenKruise's, by what is stored of it, and the word that sums it up. */
import { describe, expect, it } from "vitest";
import { HALT_ON_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import { decideOn, type Snapshot } from "../../shared/controller/rollout/observe.ts";
import { statusAdditions, verdictNow } from "../../shared/controller/rollout/status-additions.ts";
import { steeringDigest } from "../../shared/core/rollout/steering.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { type Asked, podOf, rolloutPart, setOf } from "./rollout-part.ts";

/** Of one pod of version 1, where that status is stored. */
async function stage(status: Partial<SidecarSetStatus> | undefined, asked: Asked = {}) {
  const on = rolloutPart();
  on.put({ ...setOf(asked), ...(status ? { status: status as SidecarSetStatus } : {}) }, podOf("a"));
  const snapshot = await on.look();
  const decision = decideOn(on.context, snapshot, []);
  const additions = (seen: Snapshot = snapshot) => statusAdditions(on.context, seen, decision);
  return { ...on, snapshot, additions, verdict: () => verdictNow(on.context, snapshot, decision) };
}

const steered = { annotations: { [HALT_ON_ANNOTATION]: "3" } };

describe("beside OpenKruise's a status has", () => {
  it.each<[string, Partial<SidecarSetStatus> | undefined, readonly string[]]>([
    ["all, where there is none yet", undefined, ["conditions", "ledgerNamespace", "observedAnnotations", "selection"]],
    ["nothing, where the definition prunes it", { matchedPods: 1 }, []],
    ["no ledger, where the definition is an older one of ours", { conditions: [] }, ["conditions", "selection"]],
    [
      "all, where the definition is this one",
      { conditions: [], ledgerNamespace: "" },
      ["conditions", "ledgerNamespace", "observedAnnotations", "selection"],
    ],
  ])("%s", async (_, status, fields) => {
    const { additions } = await stage(status);
    expect(Object.keys(additions()).toSorted()).toEqual(fields);
  });

  it("the annotations that steer it, once the ledger is of them, and those of before until then", async () => {
    const before = { "sidecarset.kruise.io/halt-on": "1" };
    const status = { conditions: [], ledgerNamespace: KRUISE_NAMESPACE, observedAnnotations: before };
    const { additions, snapshot } = await stage(status, steered);
    expect(additions().observedAnnotations).toEqual(before);
    const ledger = { ...snapshot.stored.ledger, steering: steeringDigest(snapshot.sidecarSet) };
    const stored = { ...snapshot.stored, ledger };
    expect(additions({ ...snapshot, stored }).observedAnnotations).toEqual(steered.annotations);
  });

  it("no annotations, where none have been seen", async () => {
    const { additions } = await stage({ conditions: [], ledgerNamespace: "" }, steered);
    expect(additions().observedAnnotations).toEqual({});
  });
});

it.each<[string, Asked]>([
  ["Updating", {}],
  ["Paused", { paused: true }],
  ["Ready", { version: 1 }],
])("it comes to one word: %s", async (word, asked) => {
  const { verdict } = await stage(undefined, asked);
  expect(verdict()).toBe(word);
});
