import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const readme = readFileSync("README.md", "utf8");
const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>;
};

describe("README", () => {
  it("names only npm scripts that exist", () => {
    const named = [...readme.matchAll(/npm (?:run (?:--silent )?)?([a-z][a-z0-9:]*)/g)].map(([, name = ""]) => name);
    const scripts = [...new Set(named)].filter((name) => !["ci", "run", "pack", "registry"].includes(name));
    expect(scripts.length).toBeGreaterThan(4);
    for (const script of scripts) expect(Object.keys(manifest.scripts)).toContain(script);
  });

  it("links only to files that exist", () => {
    const links = [...readme.matchAll(/\]\(([^)#]+)\)/g)].map(([, target = ""]) => target);
    const local = links.filter((target) => !target.includes("://"));
    expect(local.length).toBeGreaterThan(3);
    for (const target of local) expect(() => readFileSync(target), target).not.toThrow();
  });

  it("shows settings that config.ts reads, and all of them", () => {
    const files = [
      "shared/settings/config.ts",
      "shared/settings/authentication-settings.ts",
      "shared/settings/cluster-settings.ts",
    ];
    const source = files.map((file) => readFileSync(file, "utf8")).join("\n");
    const names = [...source.matchAll(/(?:env\[|, )"([A-Z]+_[A-Z_]+|KUBECONFIG|AUTHENTICATION|METRICS)"/g)].map(
      ([, name = ""]) => name,
    );
    // What AWS gives to its functions and Kubernetes to its containers is no setting.
    const read = new Set(names.filter((name) => !/^(AWS|KUBERNETES)_/.test(name)));
    const cells = [...readme.matchAll(/^\| ((?:`[A-Z_]+`(?:, )?)+) \|/gm)].map(([, cell = ""]) => cell);
    const shown = new Set(cells.flatMap((cell) => [...cell.matchAll(/[A-Z_]+/g)].map(([name]) => name)));
    expect(read.size).toBeGreaterThan(3);
    expect(shown).toEqual(read);
  });
});
