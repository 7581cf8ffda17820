/** Tests the embedded cluster as an npm package, packed and used outside this repository. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { buildLocal } from "../../infra/build-local.ts";

const run = promisify(execFile);

const PROGRAM = `
import { request } from "node:https";
import { startLocalCluster } from "@sidecarset/local";
const cluster = await startLocalCluster({ nodes: 1 });
const headers = { authorization: "Bearer " + cluster.token };
request(new URL("/api/v1/namespaces", cluster.url), { ca: cluster.caCertificate, headers }, async (answer) => {
  const { items } = JSON.parse((await answer.toArray()).join(""));
  console.log(items.map(({ metadata }) => metadata.name).join(" "));
  await cluster.close();
}).end();
`;

test("the embedded cluster serves namespaces when it is installed as a package elsewhere", async () => {
  const folder = await mkdtemp(join(tmpdir(), "local-package-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await buildLocal(join(folder, "built"));
  await run("npm", ["pack", join(folder, "built"), "--pack-destination", folder]);
  const archive = (await readdir(folder)).find((name) => name.endsWith(".tgz")) ?? "";
  const installed = join(folder, "user/node_modules/@sidecarset/local");
  await mkdir(installed, { recursive: true });
  await run("tar", ["-xzf", join(folder, archive), "-C", installed, "--strip-components=1"]);
  expect((await readdir(installed)).toSorted()).toEqual(["LICENSE", "README.md", "cluster.mjs", "package.json"]);
  const { version, dependencies } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  expect(archive).toBe(`sidecarset-local-${version}.tgz`);
  // Only the packages that its manifest names are installed beside it.
  for (const name of Object.keys(dependencies)) {
    const place = join(folder, "user/node_modules", name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(resolve("node_modules", name), place);
  }
  await writeFile(join(folder, "user/main.mjs"), PROGRAM);
  const { stdout } = await run(process.execPath, ["main.mjs"], { cwd: join(folder, "user") });
  expect(stdout.trim().split(" ")).toContain("kube-system");
});
