/** Rolls out while any call to a real API server may fail. Each rollout must reach its end within its budget. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { controlPlane } from "./support/access.ts";
import { readAudit } from "./support/audit.ts";
import type { Exchange } from "./support/fault-proxy.ts";
import { FAULTS, type FaultName, strikes, sum } from "./support/faults.ts";
import { addFigure } from "./support/figures.ts";
import { expectHeld, type Fleet, openFleet, type Rolled } from "./support/fleet.ts";
import { type ProxiedReconciler, startProxiedReconciler } from "./support/proxied-reconciler.ts";
import { size } from "./support/size.ts";

/** Number of rollouts for each kind of fault. */
const ROLLOUTS = size({ ci: 3, soak: 50 });
const AT_ONCE = Math.min(ROLLOUTS, 5);
const TIMEOUT_MS = (ROLLOUTS / AT_ONCE) * 180_000;

/** Without faults there are about 30 calls a second; retries without a pause make thousands. */
const MAX_CALLS_PER_SECOND = 200;

let reconciler: ProxiedReconciler;
let fleet: Fleet;
/** namespace → number of the reconciler's writes to pods, from etcd */
const podWrites = new Map<string, number>();

beforeAll(async () => {
  reconciler = await startProxiedReconciler(controlPlane());
});
afterEach(() => reconciler?.proxy.disturb(undefined));
afterAll(async () => {
  await fleet?.close();
  await reconciler?.close();
});

interface Course {
  readonly name: string;
  readonly hits: ReadonlyMap<string, number>;
  /** called before each new image of the fleet; returns the fault of the calls that follow */
  readonly disturb: () => (exchange: Exchange) => boolean;
}

/** Repeats a course until every fault has occurred, and prints the figures. */
async function runCourse({ name, hits, disturb }: Course): Promise<void> {
  const { proxy } = reconciler;
  const [callsBefore, began] = [proxy.calls(), performance.now()];
  const rolled: Rolled[] = [];
  while (rolled.length < ROLLOUTS) {
    proxy.disturb(disturb());
    rolled.push(...(await fleet.roll()));
  }
  for (const each of rolled) podWrites.set(each.namespace, (podWrites.get(each.namespace) ?? 0) + each.podWrites);
  const figures = {
    rollouts: rolled.length,
    seconds: Math.round((performance.now() - began) / 100) / 10,
    calls: proxy.calls() - callsBefore,
    struck: sum(hits.values()),
    "states of pods": sum(rolled.map(({ states }) => states)),
    "pod writes": sum(rolled.map((each) => each.podWrites)),
  };
  const told = [...Object.entries(figures), ...hits].map(([what, count]) => `${what} ${count}`);
  process.stdout.write(`${name}: ${told.join(", ")}\n`);
  addFigure("rollouts with faults", rolled.length);
  addFigure("calls with faults", figures.struck);
  addFigure("states of pods looked at for the budget", figures["states of pods"]);
  expect(figures.calls / figures.seconds).toBeLessThan(MAX_CALLS_PER_SECOND);
  expectHeld(rolled);
  expect(sum(rolled.map(({ fences }) => fences))).toBeLessThanOrEqual(hits.get("PATCH pods") ?? 0);
}

it("a rollout completes without faults", { timeout: TIMEOUT_MS }, async () => {
  fleet = await openFleet(reconciler, AT_ONCE);
  await runCourse({ name: "without faults", hits: new Map(), disturb: () => () => false });
});

it.each(Object.keys(FAULTS) as FaultName[])("%s", { timeout: TIMEOUT_MS }, async (name) => {
  const { disturb, hits } = strikes(name);
  const inShortPages = (exchange: Exchange) => {
    exchange.call.url.searchParams.set("limit", "2");
    return disturb(exchange);
  };
  await runCourse({ name, hits, disturb: () => (name === "410 on continue" ? inShortPages : disturb) });
  expect(sum(hits.values())).toBeGreaterThanOrEqual(ROLLOUTS);
});

/** Makes the token invalid from the first write to a pod until the kubeconfig has a new token. */
function expireToken(hits: Map<string, number>): (exchange: Exchange) => boolean {
  const old = reconciler.token();
  let refusals = 0;
  return (exchange) => {
    const { name, token } = exchange.call;
    if (token !== old || (refusals === 0 && name !== "PATCH pods")) return false;
    refusals += 1;
    hits.set(name, (hits.get(name) ?? 0) + 1);
    if (refusals === AT_ONCE) void reconciler.renewToken();
    exchange.pass({ token: "expired" });
    return true;
  };
}

it("a rollout continues when its expired token is renewed later", { timeout: TIMEOUT_MS }, async () => {
  const hits = new Map<string, number>();
  await runCourse({ name: "an expired token", hits, disturb: () => expireToken(hits) });
  expect(sum(hits.values())).toBeGreaterThanOrEqual(ROLLOUTS);
});

it("the audit log has exactly the writes to pods that the tests counted", async () => {
  const counted = () => {
    const patches = readAudit(controlPlane().auditLog).filter(
      ({ objectRef, user, verb, responseStatus }) =>
        objectRef?.resource === "pods" &&
        objectRef.subresource === undefined &&
        verb === "patch" &&
        responseStatus?.code === 200 &&
        user.username.endsWith(":sidecarset-reconciler"),
    );
    const of = (namespace: string) => patches.filter(({ objectRef }) => objectRef?.namespace === namespace).length;
    return Object.fromEntries([...podWrites.keys()].map((namespace) => [namespace, of(namespace)]));
  };
  expect(sum(podWrites.values())).toBeGreaterThan(0);
  await expect.poll(counted).toEqual(Object.fromEntries(podWrites));
});
