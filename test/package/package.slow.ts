/** Tests the package of `npm pack`: a command line and a library without dependencies. */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, expect, it } from "vitest";

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, "../..");
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-package-"));
  await run(process.execPath, ["infra/build-package.ts"], { cwd: ROOT });
  await cp(join(ROOT, "dist/cli"), join(folder, "cli"), { recursive: true });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const cli = (...args: readonly string[]) => run(process.execPath, [join(folder, "cli/sidecarset.mjs"), ...args]);

it("the bundled command line runs without node_modules", async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  expect((await cli("--version")).stdout).toBe(`${version}\n`);
  const { stdout } = await cli("preview", "-f", join(folder, "cli/web.yaml"), "-f", join(folder, "cli/log-agent.yaml"));
  expect(stdout).toContain("kruise.io/sidecarset-injected-list: log-agent");
});

it("the bundled command line calls the plugin of a kubeconfig, uses its proxy-url, and refuses a SOCKS proxy", async () => {
  const kubeconfig = join(folder, "kubeconfig");
  const status = { token: "made-up" };
  const credential = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status };
  const exec = {
    apiVersion: credential.apiVersion,
    command: "sh",
    args: ["-c", `touch "$0"; echo '${JSON.stringify(credential)}'`, join(folder, "was-asked")],
    interactiveMode: "Never",
  };
  const failure = async (cluster: object) => {
    const [clusters, users] = [[{ name: "c", cluster }], [{ name: "u", user: { exec } }]];
    const contexts = [{ name: "x", context: { cluster: "c", user: "u" } }];
    await writeFile(kubeconfig, JSON.stringify({ clusters, users, contexts, "current-context": "x" }));
    return cli("status", "--kubeconfig", kubeconfig).catch(({ stderr }: { readonly stderr: string }) => stderr);
  };
  const server = "https://127.0.0.1:1";
  expect(await failure({ server, "proxy-url": "socks5://127.0.0.1:9" })).toContain("a proxy of the kind socks5");
  await rm(join(folder, "was-asked"));
  expect(await failure({ server, "proxy-url": "http://127.0.0.1:9" })).toContain(
    "the proxy http://127.0.0.1:9 (proxy-url)",
  );
  expect(await failure({ server })).toContain(`nothing listens on ${server}`);
  expect(await readdir(folder)).toContain("was-asked");
});

it("the bundled command line serves agents without node_modules", async () => {
  const client = new Client({ name: "test", version: "1" });
  const args = [join(folder, "cli/sidecarset.mjs"), "mcp"];
  await client.connect(new StdioClientTransport({ command: process.execPath, args }));
  const manifest = await readFile(join(folder, "cli/log-agent.yaml"), "utf8");
  const { content } = await client.callTool({ name: "lint", arguments: { manifest } });
  expect(content).toEqual([{ type: "text", text: "1 SidecarSet: nothing is wrong" }]);
  await client.close();
});

it("the command line calls itself kubectl sidecarset when its file is named kubectl-sidecarset", async () => {
  const { stdout } = await run("sh", [
    "-c",
    `ln -s "$0" "$1" && "$2" "$1"`,
    join(folder, "cli/sidecarset.mjs"),
    join(folder, "kubectl-sidecarset"),
    process.execPath,
  ]);
  expect(stdout).toMatch(/^Usage: kubectl sidecarset COMMAND/);
});

/** Packs in a copy, because `npm pack` changes package.json for a moment. */
async function packed(): Promise<{ readonly tree: string; readonly tarball: string }> {
  const tree = join(folder, "tree");
  await mkdir(tree);
  for (const name of [
    "package.json",
    "tsconfig.json",
    "tsconfig.library.json",
    "README.md",
    "functions",
    "shared",
    "infra",
  ])
    await cp(join(ROOT, name), join(tree, name), { recursive: true, filter: (path) => !path.endsWith("node_modules") });
  await symlink(join(ROOT, "node_modules"), join(tree, "node_modules"));
  const { stdout } = await run("npm", ["pack", "--json"], { cwd: tree });
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf("[\n"))) as [{ readonly filename: string }];
  return { tree, tarball: join(tree, filename) };
}

it("npm pack makes a package without dependencies and leaves package.json unchanged", async () => {
  const { tree, tarball } = await packed();
  const user = join(folder, "user");
  await mkdir(user);
  await writeFile(join(user, "package.json"), "{}");
  await run("npm", ["install", "--offline", "--ignore-scripts", tarball], { cwd: user });
  expect((await readdir(join(user, "node_modules"))).filter((name) => !name.startsWith("."))).toEqual([
    "sidecarset-serverless",
  ]);
  const installed = join(user, "node_modules/sidecarset-serverless");
  const files = (await readdir(installed, { recursive: true, withFileTypes: true })).filter((one) => one.isFile());
  const sizes = await Promise.all(files.map(async (one) => (await stat(join(one.parentPath, one.name))).size));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(6_000_000);
  const paths = files.map((one) => relative(installed, join(one.parentPath, one.name)));
  const { bin, exports } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const named = [...Object.values(bin), ...Object.values(exports).flatMap((one) => Object.values(one as object))];
  expect(named.length).toBeGreaterThanOrEqual(10);
  for (const path of named) expect(paths).toContain(String(path).replace("./", ""));
  expect(paths.filter((path) => /^(functions|shared|infra|test)\//.test(path))).toEqual([]);
  expect((await run("npx", ["--offline", "sidecarset", "--version"], { cwd: user })).stdout).toMatch(
    /^\d+\.\d+\.\d+\n$/,
  );
  expect(await readFile(join(tree, "package.json"), "utf8")).toBe(await readFile(join(ROOT, "package.json"), "utf8"));
});

/** Returns the code block of docs/library.md and its documented output. */
async function exampleOf(): Promise<readonly [string, string]> {
  const text = await readFile(join(ROOT, "docs/library.md"), "utf8");
  const [, code = "", printed = ""] = /```js\n([\s\S]*?)```[\s\S]*?```\n([\s\S]*?)```/.exec(text) ?? [];
  expect(code.length).toBeGreaterThan(500);
  return [code, printed];
}

it("the example of docs/library.md prints its documented output", async () => {
  const [code, printed] = await exampleOf();
  const file = join(ROOT, "dist/library/example.mjs");
  await writeFile(file, code);
  expect((await run(process.execPath, [file])).stdout).toBe(printed);
});

it("the library's types accept the example of docs/library.md and refuse a wrong argument", async () => {
  const [code] = await exampleOf();
  const good = code
    .replace("changed.spec.containers[0].image", "(changed.spec.containers[0] ?? { image: '' }).image")
    .replace("const [pod] = running;", "const pod = running[0] as (typeof running)[0];");
  const config = {
    compilerOptions: {
      strict: true,
      module: "NodeNext",
      moduleResolution: "NodeNext",
      target: "ES2024",
      noEmit: true,
      skipLibCheck: false,
      types: ["node"],
    },
    files: ["example.mts"],
  };
  const folder = join(ROOT, "dist/library");
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = (text: string) =>
    writeFile(join(folder, "example.mts"), text)
      .then(() => run("tsc", ["-p", folder], { cwd: ROOT }))
      .then(
        () => "",
        ({ stdout }) => stdout as string,
      );
  expect(await tsc(good)).toBe("");
  expect(await tsc(good.replace("readyAfterSeconds: 30", 'readyAfterSeconds: "30"'))).toMatch(
    /'string' is not assignable to type 'number'/,
  );
});
