import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

/** File names in a zip, from its central directory. */
function namesIn(zip: Buffer): string[] {
  const names: string[] = [];
  const signature = Buffer.from([0x50, 0x4b, 0x01, 0x02]);
  for (let at = zip.indexOf(signature); at >= 0; at = zip.indexOf(signature, at + 4)) {
    names.push(zip.toString("utf8", at + 46, at + 46 + zip.readUInt16LE(at + 28)));
  }
  return names;
}

test("npm run package, without account and network: one zip for each function, with its bundle and nothing else", async () => {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-package-"));
  const env = { PATH: process.env["PATH"], HOME: folder };
  await run("npm", ["run", "package", "--", "--package", folder], { env });

  const zips = (await readdir(folder)).filter((name) => name.endsWith(".zip")).toSorted();
  expect(zips).toEqual([
    "convertSidecarSet.zip",
    "dryRun.zip",
    "mutatePod.zip",
    "mutateSidecarSet.zip",
    "rollout.zip",
    "validateSidecarSet.zip",
  ]);
  for (const zip of zips) {
    const names = namesIn(await readFile(join(folder, zip)));
    const directory = `dist/${zip
      .replace(".zip", "")
      .replace("SidecarSet", "-sidecarset")
      .replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)}/`;
    expect(names).toEqual(expect.arrayContaining([`${directory}index.js`, `${directory}package.json`]));
    expect(names.filter((name) => !name.startsWith(directory))).toEqual([]);
  }

  const template = await readFile(join(folder, "cloudformation-template-update-stack.json"), "utf8");
  const { Resources } = JSON.parse(template) as { Resources: Record<string, { Type: string; Properties: object }> };
  const functions = Object.values(Resources).filter(({ Type }) => Type === "AWS::Lambda::Function");
  expect(functions).toHaveLength(6);
  for (const { Properties } of functions) {
    expect(Properties).toMatchObject({ Runtime: "nodejs24.x", Architectures: ["arm64"] });
  }
  expect(JSON.stringify(Resources["IamRoleLambdaExecution"])).not.toMatch(/"Resource":\s*"\*"/);
  await rm(folder, { recursive: true, force: true });
}, 180_000);
