/** Tests Advanced StatefulSets whose author demands far too many pods, or reserves far too many ordinals. */
import { expect, it } from "vitest";
import type { Namespace } from "../../shared/api/kubernetes.ts";
import type { StatefulSetSpec } from "../../shared/api/stateful-set.ts";
import { runSetPass } from "../../shared/controller/statefulset/pass.ts";
import { planSet } from "../../shared/core/statefulset/plan/simulated-world.ts";
import { ordinalRange } from "../../shared/core/statefulset/pods/ordinals.ts";
import { DEFAULT_STATEFUL_SET_FEATURE_GATES } from "../../shared/core/statefulset/step.ts";
import { NAMESPACES, STATEFUL_SETS } from "../../shared/kube/port.ts";
import { bareCluster } from "../controller/bare-cluster.ts";
import { steppedClock } from "../controller/stepped-clock.ts";
import { revisionOfSet, seenOf, setOf } from "../core/ordered-set/fixture.ts";
import { growsLinearly } from "../support/growth.ts";

const KRUISE_NAMESPACE = "kruise-system";
const gates = DEFAULT_STATEFUL_SET_FEATURE_GATES;
const MOST = 20_000;

it.each([
  ["in order", MOST / 16, { partition: 1 }],
  ["without order", MOST / 64, { partition: 1, unorderedUpdate: {} }],
] as const)(
  "the work to plan an update %s grows only linearly with the replicas of a set",
  (_, small, rollingUpdate) => {
    const seen = (replicas: number) =>
      seenOf(setOf({ replicas, updateStrategy: { type: "RollingUpdate", rollingUpdate } }), [], []);
    const surroundings = { claims: [] };
    expect(growsLinearly(seen, (one) => planSet(one, surroundings), small)).toBe(true);
  },
);

const TOO_LARGE: readonly (readonly [string, StatefulSetSpec, string])[] = [
  [
    "20,001 replicas",
    { replicas: MOST + 1 },
    "spec.replicas: 20001 is more than 20000, and passes make, update and delete no pod of the set: lower it",
  ],
  [
    "2,147,483,647 replicas",
    { replicas: 2 ** 31 - 1 },
    "spec.replicas: 2147483647 is more than 20000, and passes make, update and delete no pod of the set: lower it",
  ],
  [
    "a reserved range of 20,001 ordinals",
    { reserveOrdinals: [`5-${MOST + 5}`] },
    "spec.reserveOrdinals: its ranges have 20001 ordinals, more than 20000, and passes make, update and delete no pod of the set: reserve fewer",
  ],
  [
    "200 reserved ranges of 20,000 ordinals each",
    { reserveOrdinals: Array.from({ length: 200 }, (_, nth) => `${nth * MOST}-${(nth + 1) * MOST - 1}`) },
    "spec.reserveOrdinals: its ranges have 4000000 ordinals, more than 20000, and passes make, update and delete no pod of the set: reserve fewer",
  ],
  ...["9007199254740992-9007199254740994", 9007199254740992, -1e20, Number.POSITIVE_INFINITY].map(
    (entry) =>
      [
        `the reserved ${typeof entry === "number" ? "number" : "range"} ${entry}, to which one cannot be added`,
        { reserveOrdinals: [entry] },
        `spec.reserveOrdinals: ${Number.parseFloat(`${entry}`)} is no ordinal, and passes make, update and delete no pod of the set: correct it`,
      ] as const,
  ),
  [
    "more than 1,000,000 claims, volumes and labels of pods",
    {
      replicas: MOST,
      volumeClaimTemplates: ["a", "b", "c", "d", "e"].map((name) => ({ metadata: { name } })),
      template: { metadata: { labels: { app: "db" } }, spec: { containers: [] } },
    },
    "spec.replicas: 20000 pods with 56 labels, volumes and claims each (a claim counts as 10) have more than 1000000, and passes make, update and delete no pod of the set: lower one of them",
  ],
];

it.each(TOO_LARGE)("a set with %s is refused, and the set of another namespace gets its pod", async (_, spec, why) => {
  const stepped = steppedClock();
  const { cluster, server } = bareCluster(stepped);
  for (const name of ["aaa", "zzz", KRUISE_NAMESPACE])
    server.put("test", NAMESPACES, { metadata: { name, uid: name } } as Namespace);
  const put = (namespace: string, more: StatefulSetSpec) =>
    server.put("test", STATEFUL_SETS, {
      ...setOf({ replicas: 1, ...more }),
      metadata: { namespace, name: "db", uid: namespace },
    });
  put("aaa", spec);
  put("zzz", {});
  const options = { deadlineMs: 60_000, kruiseNamespace: KRUISE_NAMESPACE, clock: stepped.clock, follow: false, gates };
  const dry = await runSetPass(cluster, { ...options, dryRun: true });
  const { sets } = await runSetPass(cluster, options);
  const shown = (of: typeof sets) => of.map((set) => [set.namespace, set.stop, set.why]);
  const [left, right] = [
    ["aaa", "failed", why],
    ["zzz", "oneRound", expect.stringContaining("0 of 1 pods")],
  ];
  expect([shown(sets), shown(dry.sets)]).toEqual([
    [left, right],
    [left, right],
  ]);
});

it("a set is refused for the labels of pods that only an older revision has", () => {
  const labels = Object.fromEntries(Array.from({ length: 51 }, (_, nth) => [`label-${nth}`, ""]));
  const template = { metadata: { labels }, spec: { containers: [] } };
  const older = revisionOfSet(setOf({ template }), 1);
  const counts = { replicas: 0, readyReplicas: 0, currentReplicas: 0, updatedReplicas: 0, availableReplicas: 0 };
  const set = {
    ...setOf({ replicas: MOST }),
    status: { ...counts, currentRevision: older.metadata?.name ?? "" },
  };
  const { outcome } = planSet(seenOf(set, [], [older]), { claims: [] });
  expect(outcome.failure?.message).toMatch(/^spec.replicas: 20000 pods with 51 labels/);
});

it("a set with 20,000 replicas and 20,000 reserved ordinals is accepted", () => {
  const { end } = ordinalRange({ replicas: MOST, reserveOrdinals: [`0-${MOST - 1}`] }, false);
  expect(end).toBe(2 * MOST);
});
