/** Tests which pods a dry run would write to: only as many as the ledger has room for. */
import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { GATE_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION, REPLACE_ANNOTATION } from "../../shared/api/names.ts";
import { planOnly } from "../../shared/controller/rollout/dry-run.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { ledgerSubject } from "../../shared/core/ledger.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { type Asked, keyOf, podOf, replicaSet, rolloutPart, SET, setOf } from "./rollout-part.ts";

const ALL_AT_ONCE = { maxUnavailable: "100%" };
const GATE = { [GATE_ANNOTATION]: "https://gate.example.com/batch" };
/** Other fields than images have changed, so pods must be evicted. */
const REPLACES = { [REPLACE_ANNOTATION]: "NotUpgradable", [HASH_WITHOUT_IMAGE_ANNOTATION]: "hash1" };

/** Returns a pod that a ReplicaSet owns. */
function ownedPod(name: string): Pod {
  const { metadata, ...pod } = podOf(name);
  return { ...pod, metadata: { ...metadata, ownerReferences: [replicaSet("web")] } };
}

/** Plans a dry run. `reserved`: the pods that an ended pass has reserved. */
async function planOf(pods: readonly Pod[], asked: Asked, reserved: readonly string[] = []) {
  const { cluster, context, put, readPod, calls } = rolloutPart();
  const owner = setOf({ ...ALL_AT_ONCE, ...asked });
  put(owner, ...pods);
  const { uid, generation, revision } = ledgerSubject(owner);
  const reservations = reserved.map((name) => {
    const { uid: of = "", resourceVersion = "" } = readPod(name)?.metadata ?? {};
    return { ...keyOf(name), uid: of, resourceVersion, generation, revision };
  });
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, SET);
  await swapLedger(cluster, { namespace: KRUISE_NAMESPACE, owner }, stored, { uid, generation, reservations });
  const before = calls.length;
  const report = await planOnly(context, SET);
  const writes = calls.slice(before).filter(([, call]) => !/^(GET|LIST) /.test(call));
  const steps = report.planned?.filter((step) => /^(upgrade|evict|fence) pod|gate/.test(step));
  return { report, writes, steps };
}

const FENCED = "fence pod shop/other: it was reserved and is not wanted any more";
/** A reserved pod that the SidecarSet no longer selects. */
const OTHER: Pod = (() => {
  const { metadata, ...pod } = podOf("other");
  return { ...pod, metadata: { ...metadata, labels: { app: "other" } } };
})();

const upgradeOf = (name: string) =>
  `upgrade pod shop/${name}: proxy registry.example/proxy:1 → registry.example/proxy:2`;
const evictionOf = (name: string) => `evict pod shop/${name}: its controller creates another, with the sidecars of now`;

it("a dry run reports the counts and the pods that would be upgraded, and writes nothing", async () => {
  const { report, writes, steps } = await planOf([podOf("a"), podOf("b")], {});
  expect(report).toMatchObject({
    stop: "oneRound",
    why: "0 of 2 pods updated, 0 of them ready; 2 being upgraded",
    generation: 2,
  });
  expect(steps).toEqual([upgradeOf("a"), upgradeOf("b")]);
  expect(writes).toEqual([]);
});

it("a dry run names the pods that would be evicted", async () => {
  const { steps } = await planOf([ownedPod("a"), ownedPod("b")], { annotations: REPLACES });
  expect(steps).toEqual([evictionOf("a"), evictionOf("b")]);
});

it.each<[string, Pod, Asked]>([
  ["upgraded", podOf("a"), {}],
  ["evicted", ownedPod("a"), { annotations: REPLACES }],
])("a dry run names no pod that would be %s while another pod must be fenced first", async (_what, pod, asked) => {
  const { steps } = await planOf([pod, OTHER], asked, ["other"]);
  expect(steps).toEqual([FENCED]);
});

it("a dry run says that the gate would be called about pods that are not reserved", async () => {
  const { steps } = await planOf([podOf("a"), podOf("b")], { annotations: GATE }, ["a"]);
  expect(steps).toEqual([
    "ask the gate at gate.example.com whether 1 pod may be upgraded",
    upgradeOf("a"),
    upgradeOf("b"),
  ]);
});
