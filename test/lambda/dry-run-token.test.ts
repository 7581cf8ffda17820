/** Tests the token with which the function dry-run reads a cluster of the table CLUSTERS. */
import { afterEach, expect, test, vi } from "vitest";
import { handler as dryRun } from "../../functions/lambda/dry-run.ts";
import { handler as rollout } from "../../functions/lambda/rollout.ts";

const context = { getRemainingTimeInMillis: () => 5_000 };

vi.hoisted(() => {
  const authority = Buffer.from("-----BEGIN CERTIFICATE-----\n").toString("base64");
  const address = { CLUSTER_SERVER: "https://127.0.0.1:1", CLUSTER_CA: authority };
  const writes = { ...address, CLUSTER_TOKEN: "/none/writes", WEBHOOKS_TOKEN: "/none/webhooks" };
  process.env["CLUSTERS"] = JSON.stringify({ old: writes, new: { ...writes, VIEWER_TOKEN: "/none/views" } });
});

afterEach(() => void vi.restoreAllMocks());

/** Returns the words of the error with which a function ends. They name the token that the function would read. */
async function failureOf(ask: () => Promise<unknown>): Promise<string> {
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  return ask().then(JSON.stringify, (error: Error) => error.message);
}

test("a dry run refuses a cluster of the table that has only the token by which passes write", async () => {
  const refusal = await failureOf(() => dryRun({ cluster: "old" }, context));
  expect(refusal).toMatch(/^cluster old has no VIEWER_TOKEN: a dry run reads by a token of sidecarset-viewer/);
});

test("a dry run reads the token of the viewer, and a pass reads the token that writes", async () => {
  expect(await failureOf(() => dryRun({ cluster: "new" }, context))).toContain("/none/views");
  expect(await failureOf(() => rollout({ cluster: "new" }, context))).toContain("/none/writes");
});
