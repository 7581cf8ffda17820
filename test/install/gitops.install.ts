/** Tests a SidecarSet's health in Argo CD and Flux, with their own interpreter and library. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { SidecarSet, StatusCondition } from "../../shared/api/sidecarset.ts";
import { conditionsOf, type Standing } from "../../shared/core/rollout/conditions/conditions.ts";
import { ROLLOUT_VERDICTS, type RolloutVerdict } from "../../shared/core/rollout/conditions/verdict.ts";
import { ACTIONS_KEY, argoCdConfigMap, HEALTH_KEY } from "../../shared/install/argocd.ts";
import { objectsIn, ROOT, run } from "./run.ts";

const NOW = "2026-01-01T00:00:00Z";
const FAILING = [{ namespace: "shop", name: "web-0", why: "agent: ImagePullBackOff" }];

function standing(summary: object, rest: Partial<Omit<Standing, "summary">> = {}): Standing {
  const counts = { matched: 10, updated: 10, ready: 10, updatedReady: 10, waiting: 0, notUpgradable: 0, partition: 0 };
  const calm = {
    ...counts,
    immutableFields: [],
    inFlight: 0,
    maxUnavailable: 2,
    used: 0,
    down: [],
    selected: 0,
    problems: [],
    rules: {},
  };
  return { summary: { ...calm, hold: "finished", ...summary }, failing: [], missed: [], ...rest };
}

const half = { updated: 5, updatedReady: 5 };
const STANDINGS: Readonly<Record<RolloutVerdict, Standing>> = {
  Ready: standing({}),
  Updating: standing({ updatedReady: 9 }),
  Incomplete: standing({ ...half, hold: "nothingWaits" }),
  HeldByPartition: standing({ ...half, hold: "partition", partition: 5 }),
  Paused: standing({ ...half, hold: "paused" }),
  WaitingForApproval: standing({ ...half, hold: "gate", gate: "no" }),
  WaitingForMetrics: standing({ ...half, hold: "metrics", metrics: { reason: "no", isPaced: false, seconds: 9 } }),
  NotUpgradable: standing({ ...half, hold: "nothingWaits", notUpgradable: 1 }),
  Degraded: standing({ hold: "budget", updated: 4, updatedReady: 2, used: 2, selected: 1 }, { failing: FAILING }),
  Blocked: standing({ hold: "budget", updated: 4, updatedReady: 2, used: 2 }, { failing: FAILING }),
  Halted: standing({ hold: "halted" }, { halt: "3 of 4 fail" }),
};

const set = (status?: SidecarSet["status"], more: object = {}) => ({
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "agent", generation: 2 },
  spec: {},
  ...(status ? { status } : {}),
  ...more,
});

const standingAs = (verdict: RolloutVerdict) => {
  const conditions: readonly StatusCondition[] = conditionsOf(set(), STANDINGS[verdict], NOW);
  return set({ observedGeneration: 2, conditions });
};

const counts = { observedGeneration: 2, matchedPods: 3, updatedPods: 3, updatedReadyPods: 3 };
const CASES: readonly (readonly [string, object, health: string, kstatus: string, flux?: string])[] = [
  ["Ready", standingAs("Ready"), "Healthy", "Current"],
  ["HeldByPartition", standingAs("HeldByPartition"), "Healthy", "Current"],
  ["Updating", standingAs("Updating"), "Progressing", "InProgress"],
  ["Incomplete", standingAs("Incomplete"), "Progressing", "InProgress"],
  ["Paused", standingAs("Paused"), "Suspended", "InProgress"],
  ["WaitingForApproval", standingAs("WaitingForApproval"), "Suspended", "InProgress"],
  ["WaitingForMetrics", standingAs("WaitingForMetrics"), "Progressing", "InProgress"],
  ["Degraded", standingAs("Degraded"), "Degraded", "InProgress"],
  ["NotUpgradable", standingAs("NotUpgradable"), "Degraded", "Failed"],
  ["Blocked", standingAs("Blocked"), "Degraded", "Failed"],
  ["Halted", standingAs("Halted"), "Degraded", "Failed"],
  ["new", set(), "Progressing", "Current", "Unknown"],
  ["changed since", set({ ...standingAs("Ready").status, observedGeneration: 1 }), "Progressing", "InProgress"],
  [
    "going",
    set(standingAs("Ready").status, { metadata: { name: "agent", deletionTimestamp: NOW } }),
    "Progressing",
    "Terminating",
    "Current",
  ],
  ["done, by counts", set(counts), "Healthy", "Current", "Unknown"],
  ["under way, by counts", set({ ...counts, updatedReadyPods: 2 }), "Progressing", "Current", "Unknown"],
  [
    "paused, by counts",
    set({ ...counts, updatedPods: 1 }, { spec: { updateStrategy: { paused: true } } }),
    "Suspended",
    "Current",
    "Unknown",
  ],
];

interface Seen {
  /** each script's result: `discovery`, and the actions by name */
  readonly actions: Readonly<Record<string, unknown>>;
  readonly argocd: { readonly status: string; readonly message: string };
  readonly kstatus: string;
  readonly flux: string;
}

/** Returns the expressions of the page's Kustomization. */
async function expressions(): Promise<{ readonly failed: string; readonly current: string }> {
  const page = await readFile(join(ROOT, "docs/gitops.md"), "utf8");
  const blocks = [...page.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, block = ""]) => parse(block));
  const [expressions] = blocks.flatMap(({ spec }) => spec.healthCheckExprs ?? []);
  return expressions;
}

const STRATEGIES = {
  running: { type: "RollingUpdate", maxUnavailable: 2 },
  paused: { type: "RollingUpdate", paused: true, partition: "50%" },
  canary: { partition: "90%" },
  none: undefined,
} as const;

/** Returns a SidecarSet with one of the strategies above. */
function objectOf(name: keyof typeof STRATEGIES): object {
  const injectionStrategy = { revision: { revisionName: "agent-1", policy: name === "canary" ? "Partial" : "Always" } };
  const updateStrategy = STRATEGIES[name];
  return { ...set(), spec: { injectionStrategy, ...(updateStrategy ? { updateStrategy } : {}) } };
}

describe("the health and the actions of a SidecarSet in GitOps tools", { timeout: 300_000 }, () => {
  const { data } = argoCdConfigMap();
  let seen: readonly Seen[];
  beforeAll(async () => {
    const program = join(ROOT, ".cache", "gitops-health");
    await run("go", ["build", "-trimpath", "-o", program, "."], { cwd: join(ROOT, "test/install/gitops") });
    const names = Object.keys(STRATEGIES) as readonly (keyof typeof STRATEGIES)[];
    const objects = [...CASES.map(([, object]) => object), ...names.map(objectOf)];
    const { definitions, "discovery.lua": discovery } = parse(data[ACTIONS_KEY] ?? "");
    const scripts = definitions.map((one: Readonly<Record<string, string>>) => [one["name"], one["action.lua"]]);
    const actions = { discovery, ...Object.fromEntries(scripts) };
    const { failed, current } = await expressions();
    const input = JSON.stringify({ script: data[HEALTH_KEY], actions, failed, current, objects });
    seen = JSON.parse(await run(program, [], { input }));
  }, 300_000);

  it("the Argo CD scenes cover every state", () => {
    const named = CASES.map(([name]) => name);
    for (const verdict of ROLLOUT_VERDICTS) expect(named).toContain(verdict);
    for (const verdict of ROLLOUT_VERDICTS)
      expect(standingAs(verdict).status?.conditions?.find(({ type }) => type === "Ready")?.reason).toBe(verdict);
  });

  it.each(CASES.map(([name], index) => [name, index] as const))(
    "Argo CD shows the right health for the scene: %s",
    (_, index) => {
      const [, , health, kstatus, flux = kstatus] = CASES[index] ?? [];
      expect(seen[index]).toMatchObject({ argocd: { status: health }, kstatus, flux });
      expect(seen[index]?.argocd.message).toMatch(/\w/);
    },
  );

  const actionsOn = (name: keyof typeof STRATEGIES) =>
    seen[CASES.length + Object.keys(STRATEGIES).indexOf(name)]?.actions ?? {};
  const specAfter = (name: keyof typeof STRATEGIES, action: string) =>
    (actionsOn(name)[action] as { readonly spec: Readonly<Record<string, unknown>> }).spec;

  it.each([
    ["running", ["pause"]],
    ["paused", ["resume", "promote"]],
    ["canary", ["pause", "promote"]],
    ["none", ["pause"]],
  ] as const)("Argo CD's menu for a SidecarSet that is %s offers %j", (name, offered) => {
    const found = actionsOn(name)["discovery"] as Readonly<Record<string, { readonly disabled: boolean }>>;
    expect(Object.keys(found).toSorted()).toEqual(["pause", "promote", "resume"]);
    const enabled = Object.entries(found).flatMap(([action, { disabled }]) => (disabled ? [] : [action]));
    expect(enabled.toSorted()).toEqual([...offered].toSorted());
  });

  it("Argo CD's actions change the fields that pause, resume and promote change, and leave the others", () => {
    expect(specAfter("running", "pause")["updateStrategy"]).toEqual({ ...STRATEGIES.running, paused: true });
    expect(specAfter("none", "pause")["updateStrategy"]).toEqual({ paused: true });
    expect(specAfter("paused", "resume")["updateStrategy"]).toEqual({ ...STRATEGIES.paused, paused: false });
    const promoted = specAfter("paused", "promote");
    expect(promoted["updateStrategy"]).toEqual({ ...STRATEGIES.paused, partition: 0 });
    expect(promoted["injectionStrategy"]).toEqual({ revision: { revisionName: "agent-1", policy: "Always" } });
    expect(specAfter("canary", "promote")["injectionStrategy"]).not.toHaveProperty("revision");
  });

  it("Argo CD's health is the same as the page's", async () => {
    const page = await readFile(join(ROOT, "docs/gitops.md"), "utf8");
    const rows = [...page.matchAll(/^\| ((?:`\w+`(?:, )?)+) \| (\w+) \| (\w+) \|/gm)];
    const told = rows.flatMap(([, words = "", health, flux]) =>
      [...words.matchAll(/\w+/g)].map(([verdict]) => [verdict, health, flux]),
    );
    expect(told.map(([verdict]) => verdict).toSorted()).toEqual(ROLLOUT_VERDICTS.toSorted());
    for (const [verdict, health, flux] of told)
      expect(CASES.find(([name]) => name === verdict)?.slice(2)).toEqual([health, flux]);
  });

  it("the health script is printed by install --argocd, and is checked in", async () => {
    const [printed] = objectsIn(await run(process.execPath, ["functions/cli.mjs", "install", "--argocd"]));
    expect(printed).toEqual(argoCdConfigMap());
    expect(printed?.metadata).toMatchObject({ name: "argocd-cm", namespace: "argocd" });
  });
});
