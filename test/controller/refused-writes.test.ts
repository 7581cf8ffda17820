/** Tests writes that an API server refuses, from the fault to the texts and the alarm. */
import { describe, expect, it } from "vitest";
import { logReport } from "../../functions/lambda/rollout.ts";
import { createMetrics } from "../../functions/server/metrics.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { explain } from "../../shared/controller/rollout/dry-run.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import type { EventObject } from "../../shared/core/inspect/report/rows.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import type { KubeError } from "../../shared/kube/error.ts";
import { EVENTS, NAMESPACES } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { countedBy } from "../support/metric-filter.ts";
import { refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { sharedClock, steppedClock } from "./stepped-clock.ts";

const WORDS = 'pods "web-0" is forbidden: not on a Friday';
const DEADLINE_MS = 55_000;

/** Returns a clock for whole passes, whose parts sleep at the same time. */
const passClock = () => ({ ...steppedClock(), ...sharedClock() });

function passOn({ cluster, clock }: ReturnType<typeof bareRollout>): Promise<PassReport> {
  return runPass(cluster, {
    deadlineMs: DEADLINE_MS,
    kruiseNamespace: KRUISE_NAMESPACE,
    sidecarSet: "web",
    follow: true,
    settings: DEFAULT_ROLLOUT_SETTINGS,
    clock,
    memory: newPassMemory(),
  });
}

/** Returns how many log lines count for the alarm NeedsAttention, ten minutes after the fault began. */
async function alarmLines(report: PassReport): Promise<number> {
  const lines: object[] = [];
  const log = createLog("warn", (line) => void lines.push(JSON.parse(line)));
  const since = report.failing?.["web"] ?? report.sidecarSets[0]?.troubleSince ?? "";
  logReport(log, report, undefined, Date.parse(since) + 600_000);
  const { AttentionFilter = {} } = logFilters(await readSettings("sidecarset", "test", async () => ""));
  return countedBy(AttentionFilter, lines);
}

/** Prepares a rollout of two pods whose writes are refused while `isRefusing`. */
function world(error = () => refusal(403, WORDS)) {
  const state = { isRefusing: true };
  const refuse = (call: string): KubeError | undefined =>
    state.isRefusing && call === "PATCH pods" ? error() : undefined;
  const rollout = bareRollout("web", refuse, passClock());
  // Events about a SidecarSet are in this namespace, because a SidecarSet has none.
  rollout.server.put("test", NAMESPACES, { metadata: { name: "default", uid: "default" } });
  rollout.deploy(2, { maxUnavailable: 1 });
  rollout.release(2, { maxUnavailable: 1 });
  const pass = async () => {
    await rollout.clock.sleep(60_000);
    return passOn(rollout);
  };
  const condition = (type: string) => {
    const found = rollout.readSet().status?.conditions?.find((one) => one.type === type);
    return `${found?.status} ${found?.reason} ${found?.message}`;
  };
  return { ...rollout, pass, condition, allow: () => Object.assign(state, { isRefusing: false }) };
}

describe("a pass whose writes are all refused", () => {
  it("a pass with a refused write ends early, and its report names the pod and the API server's message", async () => {
    const { pass, clock } = world();
    const report = await pass();
    const [set] = report.sidecarSets;
    expect(clock.now()).toBeLessThan(60_000 + 10_000);
    expect(set?.stop).toBe("refused");
    expect(set?.why).toMatch(/^the pass ended early, because every write that is left is refused/);
    expect(set?.why).toContain(WORDS);
    expect(set?.why).toContain("pod shop/web-");
  });

  it("the status warns after the first refused pass, and blocks after the second, with one Event", async () => {
    const { pass, condition, server } = world();
    await pass();
    expect(condition("Blocked")).toMatch(/^False Refused the API server refuses to change pod shop\/web-\d: .*Friday$/);
    const { sidecarSets } = await pass();
    expect(condition("Blocked")).toMatch(/^True Refused the API server refuses to change pod shop\/web-\d: .*Friday$/);
    expect(condition("Ready")).toMatch(/^False Blocked/);
    expect(condition("Progressing")).toMatch(/^False Refused/);
    expect(sidecarSets[0]?.state).toBe("Blocked");
    await pass();
    const events = server.all<EventObject>(EVENTS);
    const told = events.filter(({ reason }) => reason === "Blocked");
    expect(told).toHaveLength(1);
    expect(told[0]?.message).toContain(WORDS);
  });

  it("a pass continues with other pods while one pod refuses, and the status names that pod", async () => {
    const refused = (call: string, nth: number) =>
      call === "PATCH pods" && nth % 2 === 1 ? refusal(403, WORDS) : undefined;
    const rollout = bareRollout("web", refused, passClock());
    rollout.deploy(2, { maxUnavailable: 2 });
    rollout.release(2, { maxUnavailable: 2 });
    const report = await passOn(rollout);
    expect(rollout.versions()).toContain("2");
    expect(report.sidecarSets[0]?.tally.problems).toMatchObject([{ message: WORDS }]);
    const blocked = rollout.readSet().status?.conditions?.find(({ type }) => type === "Blocked");
    expect(blocked?.status).toBe("False");
  });

  it("the status is no longer Blocked as soon as writes are accepted again", async () => {
    const { pass, condition, allow } = world();
    await pass();
    await pass();
    allow();
    await pass();
    expect(condition("Blocked")).toMatch(/^False NotBlocked/);
    expect(condition("Progressing")).toMatch(/^True/);
  });

  it("refused writes raise the alarm: the log line changes the alarm's metric, and the Helm chart's gauge is 1", async () => {
    const { pass } = world();
    expect(await alarmLines(await pass())).toBe(0);
    const report = await pass();
    expect(await alarmLines(report)).toBe(1);
    const metrics = createMetrics();
    metrics.addPass(report, 0);
    expect(metrics.text()).toContain('sidecarset_in_trouble{sidecarset="web"} 1');
  });
});

it("while the API server answers 429 to each patch of a pod, the status warns, then blocks, and the alarm is raised", async () => {
  const { pass, condition, allow } = world(() => refusal(429, "the server is currently unable to handle the request"));
  await pass();
  expect(condition("Blocked")).toMatch(
    /^False Refused the API server is too busy to change pods \(429\), such as shop\/web-\d: the server/,
  );
  const report = await pass();
  expect(condition("Blocked")).toMatch(/^True Refused .*unable to handle the request$/);
  expect(report.sidecarSets[0]?.why).toContain("unable to handle the request");
  expect(await alarmLines(report)).toBe(1);
  allow();
  await pass();
  expect(condition("Blocked")).toMatch(/^False NotBlocked/);
});

it("a pass that may not list pods fails and raises the same alarm", async () => {
  const rollout = bareRollout("web", (call) => (call === "LIST pods" ? refusal(403, "no list of pods") : undefined));
  rollout.deploy(1);
  await passOn(rollout);
  const report = await passOn(rollout);
  expect(report.sidecarSets[0]).toMatchObject({ stop: "failed", why: expect.stringContaining("no list of pods") });
  expect(await alarmLines(report)).toBe(1);
});

it("a pass that may not write its ledger reports a refusal, and not a conflict with other passes", async () => {
  const rollout = bareRollout("web", (call) =>
    call === "CREATE configmaps" ? refusal(403, "no ConfigMaps") : undefined,
  );
  rollout.deploy(1);
  rollout.release(2);
  const report = await passOn(rollout);
  expect(report.sidecarSets[0]).toMatchObject({ stop: "failed", why: expect.stringContaining("no ConfigMaps") });
  expect(explain("contention", undefined)).not.toContain("ConfigMaps");
});
