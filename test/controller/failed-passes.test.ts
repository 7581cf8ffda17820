/**
 * Tests passes that fail, one fault at a time: the status, the Event, the report, the alarm and the commands after one
 * and two passes.
 */
import { describe, expect, it } from "vitest";
import { logReport } from "../../functions/lambda/rollout.ts";
import { createMetrics } from "../../functions/server/metrics.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import type { ConfigMap } from "../../shared/api/kubernetes.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import type { PassReport } from "../../shared/controller/rollout/report.ts";
import type { EventObject } from "../../shared/core/inspect/report/rows.ts";
import { EMPTY_LEDGER, formatLedger, ledgerName } from "../../shared/core/ledger.ts";
import { storedVerdict } from "../../shared/core/rollout/conditions/verdict.ts";
import { lastTrouble } from "../../shared/core/rollout/pass-trouble.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { CONFIG_MAPS, EVENTS, NAMESPACES } from "../../shared/kube/port.ts";
import { createLog } from "../../shared/log.ts";
import { countedBy } from "../support/metric-filter.ts";
import { refusal } from "./bare-cluster.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { sharedClock, steppedClock } from "./stepped-clock.ts";

/** Returns a clock for whole passes, whose parts sleep at the same time. */
const passClock = () => ({ ...steppedClock(), ...sharedClock() });
const silence = () => new KubeError("no answer within 10 s", { code: 0, reason: "Timeout" });

/** Prepares a rollout of two old pods. `fault` answers calls while it lasts. */
function world(fault: Fault) {
  const state = { isFaulty: true, writes: 0 };
  const rival = (call: string) => {
    if (!/^(CREATE|PATCH) configmaps$/.test(call)) return undefined;
    const metadata = { namespace: KRUISE_NAMESPACE, name: ledgerName("web"), labels: { writes: `${++state.writes}` } };
    const ledger: ConfigMap = { metadata, data: formatLedger(EMPTY_LEDGER) };
    rollout.server.put("rival", CONFIG_MAPS, ledger);
    return undefined;
  };
  const faultNow = { rival, noLedger: () => undefined }[String(fault)] ?? (fault as typeof rival);
  const rollout = bareRollout("web", (call) => (state.isFaulty ? faultNow(call) : undefined), passClock());
  const { server, cluster, clock } = rollout;
  // Events about a SidecarSet are in this namespace, because a SidecarSet has none.
  server.put("test", NAMESPACES, { metadata: { name: "default", uid: "default" } });
  rollout.deploy(2, { maxUnavailable: 1 });
  rollout.release(2, { maxUnavailable: 1 });
  const ledger: ConfigMap = { metadata: { namespace: KRUISE_NAMESPACE, name: ledgerName("web") } };
  if (fault === "noLedger") server.put("test", CONFIG_MAPS, ledger);
  const end = () => {
    const good: ConfigMap = { ...ledger, data: formatLedger(EMPTY_LEDGER) };
    if (fault === "noLedger") server.put("test", CONFIG_MAPS, good);
    state.isFaulty = false;
  };
  const pass = (more: { readonly dryRun?: boolean } = {}): Promise<PassReport> =>
    runPass(cluster, {
      deadlineMs: 55_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      sidecarSet: "web",
      follow: true,
      settings: DEFAULT_ROLLOUT_SETTINGS,
      clock,
      memory: newPassMemory(),
      ...more,
    });
  const condition = (type: string) => {
    const found = rollout.readSet().status?.conditions?.find((one) => one.type === type);
    return found && `${found.status} ${found.reason} ${found.message}`;
  };
  const events = () => server.all<EventObject>(EVENTS).filter(({ reason }) => reason === "Blocked");
  return { ...rollout, pass, condition, events, end };
}

const onCall = (wanted: string, error: () => KubeError) => (call: string) => (call === wanted ? error() : undefined);

/** Returns how many log lines count for the alarm NeedsAttention, ten minutes after the fault began. */
async function alarmLines(report: PassReport): Promise<number> {
  const lines: object[] = [];
  const log = createLog("warn", (line) => void lines.push(JSON.parse(line)));
  const since = report.failing?.["web"] ?? report.sidecarSets[0]?.troubleSince ?? "";
  logReport(log, report, undefined, Date.parse(since) + 600_000);
  const { AttentionFilter = {} } = logFilters(await readSettings("sidecarset", "test", async () => ""));
  return countedBy(AttentionFilter, lines);
}

/**
 * A fault. "rival": another client writes the ledger before each write of the pass; "noLedger": another object has the
 * ledger's name.
 */
type Fault = ((call: string) => KubeError | undefined) | "rival" | "noLedger";

const FAULTS: readonly (readonly [string, Fault, string, RegExp])[] = [
  ["may not list pods", onCall("LIST pods", () => refusal(403, "no list of pods")), "PassRefused", /no list of pods/],
  ["may not read ledgers", onCall("GET configmaps", () => refusal(403, "no ledger")), "PassRefused", /no ledger/],
  ["may not write ledgers", onCall("CREATE configmaps", () => refusal(403, "not yours")), "PassRefused", /not yours/],
  [
    "may not list revisions",
    onCall("LIST controllerrevisions", () => refusal(403, "no revisions")),
    "PassRefused",
    /no revisions/,
  ],
  ["gets no answer about pods", onCall("LIST pods", silence), "Unreachable", /no answer within 10 s/],
  ["gets errors about pods", onCall("LIST pods", () => refusal(500, "etcd is down")), "Unreachable", /etcd is down/],
  ["finds no ledger in the place of its ledger", "noLedger", "PassFailed", /is no ledger of reservations/],
  ["loses each race for its ledger", "rival", "Contention", /others wrote/],
];

describe.each(FAULTS)("a pass that %s", (_, fault, reason, words) => {
  it("one failed pass is a warning, and more failed passes block with the cause, one Event and the same words everywhere", async () => {
    const { pass, condition, events, readSet } = world(fault);
    const first = await pass();
    expect(condition("Blocked")).toMatch(new RegExp(`^False ${reason} `));
    expect(first.sidecarSets[0]?.failure?.text).toMatch(words);
    expect(lastTrouble(readSet())?.isLasting).toBe(false);
    await pass();
    await pass();
    expect(condition("Blocked")).toMatch(new RegExp(`^True ${reason} `));
    expect(condition("Blocked")).toMatch(words);
    expect([condition("Ready"), condition("Stalled")]).toEqual([
      expect.stringMatching(/^False Blocked/),
      expect.stringMatching(/^True Blocked/),
    ]);
    expect(storedVerdict(readSet())).toMatchObject({ verdict: "Blocked", message: expect.stringMatching(words) });
    expect(events().map(({ message }) => message)).toEqual([expect.stringMatching(words)]);
  });

  it("a lasting fault triggers the alarm on AWS ten minutes after the first failed pass, and the chart's gauge at once", async () => {
    const { pass } = world(fault);
    await pass();
    const report = await pass();
    const metrics = createMetrics();
    metrics.addPass(report, 0);
    expect(await alarmLines(report)).toBe(1);
    expect(metrics.text()).toContain('sidecarset_in_trouble{sidecarset="web"} 1');
    const { cause } = report.sidecarSets[0] ?? {};
    expect(metrics.text()).toContain(`sidecarset_state{sidecarset="web",state="Blocked",cause="${cause}"} 1`);
  });

  it("the first pass that succeeds removes the warning and updates pods again", async () => {
    const { pass, condition, end, versions } = world(fault);
    await pass();
    await pass();
    end();
    await pass();
    expect(condition("Blocked")).toMatch(/^False NotBlocked/);
    expect(condition("Progressing")).toMatch(/^True/);
    expect(versions()).toContain("2");
  });

  it("a dry run of a failing pass writes nothing", async () => {
    const { pass, calls } = world(fault);
    await pass({ dryRun: true });
    expect(calls.filter(([, call]) => /^(PATCH|CREATE)/.test(call))).toEqual([]);
  });
});

it("a pass writes the status once for a failure that repeats", async () => {
  const { pass, calls } = world(onCall("LIST pods", () => refusal(500, "etcd is down")));
  await pass();
  expect(calls.filter(([, call]) => call === "PATCH sidecarsets/status")).toHaveLength(1);
  expect(calls.filter(([, call]) => call === "LIST pods refused").length).toBeGreaterThan(2);
});

it("a pass continues and updates pods after the API server was too busy for six seconds", async () => {
  const rollout = world(() => undefined);
  const { clock } = rollout;
  const busy = world((call) => (call === "LIST pods" && busy.clock.now() < 6_000 ? refusal(429, "busy") : undefined));
  expect(clock.now()).toBe(0);
  const report = await busy.pass();
  expect(report.sidecarSets[0]?.failure).toBeUndefined();
  expect(busy.versions()).toContain("2");
  expect(busy.condition("Blocked")).toMatch(/^False NotBlocked/);
});
