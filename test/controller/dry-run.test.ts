/**
 * Tests the steps that a dry run prints before the pods. A dry run calls no gate and no metrics server, and writes
 * nothing.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import {
  GATE_ANNOTATION,
  HALT_ON_ANNOTATION,
  METRICS_ANNOTATION,
  UNDO_ON_HALT_ANNOTATION,
  WAVES_ANNOTATION,
} from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { planOnly } from "../../shared/controller/rollout/dry-run.ts";
import { readLedger, swapLedger } from "../../shared/controller/rollout/ledger-store.ts";
import { newTally } from "../../shared/controller/rollout/report.ts";
import { ledgerSubject } from "../../shared/core/ledger.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { type Cluster, SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  eventually,
  KRUISE_NAMESPACE,
  NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
} from "./fixture.ts";

let local: TestCluster;
let cluster: Cluster;
beforeAll(async () => {
  local = await startTestCluster();
  cluster = local.cluster;
});
afterAll(() => local?.close());

const plan = (name: string) =>
  planOnly(
    {
      cluster,
      clock: systemClock,
      kruiseNamespace: KRUISE_NAMESPACE,
      endsAtMs: Number.POSITIVE_INFINITY,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      tally: newTally(),
      recorded: new Set<string>(),
    },
    name,
  );

/** Returns the steps before the writes: revisions, counts, pods and their conditions. */
async function stepsBefore(name: string): Promise<readonly string[] | undefined> {
  const written = /^(create ControllerRevision|write the status|upgrade pod|set condition) /;
  return (await plan(name)).planned?.filter((step) => !written.test(step));
}

const annotate = (name: string, annotations: Readonly<Record<string, string>>) =>
  cluster.patch<SidecarSet>(SIDECARSETS, { name }, { type: "merge", body: { metadata: { annotations } } });

const CHECKS = JSON.stringify([
  { name: "errors", query: "errors", max: 5 },
  { name: "latency", query: "latency", max: 1 },
]);
const GATE = "https://gate.example.com/batch?token=secret";

it("a dry run reports a missing SidecarSet as gone", async () => {
  const why = "there is no such SidecarSet";
  expect(await plan("absent")).toEqual({ name: "absent", stop: "gone", why, tally: newTally() });
});

it.each<[string, Readonly<Record<string, string>>, number, readonly string[]]>([
  ["one-checked", { [METRICS_ANNOTATION]: CHECKS }, 1, ["evaluate errors, latency before 1 pod is upgraded"]],
  ["two-checked", { [METRICS_ANNOTATION]: CHECKS }, 2, ["evaluate errors, latency before 2 pods are upgraded"]],
  ["one-gated", { [GATE_ANNOTATION]: GATE }, 1, ["ask the gate at gate.example.com whether 1 pod may be upgraded"]],
  ["two-gated", { [GATE_ANNOTATION]: GATE }, 2, ["ask the gate at gate.example.com whether 2 pods may be upgraded"]],
  [
    "both",
    { [METRICS_ANNOTATION]: CHECKS, [GATE_ANNOTATION]: GATE },
    1,
    [
      "evaluate errors, latency before 1 pod is upgraded",
      "ask the gate at gate.example.com whether 1 pod may be upgraded",
    ],
  ],
])(
  "a dry run names the metric checks and the gate call before a batch of SidecarSet %s",
  async (name, annotations, pods, steps) => {
    await deploy(cluster, name, pods, { maxUnavailable: 2 });
    await annotate(name, annotations);
    expect(await stepsBefore(name)).toEqual([]);
    await release(cluster, name, 2, { maxUnavailable: 2 });
    expect(await stepsBefore(name)).toEqual(steps);
  },
);

it("a dry run names the metric checks before a wave is passed", async () => {
  const stages = { dev: [NAMESPACE], prod: ["elsewhere"] };
  const waves = Object.entries(stages).map(([name, values]) => ({
    name,
    namespaceSelector: { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values }] },
  }));
  await deploy(cluster, "waves", 1, {});
  await annotate("waves", { [METRICS_ANNOTATION]: CHECKS, [WAVES_ANNOTATION]: JSON.stringify(waves) });
  expect(await stepsBefore("waves")).toEqual(["evaluate errors, latency before wave dev is passed"]);
});

it("a dry run says that a reserved pod would be fenced when its upgrade is no longer wanted", async () => {
  await deploy(cluster, "fenced", 1, {});
  await release(cluster, "fenced", 2, { paused: true });
  const owner = await readSet(cluster, "fenced");
  const [pod] = await readPods(cluster, "fenced");
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = pod?.metadata ?? {};
  const { generation, revision, ...of } = ledgerSubject(owner);
  const reservations = [{ namespace, name, uid, resourceVersion, generation, revision }];
  const place = { namespace: KRUISE_NAMESPACE, owner };
  const stored = await readLedger(cluster, KRUISE_NAMESPACE, "fenced");
  await swapLedger(cluster, place, stored, { uid: of.uid, generation, reservations });
  expect(await stepsBefore("fenced")).toEqual(["fence pod shop/fenced-0: it was reserved and is not wanted any more"]);
});

const isPullFailing = ({ status }: Pod) =>
  status?.containerStatuses?.some(({ state }) => /ImagePull/.test(state?.waiting?.reason ?? ""));

it("a dry run says that a halted release would be undone", async () => {
  const name = "halted";
  const options = { kruiseNamespace: KRUISE_NAMESPACE, deadlineMs: 10_000, settings: DEFAULT_ROLLOUT_SETTINGS };
  const pass = () => runPass(cluster, { ...options, follow: false, sidecarSet: name });
  await deploy(cluster, name, 2, {});
  await annotate(name, { [HALT_ON_ANNOTATION]: "0", [UNDO_ON_HALT_ANNOTATION]: "true" });
  await pass();
  await release(cluster, name, 2, { image: "registry.example/proxy:does-not-exist" });
  await pass();
  await eventually(async () => expect((await readPods(cluster, name)).some(isPullFailing)).toBe(true));
  expect(await stepsBefore(name)).toEqual([
    "SidecarSet halted: put back to revision 1, since 1 of 1 updated pods fail, and sidecarset.kruise.io/halt-on is 0",
  ]);
});
