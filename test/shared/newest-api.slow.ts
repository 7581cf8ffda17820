/** Tests the Go tables against the newest published API types, so that a new version of Kubernetes is noticed. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { lackingFields, unnamedFields } from "./api-fields.ts";

const run = promisify(execFile);

/** Returns the newest fields; undefined: Go is missing, or cannot get its modules. */
async function newestFields(): Promise<string | undefined> {
  const directory = await mkdtemp(join(tmpdir(), "api-fields-"));
  try {
    await cp(new URL("api-fields", import.meta.url), directory, { recursive: true });
    await run("go", ["get", "k8s.io/api@latest"], { cwd: directory });
    await run("go", ["mod", "tidy"], { cwd: directory });
    return (await run("go", ["run", "."], { cwd: directory, maxBuffer: 1e8 })).stdout;
  } catch (error) {
    process.stdout.write(`the newest API types are not looked at: ${String(error).split("\n")[0]}\n`);
    return undefined;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

it("every field of the newest Kubernetes is in the Go tables and in the lists of fields that older API servers lack", async (context) => {
  const text = await newestFields();
  if (text === undefined) return context.skip();
  const { looked, lacking } = lackingFields(text);
  expect(looked).toBeGreaterThan(1_000);
  expect(lacking).toEqual([]);
  expect((await unnamedFields(text)).unnamed).toEqual([]);
});
