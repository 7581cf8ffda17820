/** Tests the embedded cluster as an npm package, packed and used outside this repository. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildLocal } from "../../infra/build-local.ts";

const run = promisify(execFile);
const readJson = async (path: string) => JSON.parse(await readFile(path, "utf8"));

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

let folder: string;
let archive: string;
function user(): string {
  return join(folder, "user");
}
const installed = () => join(user(), "node_modules/@sidecarset/local");

/** Links a package of this repository into the user's folder. */
async function link(name: string): Promise<void> {
  const place = join(user(), "node_modules", name);
  await mkdir(dirname(place), { recursive: true });
  await symlink(resolve("node_modules", name), place);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "local-package-"));
  await buildLocal(join(folder, "built"), { repository: "https://example.com/owner/name", site: undefined });
  await run("npm", ["pack", join(folder, "built"), "--pack-destination", folder]);
  archive = (await readdir(folder)).find((name) => name.endsWith(".tgz")) ?? "";
  await mkdir(installed(), { recursive: true });
  await run("tar", ["-xzf", join(folder, archive), "-C", installed(), "--strip-components=1"]);
  // Only what its manifest names is installed beside it.
  const { dependencies } = await readJson(join(installed(), "package.json"));
  for (const name of Object.keys(dependencies)) await link(name);
}, 120_000);
afterAll(() => rm(folder, { recursive: true }));

test("the embedded cluster serves namespaces when it is installed as a package elsewhere", async () => {
  expect((await readdir(installed())).toSorted()).toEqual([
    ...["LICENSE", "README.md", "cluster.mjs", "package.json", "types"],
  ]);
  await writeFile(join(user(), "main.mjs"), PROGRAM);
  const { stdout } = await run(process.execPath, ["main.mjs"], { cwd: user() });
  expect(stdout.trim().split(" ")).toContain("kube-system");
});

test("the package of the embedded cluster has the product's version, also in the lockfile, and names its repository", async () => {
  const { version, repository } = await readJson(join(installed(), "package.json"));
  expect(archive).toBe(`sidecarset-local-${version}.tgz`);
  expect(version).toBe((await readJson("package.json")).version);
  expect((await readJson("package-lock.json")).packages["infra/local"].version).toBe(version);
  expect(repository).toEqual({
    ...{ type: "git", url: "git+https://example.com/owner/name.git" },
    directory: "infra/local",
  });
});

test("the types of the embedded cluster's package accept the example of its README and refuse a wrong option", async () => {
  await link("@types/node");
  await link("undici-types");
  const readme = await readFile(join(installed(), "README.md"), "utf8");
  const [, example = ""] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  expect(example).toContain('from "@sidecarset/local"');
  const options = { strict: true, module: "NodeNext", target: "ES2024", noEmit: true, types: ["node"] };
  const config = { compilerOptions: { ...options, skipLibCheck: false }, files: ["example.mts"] };
  await writeFile(join(user(), "tsconfig.json"), JSON.stringify(config));
  const tsc = (text: string) =>
    writeFile(join(user(), "example.mts"), text)
      .then(() => run("tsc", ["-p", user()]))
      .then(
        () => "",
        ({ stdout }) => stdout as string,
      );
  expect(await tsc(`${example}const verbs: readonly string[] = cluster.history().map(({ verb }) => verb);`)).toBe("");
  expect(await tsc(example.replace("nodes: 3", 'nodes: "3"'))).toMatch(/'string' is not assignable to type 'number'/);
});
