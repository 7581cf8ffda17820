/**
 * Tests that `undo` and `abort` return to a revision that worked, and that `history` shows the outcome of each
 * revision.
 */
import { beforeAll, expect, it } from "vitest";
import { GIVEN_UP_ANNOTATION, HASH_ANNOTATION, WAVES_ANNOTATION } from "../../shared/api/names.ts";
import { runPass } from "../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { CONTROLLER_REVISIONS, SIDECARSETS } from "../../shared/kube/port.ts";
import { allReady, deploy, KRUISE_NAMESPACE, readSet, release } from "../controller/fixture.ts";
import { onCluster } from "./on-cluster.ts";

const BROKEN = "proxy:does-not-exist";
const { cluster, cli } = onCluster();

async function pass(): Promise<void> {
  const options = { deadlineMs: 60_000, kruiseNamespace: KRUISE_NAMESPACE, settings: DEFAULT_ROLLOUT_SETTINGS };
  await runPass(cluster(), { ...options, follow: false });
}

/** Makes the webhook's part of a change: the hash follows the spec. */
const hashNow = (name: string, version: number) =>
  cluster().patch(
    SIDECARSETS,
    { name },
    { type: "merge", body: { metadata: { annotations: { [HASH_ANNOTATION]: `hash${version}` } } } },
  );

const imageNow = async (name: string) => (await readSet(cluster(), name)).spec.containers?.[0]?.image;

interface Row {
  readonly images: string;
  readonly isCurrent: boolean;
  readonly outcome: string;
}

async function outcomes(name: string): Promise<readonly (readonly [string, string])[]> {
  const rows: readonly Row[] = JSON.parse((await cli("history", name, "-o", "json")).stdout);
  return rows.map(({ images, outcome }) => [images.replace("proxy=", ""), outcome]);
}

beforeAll(async () => {
  await deploy(cluster(), "agent", 3, {});
  await pass();
});

it("history says that the revision of a complete rollout is ready and that a broken one is rolling out", async () => {
  expect(await outcomes("agent")).toEqual([["registry.example/proxy:1", "ready"]]);
  await release(cluster(), "agent", 2, { image: BROKEN });
  await pass();
  expect(await outcomes("agent")).toEqual([
    [BROKEN, "rolling out"],
    ["registry.example/proxy:1", "ready"],
  ]);
});

it("undo after an abort does not return to the aborted image", async () => {
  expect((await cli("abort", "agent")).stdout).toContain("aborted, back to revision 1");
  await hashNow("agent", 1);
  await pass();
  await allReady(cluster(), "agent");
  await pass();
  const second = await cli("abort", "agent");
  expect(second.code).not.toBe(0);
  expect(second.stderr).toContain("no rollout of agent is under way");
  expect(second.stderr).not.toMatch(/undo agent goes back/);
  const undone = await cli("undo", "agent");
  expect(undone.code).not.toBe(0);
  expect(undone.stderr).toContain("2 (aborted); name one to go back to it all the same");
  expect(await imageNow("agent")).toBe("registry.example/proxy:1");
  expect(await outcomes("agent")).toEqual([
    ["registry.example/proxy:1", "ready"],
    [BROKEN, "aborted"],
  ]);
});

it("undo --to-revision returns to an aborted revision, which is then rolling out again", async () => {
  const { stdout } = await cli("undo", "agent", "--to-revision", "2");
  expect(stdout).toContain("back to revision 2");
  expect(stdout).toContain("Revision 2 was aborted before.");
  await hashNow("agent", 2);
  expect(await imageNow("agent")).toBe(BROKEN);
  await pass();
  expect(await outcomes("agent")).toEqual([
    [BROKEN, "rolling out"],
    ["registry.example/proxy:1", "undone"],
  ]);
});

it("undo skips a revision that was never ready and returns to an older one that was ready", async () => {
  await deploy(cluster(), "other", 3, {});
  await pass();
  await release(cluster(), "other", 2, { image: BROKEN });
  await pass();
  await release(cluster(), "other", 3, { image: `${BROKEN}-either` });
  await pass();
  expect(await outcomes("other")).toEqual([
    [`${BROKEN}-either`, "rolling out"],
    [BROKEN, "never ready"],
    ["registry.example/proxy:1", "ready"],
  ]);
  expect((await cli("undo", "other", "--dry-run")).stdout).toContain("back to revision 1");
});

it("abort skips the waves of a SidecarSet, so that every pod goes back", async () => {
  const waves = JSON.stringify([{ name: "all", namespaceSelector: {}, soakSeconds: 3_600 }]);
  const body = { metadata: { annotations: { [WAVES_ANNOTATION]: waves } } };
  await cluster().patch(SIDECARSETS, { name: "other" }, { type: "merge", body });
  expect((await cli("abort", "other")).stdout).toContain("aborted, back to revision 1");
  expect((await readSet(cluster(), "other")).metadata?.annotations).toMatchObject({
    "sidecarset.kruise.io/skip-waves": "hash1",
  });
});

it("history says that the outcome of a revision without a recorded time is unknown", async () => {
  await deploy(cluster(), "old", 1, {});
  await pass();
  for (const version of [2, 3]) {
    await release(cluster(), "old", version);
    await pass();
    await allReady(cluster(), "old");
  }
  await pass();
  const { items } = await cluster().list<{ readonly metadata: { readonly name: string } }>(CONTROLLER_REVISIONS, {
    namespace: KRUISE_NAMESPACE,
    labelSelector: "kruise.io/sidecarset-name=old",
  });
  for (const { metadata } of items)
    await cluster().patch(
      CONTROLLER_REVISIONS,
      { namespace: KRUISE_NAMESPACE, name: metadata.name },
      { type: "merge", body: { metadata: { annotations: { "sidecarset.kruise.io/ready-at": null } } } },
    );
  const rows = await outcomes("old");
  expect(rows.slice(1).map(([, outcome]) => outcome)).toEqual(["unknown", "unknown"]);
  const { stdout } = await cli("undo", "old", "--dry-run");
  expect(stdout).toContain("back to revision 2");
  expect(stdout).toContain("It is not known whether revision 2 was ever ready.");
  expect((await readSet(cluster(), "old")).metadata?.annotations?.[GIVEN_UP_ANNOTATION]).toBeUndefined();
});

it("history names what a revision changed besides its images", async () => {
  await deploy(cluster(), "noted", 1, {});
  await pass();
  const changed = { name: "proxy", image: "registry.example/proxy:1", env: [{ name: "LEVEL", value: "warn" }] };
  const body = { spec: { containers: [changed] } };
  await cluster().patch(SIDECARSETS, { name: "noted" }, { type: "merge", body });
  await hashNow("noted", 2);
  await pass();
  const { stdout } = await cli("history", "noted");
  expect(stdout).toMatch(/ IMAGES +CHANGED\n2 \*.* proxy=\S+:1 +spec\.containers\{proxy\}\.env\n1 .* proxy=\S+:1 *$/m);
});
