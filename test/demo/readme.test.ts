import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { wayPictures } from "../docs/support/session-svg.ts";

const readme = readFileSync("README.md", "utf8");
const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  readonly scripts: Readonly<Record<string, string>>;
};

describe("README:", () => {
  it("README has fewer than 120 lines", () => {
    expect(readme.split("\n").length).toBeLessThan(120);
  });

  it("README has the monthly cost on AWS from figures.json", () => {
    const { cost } = JSON.parse(readFileSync("test/bench/figures.json", "utf8"));
    expect(cost.idleMonth.total).toBeLessThan(1.05);
    expect(readme).toContain(
      `$${Math.round(cost.idleMonth.total)} a month for an idle cluster, and $${Math.ceil(cost.podsMonth.total)} with ${cost.podsPerMinute.toLocaleString("en-US")} new pods a minute`,
    );
    // With log-level=warn there is no log line for each admission.
    expect(Object.keys(cost.podsMonth.parts)).toEqual(["admissions: Lambda"]);
  });

  it("README's badges have the figures of figures.json and the license of package.json", () => {
    const { figures, cost } = JSON.parse(readFileSync("test/bench/figures.json", "utf8"));
    const vectors = figures.find(({ what }: { what: string }) => what.startsWith("golden vectors"));
    const [failed, all] = [vectors.is, vectors.of];
    const count = (value: number) => value.toLocaleString("en-US");
    const labels = {
      vectors: `OpenKruise's golden vectors: ${count(all - failed)} of ${count(all)}`,
      cost: `idle month on AWS: $${cost.idleMonth.total.toFixed(2)}`,
      license: `license: ${JSON.parse(readFileSync("package.json", "utf8")).license}`,
    };
    for (const [name, label] of Object.entries(labels)) {
      expect(readFileSync(`docs/badges/${name}.svg`, "utf8")).toContain(`<title>${label}</title>`);
      expect(readme).toContain(`![${label}](docs/badges/${name}.svg)`);
    }
  });

  it("node test/docs/record.ts writes the pictures of the ways of a pod and of a tick, and README shows them", () => {
    const pictures = wayPictures();
    expect(pictures.map(([path]) => path)).toEqual(["docs/pictures/pod.svg", "docs/pictures/tick.svg"]);
    for (const [path, label, svg] of pictures) {
      expect(readFileSync(path, "utf8")).toBe(svg);
      expect(readme).toContain(`![${label}](${path})`);
    }
  });

  it("README and the pages of docs name only existing npm scripts", () => {
    const pages = readdirSync("docs").filter((name) => name.endsWith(".md"));
    const texts = [readme, ...pages.map((name) => readFileSync(`docs/${name}`, "utf8"))].join("\n");
    const named = [...texts.matchAll(/npm run (?:--silent )?([a-z][a-z0-9:]*)/g)].map(([, name = ""]) => name);
    const scripts = [...new Set(named)];
    expect(scripts.length).toBeGreaterThan(4);
    for (const script of scripts) expect(Object.keys(manifest.scripts)).toContain(script);
  });

  it("docs/settings.md has exactly the variables that the settings modules read", () => {
    const files = [
      "shared/settings/config.ts",
      "shared/settings/authentication-settings.ts",
      "shared/settings/cluster-settings.ts",
    ];
    const source = files.map((file) => readFileSync(file, "utf8")).join("\n");
    const names = [
      ...source.matchAll(
        /(?:env\[|, |\[)"([A-Z]+_[A-Z_]+|KUBECONFIG|AUTHENTICATION|METRICS|NOTIFICATIONS|CLUSTERS|VERSIONS|PORT|STAGE)"/g,
      ),
    ].map(([, name = ""]) => name);
    // Variables from AWS and Kubernetes are not settings.
    const read = new Set(names.filter((name) => !/^(AWS|KUBERNETES)_/.test(name)));
    const cells = [...readFileSync("docs/settings.md", "utf8").matchAll(/^- ((?:`[A-Z_]+`(?:, )?)+)/gm)].map(
      ([, cell = ""]) => cell,
    );
    const named = cells.flatMap((cell) => [...cell.matchAll(/[A-Z_]+/g)].map(([name]) => name));
    // docs/traces.md has the variables of OpenTelemetry, and Node reads NO_PROXY itself.
    const shown = new Set(named.filter((name) => !name.startsWith("OTEL_") && name !== "NO_PROXY"));
    expect(read.size).toBeGreaterThan(3);
    expect(shown).toEqual(read);
  });

  it("docs/traces.md names every variable of OpenTelemetry that trace-settings.ts reads", () => {
    const source = readFileSync("shared/settings/trace-settings.ts", "utf8");
    const read = new Set([...source.matchAll(/"(OTEL_[A-Z_]+)"/g)].map(([, name]) => name));
    const page = readFileSync("docs/traces.md", "utf8");
    expect(read.size).toBeGreaterThan(5);
    expect([...read].filter((name) => !page.includes(`\`${name}`))).toEqual([]);
  });
});
