/** Tests `status` without a name on the embedded cluster with 30 SidecarSets, of which 8 are blocked. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import {
  deploy,
  type HttpsCluster,
  imageOf,
  KRUISE_NAMESPACE,
  readSet,
  release,
  startHttpsCluster,
} from "../controller/fixture.ts";
import { PATIENT } from "../support/patient.ts";
import { type Outcome, runHere } from "./run-cli.ts";

const SCREEN = 24;
const SETS = Array.from({ length: 30 }, (_, index) => `agent-${String(index).padStart(2, "0")}`);
/** The broken SidecarSets, at intervals through the alphabet. */
const BROKEN = SETS.filter((_, index) => index % 4 === 3).concat("agent-29");

let test: HttpsCluster;
let folder: string;

const cli = (...args: readonly string[]): Promise<Outcome> =>
  runHere(["--kubeconfig", join(folder, "kubeconfig"), ...args]);

const rowsNow = async () =>
  JSON.parse((await cli("status", "-o", "json")).stdout) as { name: string; verdict: string }[];

beforeAll(async () => {
  test = await startHttpsCluster();
  folder = await mkdtemp(join(tmpdir(), "status-all-"));
  await writeFile(join(folder, "kubeconfig"), test.kubeconfig);
  for (const name of SETS) await deploy(test.cluster, name, 2, {});
  for (const name of SETS) {
    const image = BROKEN.includes(name) ? "proxy:does-not-exist" : imageOf(2);
    await release(test.cluster, name, 2, name === "agent-00" ? { image, paused: true } : { image });
  }
  await vi.waitFor(
    async () => {
      await runPass(test.cluster, {
        deadlineMs: 600_000,
        kruiseNamespace: KRUISE_NAMESPACE,
        follow: false,
        settings: DEFAULT_ROLLOUT_SETTINGS,
      });
      const rows = await rowsNow();
      if (rows.some(({ verdict }) => verdict === undefined || verdict === "Updating")) throw new Error("not at rest");
      // Each look is a pass over 30 SidecarSets.
    },
    { ...PATIENT, timeout: 10 * PATIENT.timeout },
  );
});
afterAll(async () => {
  await test?.close();
  await rm(folder, { recursive: true, force: true });
});

it("status lists blocked SidecarSets first, with the reason and the time when each became blocked", async () => {
  const { code, stdout, stderr } = await cli("status");
  expect([code, stderr]).toEqual([4, ""]);
  const lines = stdout.trimEnd().split("\n");
  expect(lines).toHaveLength(SETS.length + 1);
  expect(BROKEN).toHaveLength(8);
  const first = lines.slice(1, SCREEN).filter((line) => /\bBlocked\b/.test(line));
  expect(first.map((line) => line.split(" ")[0])).toEqual(BROKEN);
  expect(first[0]).toMatch(/^agent-03 +1\/2 +1 +Blocked +\d+s +\S/);
  expect(lines.slice(9, 11).map((line) => line.split(/ +/).slice(0, 4))).toEqual([
    ["agent-00", "0/2", "2", "Paused"],
    ["agent-01", "2/2", "2", "Ready"],
  ]);
});

it("status shows the same verdict as the condition Ready", async () => {
  const rows = await rowsNow();
  expect(rows.filter(({ verdict }) => verdict === "Blocked").map(({ name }) => name)).toEqual(BROKEN);
  for (const { name, verdict } of rows) {
    const { status } = await readSet(test.cluster, name);
    expect(status?.conditions?.find(({ type }) => type === "Ready")?.reason).toBe(verdict);
  }
});

it("status -w ends with 3 when no SidecarSet can progress without help", async () => {
  expect((await cli("status", "-w", "--timeout", "10m")).code).toBe(3);
  await test.cluster.patch(
    SIDECARSETS,
    { name: "agent-01" },
    { type: "merge", body: { spec: { updateStrategy: { partition: 1 } } } },
  );
  const { code, stdout } = await cli("status", "-w", "--timeout", "1ms");
  expect(code).toBe(3);
  expect(stdout.split("\n")[9]).toMatch(/^agent-01 .* not seen yet/);
});

it("status -w prints the list once, and then a line for each SidecarSet that changes", async () => {
  const label = (value: string) =>
    test.cluster.patch(
      SIDECARSETS,
      { name: "agent-03" },
      { type: "merge", body: { spec: { updateStrategy: { partition: value } } } },
    );
  await label("10%");
  const { cluster } = test;
  const pass = () =>
    runPass(cluster, {
      deadlineMs: 600_000,
      kruiseNamespace: KRUISE_NAMESPACE,
      follow: false,
      settings: DEFAULT_ROLLOUT_SETTINGS,
    });
  const watched = cli("status", "-w", "--timeout", "10m");
  await pass();
  const { code, stdout } = await watched;
  expect(code).toBe(3);
  const lines = stdout.trimEnd().split("\n");
  expect(lines.filter((line) => line.startsWith("NAME"))).toHaveLength(1);
  expect(lines.filter((line) => line.startsWith("agent-03 ")).length).toBeGreaterThan(1);
  expect(lines.filter((line) => line.startsWith("agent-05 "))).toHaveLength(1);
});

it("-l selects SidecarSets by their labels in the command status, and pods by their labels in the command pods", async () => {
  const labels = { team: "mesh" };
  await test.cluster.patch(SIDECARSETS, { name: "agent-02" }, { type: "merge", body: { metadata: { labels } } });
  expect((await cli("status", "-l", "team=mesh")).stdout.trimEnd().split("\n").slice(1)).toEqual([
    expect.stringMatching(/^agent-02 /),
  ]);
  expect((await cli("status", "-l", "team=nobody")).stdout).toBe("No SidecarSet has these labels.\n");
  expect(await cli("status", "agent-02", "-l", "team=mesh")).toMatchObject({ code: 2, stdout: "" });
  const pods = async (...args: readonly string[]) =>
    (JSON.parse((await cli("pods", ...args, "-o", "json")).stdout) as { name: string }[]).map(({ name }) => name);
  expect(await pods("-l", "app=agent-02", "-A")).toEqual(["agent-02-0", "agent-02-1"]);
  expect(await pods("agent-02", "-l", "app=agent-03")).toEqual([]);
  const wrong = await cli("pods", "-l", "a in");
  expect([wrong.code, wrong.stderr.trim().split("\n").length]).toEqual([1, 1]);
});
