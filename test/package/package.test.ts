/** What `npm pack` ships: a command line and a library that need nothing beside them. */
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, vi } from "vitest";

vi.setConfig({ hookTimeout: 300_000, testTimeout: 120_000 });

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

it("the command line runs where there are no packages", async () => {
  const { version } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  expect((await cli("--version")).stdout).toBe(`${version}\n`);
  const { stdout } = await cli("preview", "-f", join(folder, "cli/web.yaml"), "-f", join(folder, "cli/log-agent.yaml"));
  expect(stdout).toContain("kruise.io/sidecarset-injected-list: log-agent");
});

it("as a plugin it calls itself kubectl sidecarset", async () => {
  const { stdout } = await run("sh", [
    "-c",
    `ln -s "$0" "$1" && "$2" "$1"`,
    join(folder, "cli/sidecarset.mjs"),
    join(folder, "kubectl-sidecarset"),
    process.execPath,
  ]);
  expect(stdout).toMatch(/^Usage: kubectl sidecarset COMMAND/);
});

it("the package holds what bin and exports name, and no sources", async () => {
  const { stdout } = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: ROOT });
  const [{ files }] = JSON.parse(stdout) as [{ readonly files: readonly { readonly path: string }[] }];
  const paths = files.map(({ path }) => path);
  const { bin, exports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
  const named = [...Object.values(bin), ...Object.values(exports).flatMap((one) => Object.values(one as object))];
  expect(named.length).toBeGreaterThanOrEqual(10);
  for (const path of named) expect(paths).toContain(String(path).replace("./", ""));
  expect(paths.filter((path) => /^(functions|shared|infra|test)\//.test(path))).toEqual([]);
});

/** The code block of docs/library.md, and what stands there that it prints. */
async function exampleOf(): Promise<readonly [string, string]> {
  const text = await readFile(join(ROOT, "docs/library.md"), "utf8");
  const [, code = "", printed = ""] = /```js\n([\s\S]*?)```[\s\S]*?```\n([\s\S]*?)```/.exec(text) ?? [];
  expect(code.length).toBeGreaterThan(500);
  return [code, printed];
}

it("the example of docs/library.md prints what stands there, through the package's exports", async () => {
  const [code, printed] = await exampleOf();
  const file = join(ROOT, "dist/library/example.mjs");
  await writeFile(file, code);
  expect((await run(process.execPath, [file])).stdout).toBe(printed);
});

it("the library's types check what a caller writes", async () => {
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
