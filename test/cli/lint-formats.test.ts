/** Tests `lint -o sarif`, `lint -o github`, and the action that runs them. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { githubCommands, sarifLog } from "../../functions/cli/commands/lint.ts";
import { runHere } from "./run-cli.ts";

const folder = mkdtempSync(join(tmpdir(), "lint-"));
afterAll(() => rmSync(folder, { recursive: true }));

const setOf = (name: string, image: string, more = "") => `apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata:
  name: ${name}
spec:
  selector: {matchLabels: {app: ${name}}}
  containers:
    - name: ${name}
      image: ${image}
${more}`;

const write = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const good = write("good.yaml", setOf("good", "agent:1"));
const doubtful = write("doubtful.yaml", setOf("doubtful", "Agent:1:2", "  partition: 1\n"));
const refused = write("refused.yaml", setOf("refused", "agent:1", "  updateStrategy: {maxUnavailable: half}\n"));

const found = { place: "a b/50%,x.yaml:3:7", name: "a", severity: "error", message: "100%\r\nmore: x, y" } as const;

describe("SARIF:", () => {
  it("a SARIF log has the fields that SARIF 2.1.0 requires and the region of each finding", async () => {
    const { code, stdout } = await runHere(["lint", doubtful, refused, "-o", "sarif"]);
    const log = JSON.parse(stdout);
    expect([code, log.version, log.runs.length]).toEqual([4, "2.1.0", 1]);
    const [{ tool, results }] = log.runs;
    expect(tool.driver.name).toBe("sidecarset lint");
    expect(results.length).toBeGreaterThanOrEqual(3);
    for (const { ruleId, ruleIndex, level, message, locations } of results) {
      expect(tool.driver.rules[ruleIndex]).toMatchObject({ id: ruleId, defaultConfiguration: { level } });
      expect(message.text).toMatch(/^SidecarSet (doubtful|refused): /);
      const [{ physicalLocation }] = locations;
      expect(physicalLocation.artifactLocation.uri).toMatch(/^file:\/\/\/.*\.yaml$/);
      expect(physicalLocation.region.startLine).toBeGreaterThan(1);
      expect(physicalLocation.region.startColumn).toBeGreaterThan(1);
    }
  });

  it("the SARIF log of a valid SidecarSet has a run without results", async () => {
    const { code, stdout } = await runHere(["lint", good, "-o", "sarif"]);
    expect([code, JSON.parse(stdout).runs[0].results]).toEqual([0, []]);
  });

  it.each([
    ["./a b/50%,x.yaml:3:7", "a%20b/50%25%2Cx.yaml"],
    ["C:\\x\\a.yaml:1:1", "file:///C:/x/a.yaml"],
    ["/x/ä.yaml:1:1", "file:///x/%C3%A4.yaml"],
    ["stdin:1:1", "stdin"],
  ])("the URI of %s is %s", (place, uri) => {
    expect(sarifLog([{ ...found, place }], "1")).toMatchObject({
      runs: [{ results: [{ locations: [{ physicalLocation: { artifactLocation: { uri } } }] }] }],
    });
  });
});

describe("workflow commands:", () => {
  it("a workflow command escapes characters that GitHub would read as its end or as another property", () => {
    expect(githubCommands([found])).toEqual([
      "::error file=a b/50%25%2Cx.yaml,line=3,col=7,title=sidecarset lint::SidecarSet a: 100%25%0D%0Amore: x, y",
    ]);
  });

  it("a name with :: or a line break starts no workflow command of its own", () => {
    const [line = ""] = githubCommands([{ ...found, name: "x\n::stop-commands::y", place: "a::b,line=9\n.yaml:1:1" }]);
    expect(line.split("\n")).toHaveLength(1);
    expect(line).toMatch(/^::error file=a%3A%3Ab%2Cline=9%0A\.yaml,line=1,/);
  });

  it("each finding is one line, and nothing else is printed", async () => {
    const { code, stdout } = await runHere(["lint", doubtful, "-o", "github"]);
    expect(code).toBe(3);
    expect(stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(
        /^::warning file=.*doubtful\.yaml,line=9,col=\d+,title=sidecarset lint::SidecarSet doubtful: /,
      ),
      expect.stringMatching(/^::warning file=.*doubtful\.yaml,line=10,col=\d+,.*spec\.partition/),
    ]);
  });
});

describe("the GitHub Action:", () => {
  const actionPath = fileURLToPath(new URL("../../infra/github-action", import.meta.url));
  const action = parse(readFileSync(join(actionPath, "action.yml"), "utf8"));
  const lintStep = action.runs.steps.find(({ name }: { name: string }) => name === "Lint");

  function runStep(files: readonly string[], failOn = "error", sarif = "") {
    const env = {
      ...process.env,
      GITHUB_ACTION_PATH: actionPath,
      FILES: files.join("\n"),
      FAIL_ON: failOn,
      SARIF: sarif,
    };
    const { status, stdout } = spawnSync("bash", ["-c", lintStep.run], { cwd: folder, env, encoding: "utf8" });
    return { status, stdout };
  }

  it("the action passes its inputs to the script as variables, and every package comes from the lock file", () => {
    expect(lintStep.run).not.toContain("${{");
    expect(Object.keys(lintStep.env)).toEqual(["FILES", "FAIL_ON", "SARIF"]);
    expect(action.runs.steps.every(({ uses }: { uses?: string }) => uses === undefined)).toBe(true);
    expect(action.runs.steps[0].run).toMatch(/^npm ci .*--ignore-scripts/);
  });

  it.each([
    [0, ["doubtful.yaml"], "error"],
    [3, ["doubtful.yaml"], "warning"],
    [4, ["refused.yaml", "good.yaml"], "error"],
    [2, ["good.yaml"], "odd"],
  ])("the step exits with %i for the files %j when fail-on is %s", (status, files, failOn) => {
    expect(runStep(files, failOn).status).toBe(status);
  });

  it("the step writes SARIF with paths relative to the workspace", () => {
    mkdirSync(join(folder, "deploy"), { recursive: true });
    writeFileSync(join(folder, "deploy/a b.yaml"), setOf("spaced", "Agent:1:2"));
    const { status, stdout } = runStep(["deploy"], "error", "out.sarif");
    expect([status, stdout]).toEqual([0, expect.stringContaining("::warning file=deploy/a b.yaml,line=9,")]);
    const [run] = JSON.parse(readFileSync(join(folder, "out.sarif"), "utf8")).runs;
    expect(run.results[0].locations[0].physicalLocation.artifactLocation.uri).toBe("deploy/a%20b.yaml");
  });

  it("bash finds no syntax error in the script", () => {
    execFileSync("bash", ["-n", join(actionPath, "lint.sh")]);
  });
});
