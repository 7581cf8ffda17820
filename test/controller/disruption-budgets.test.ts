/**
 * Tests reads of disruption budgets: how long a result is reused, and which kind of budget may be missing in a cluster.
 */
import { expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { readDisruptionBudgets } from "../../shared/controller/rollout/disruption-budgets.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import type { KubeError } from "../../shared/kube/error.ts";
import { DISRUPTION_BUDGETS } from "../../shared/kube/port.ts";
import { bareCluster, type Refuse, refusal } from "./bare-cluster.ts";
import { NAMESPACE } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

const LISTS = ["LIST poddisruptionbudgets", "LIST podunavailablebudgets"];

/** Returns a cluster with one budget of Kubernetes and without OpenKruise's kind. */
function stage(refuse?: Refuse) {
  const stepped = steppedClock();
  const { clock } = stepped;
  const { cluster, server, calls } = bareCluster(stepped, refuse);
  const budget = { metadata: { namespace: NAMESPACE, name: "web", uid: "web" }, spec: {}, status: {} };
  server.put("test", DISRUPTION_BUDGETS, budget as KubernetesObject);
  const settings = { ...DEFAULT_ROLLOUT_SETTINGS, RespectDisruptionBudgets: true };
  const read = async () => (await readDisruptionBudgets({ cluster, clock, settings })).map(({ name }) => name);
  return { clock, read, lists: () => calls.map(([, call]) => call) };
}

it("readDisruptionBudgets reuses its result for half a second", async () => {
  const { clock, read, lists } = stage();
  // The pass began ten seconds ago.
  await clock.sleep(10_000);
  expect(await read()).toEqual(["web"]);
  expect(lists()).toEqual(LISTS);
  await clock.sleep(499);
  expect(await read()).toEqual(["web"]);
  expect(lists()).toEqual(LISTS);
  await clock.sleep(1);
  expect(await read()).toEqual(["web"]);
  expect(lists()).toEqual([...LISTS, ...LISTS]);
});

/** Returns why budgets could not be read when this list is refused. */
async function whyNot(list: string, error: KubeError): Promise<unknown> {
  const { read } = stage((call) => (call === list ? error : undefined));
  return read().catch((reason: unknown) => reason);
}

it("a cluster may lack OpenKruise's budgets but not Kubernetes' own", async () => {
  const absent = refusal(404, "NotFound");
  expect(await whyNot("LIST podunavailablebudgets", absent)).toEqual(["web"]);
  expect(await whyNot("LIST poddisruptionbudgets", absent)).toBe(absent);
});

it.each(["poddisruptionbudgets", "podunavailablebudgets"])(
  "the error names the missing role when listing %s is forbidden, and any other error is passed on unchanged",
  async (plural) => {
    const forbidden = refusal(403, "Forbidden");
    const why = await whyNot(`LIST ${plural}`, forbidden);
    expect(why).toMatchObject({
      message: `${plural} may not be listed, which gate RespectDisruptionBudgets needs: apply infra/rbac/optional/disruption-budgets.yaml, or switch the gate off`,
      cause: forbidden,
    });
    const busy = refusal(503, "ServiceUnavailable");
    expect(await whyNot(`LIST ${plural}`, busy)).toBe(busy);
  },
);
