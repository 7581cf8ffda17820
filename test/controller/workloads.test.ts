/** Tests which workloads a decision reads, and the ledger's records of restarts. */
import { expect, it } from "vitest";
import { REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import { decideUntilKnown } from "../../shared/controller/rollout/observe.ts";
import { readAsked, withRestarts } from "../../shared/controller/rollout/workloads.ts";
import { keyOfWorkload, type RestartedWorkload } from "../../shared/core/pod/workload.ts";
import type { Decision } from "../../shared/core/rollout/decide.ts";
import { BUILT_IN_STATEFUL_SETS } from "../../shared/kube/port.ts";
import { NAMESPACE } from "./fixture.ts";
import { podOf, rolloutPart, setOf } from "./rollout-part.ts";

async function stage() {
  const on = rolloutPart();
  on.put(setOf({ annotations: { [REPLACE_ANNOTATION]: "NotUpgradable,Restart" } }), podOf("one"));
  return { ...on, snapshot: await on.look() };
}

function statefulSet(name: string): RestartedWorkload {
  const ref = { workload: "StatefulSet", namespace: NAMESPACE, name } as const;
  return { ...ref, key: keyOfWorkload(ref), owner: { name, uid: `uid-${name}` } };
}

const asking = (...asks: readonly RestartedWorkload[]) => ({ restarts: { asks } }) as unknown as Decision;

it("readAsked lets a decision ask for at most eight workloads, one after the other", async () => {
  const { cluster, snapshot, calls } = await stage();
  let decided = 0;
  const decide = () => {
    if (decided > 20) throw new Error("it goes on for ever");
    return asking(statefulSet(`web-${decided++}`));
  };
  await decideUntilKnown(decide, [readAsked({ cluster }, snapshot)]);
  expect(decided).toBe(9);
  expect(calls.filter(([, call]) => call === "GET statefulsets")).toHaveLength(8);
});

it("readAsked reads a StatefulSet without a ReplicaSet, and one with another uid counts as gone", async () => {
  const { cluster, snapshot, server, calls } = await stage();
  for (const [name, uid] of Object.entries({ web: "uid-web", db: "uid of another" }))
    server.put("test", BUILT_IN_STATEFUL_SETS, { metadata: { namespace: NAMESPACE, name, uid } });
  const before = calls.length;
  const decisions = [asking(statefulSet("web"), statefulSet("db")), asking()];
  await decideUntilKnown(() => decisions.shift() ?? asking(), [readAsked({ cluster }, snapshot)]);
  expect(calls.slice(before).map(([, call]) => call)).toEqual(["GET statefulsets", "GET statefulsets"]);
  expect([...snapshot.workloads].map(([key, workload]) => [key, workload?.metadata?.uid])).toEqual([
    ["StatefulSet shop/web", "uid-web"],
    ["StatefulSet shop/db", undefined],
  ]);
});

it("withRestarts does not change a ledger without restarts", async () => {
  const { context, snapshot } = await stage();
  const ledger = { uid: "uid-set", generation: 2, reservations: [] };
  const plan = { ledger, granted: new Set<string>(), fenced: [] };
  expect(withRestarts({ context, snapshot, kept: new Set() }, plan, { actions: [] } as unknown as Decision)).toBe(plan);
});
