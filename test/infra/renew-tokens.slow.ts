/** Tests the script that renews tokens in SSM, with fake commands kubectl and aws that record their arguments. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const CLAIMS = Buffer.from(JSON.stringify({ iat: 1, exp: 1_800_000_000, sub: "x" })).toString("base64url");
const TOKEN = `${"h".repeat(30)}.${CLAIMS}.signature`;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "renew-"));
  command("kubectl", `echo "kubectl $*" >> "$CALLS"; [ "\${REFUSES:-}" != kubectl ] || exit 1; echo "${TOKEN}"`);
  command("aws", `echo "aws $*" >> "$CALLS"; last="\${!#}"; cat "\${last#file://}" > "$CALLS.value"`);
  command("gcloud", `echo "gcloud $*" >> "$CALLS"; last="\${!#}"; cat "\${last#--data-file=}" > "$CALLS.value"`);
});
afterAll(() => rmSync(folder, { recursive: true }));

function command(name: string, body: string): void {
  writeFileSync(join(folder, name), `#!/usr/bin/env bash\n${body}\n`);
  chmodSync(join(folder, name), 0o755);
}

function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const calls = join(folder, "calls");
  writeFileSync(calls, "");
  const environment = { ...process.env, PATH: `${folder}:${process.env["PATH"]}`, CALLS: calls, ...env };
  const { status, stdout } = spawnSync("bash", ["infra/aws/renew-tokens.sh", ...args], {
    encoding: "utf8",
    env: environment,
  });
  return { status, stdout, calls: readFileSync(calls, "utf8").trim().split("\n") };
}

test("renew-tokens.sh overwrites the three tokens in SSM, keeps them off command lines and prints until when they are valid", () => {
  const { status, stdout, calls } = run(["test", "48h"]);
  expect(status).toBe(0);
  expect(calls.filter((call) => call.startsWith("kubectl"))).toEqual([
    "kubectl create token sidecarset-webhooks -n kruise-system --duration=48h",
    "kubectl create token sidecarset-reconciler -n kruise-system --duration=48h",
    "kubectl create token sidecarset-viewer -n kruise-system --duration=48h",
  ]);
  const puts = calls.filter((call) => call.startsWith("aws"));
  expect(puts.map((call) => /--name (\S+)/.exec(call)?.[1])).toEqual([
    "/sidecarset/test/webhooks-token",
    "/sidecarset/test/reconciler-token",
    "/sidecarset/test/viewer-token",
  ]);
  for (const call of puts) expect(call).toContain("--overwrite");
  expect(calls.join("\n")).not.toContain(TOKEN);
  expect(readFileSync(join(folder, "calls.value"), "utf8")).toBe(TOKEN);
  expect(stdout.trim().split("\n")).toEqual([
    "/sidecarset/test/webhooks-token is valid until 2027-01-15T08:00:00Z",
    "/sidecarset/test/reconciler-token is valid until 2027-01-15T08:00:00Z",
    "/sidecarset/test/viewer-token is valid until 2027-01-15T08:00:00Z",
  ]);
});

test("renew-tokens.sh with TOKEN_STORE=gcloud adds a version to each secret that the Cloud Run recipe mounts", () => {
  const { status, stdout, calls } = run(["sidecarset", "48h"], { TOKEN_STORE: "gcloud" });
  expect(status).toBe(0);
  const added = calls.filter((call) => call.startsWith("gcloud")).map((call) => call.split(" ")[4]);
  expect(added).toEqual(["webhooks", "reconciler", "viewer"].map((use) => `sidecarset-${use}-token`));
  expect(calls.filter((call) => call.startsWith("aws"))).toEqual([]);
  expect(calls.join("\n")).not.toContain(TOKEN);
  expect(readFileSync(join(folder, "calls.value"), "utf8")).toBe(TOKEN);
  expect(stdout).toContain("sidecarset-webhooks-token is valid until 2027-01-15T08:00:00Z");
  const recipe = readFileSync("infra/container/cloud-run.yaml", "utf8");
  const mounted = [...recipe.matchAll(/secretName: (sidecarset-\w+-token)/g)].map(([, name]) => name);
  expect(mounted).toEqual(["sidecarset-webhooks-token", "sidecarset-reconciler-token"]);
});

test("renew-tokens.sh fails and keeps the old tokens when the cluster issues no token", () => {
  const { status, calls } = run(["test"], { REFUSES: "kubectl" });
  expect([status === 0, calls.filter((call) => call.startsWith("aws"))]).toEqual([false, []]);
});

test("renew-tokens.sh fails without a stage", () => {
  expect(run([]).status).not.toBe(0);
});
