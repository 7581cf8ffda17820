/** `lint`: faults of SidecarSets in files, before a cluster gets them. */
import manifest from "../../../package.json" with { type: "json" };
import { minorVersion } from "../../../shared/core/sidecarset/validate/newer-fields.ts";
import { counted } from "../../../shared/go/counted.ts";
import { type LintFinding, lint } from "../../library/lint.ts";
import { type ReadObject, readObjects } from "../../terminal/read-objects.ts";
import { CliError, type Screen } from "../../terminal/screen.ts";
import type { Command } from "../command.ts";
import { gatesOfLint, isSidecarSet, placeOfFinding } from "../input/given-set.ts";
import type { Session } from "../session.ts";

const WARNINGS = 3;
const ERRORS = 4;

interface Placed extends Omit<LintFinding, "index"> {
  /** position as file:line:column */
  readonly place: string;
}

export const LINT: Command = {
  name: "lint",
  group: "Before a change",
  summary: "what is wrong with the SidecarSets of files: what the webhook would refuse, conflicts, misspelt fields",
  details: "No cluster is asked. Other kinds in the files are passed over.",
  arguments: [{ name: "[FILE...]", about: "as with -f", completion: "file" }],
  options: [
    { flags: "-f, --filename <FILE>", about: "a file, a folder with all below it, or - for stdin", isList: true },
    {
      flags: "--kubernetes <VERSION>",
      about: "of the API server, such as 1.34: warn of fields that it drops, or refuses pods for",
    },
  ],
  outputs: ["table", "json", "yaml", "sarif", "github"],
  examples: [
    "sidecarset lint log-agent.yaml",
    "helm template . | sidecarset lint -f -",
    "sidecarset lint deploy/ -o sarif > lint.sarif",
  ],
  exits: [`${WARNINGS} warnings, and no error`, `${ERRORS} errors`],
  run: async (input, session) => {
    const given = [...input.arguments, ...input.list("filename")];
    if (given.length === 0)
      throw new CliError("FILE is missing: the file or folder of the SidecarSets, or - for stdin");
    const read = await readObjects(given);
    const count = read.filter(({ object }) => isSidecarSet(object)).length;
    if (count === 0) throw new CliError(`${given.join(", ")}: no SidecarSet in there; add one with -f`);
    const findings = lint({
      objects: read.map(({ object }) => object),
      featureGates: gatesOfLint(),
      ...kubernetesVersion(input.text("kubernetes")),
    });
    const placed = [...findings.map((one) => placedFinding(one, read)), ...repeatedKeys(read)];
    print(placed, count, session);
    if (placed.some(({ severity }) => severity === "error")) return ERRORS;
    return placed.length > 0 ? WARNINGS : 0;
  },
};

function kubernetesVersion(given: string | undefined): { readonly kubernetesVersion?: string } {
  if (given === undefined) return {};
  if (minorVersion(given) === undefined)
    throw new CliError(`--kubernetes ${given}: no version of Kubernetes; write one such as 1.34`);
  return { kubernetesVersion: given };
}

function print(findings: readonly Placed[], count: number, session: Session): void {
  const { output, screen } = session;
  if (output === "sarif") screen.text(`${JSON.stringify(sarifLog(findings, manifest.version), null, 2)}\n`);
  else if (output === "github") for (const line of githubCommands(findings)) screen.line(line);
  else session.print(findings, () => show(findings, count, screen));
}

function placedFinding(finding: LintFinding, read: readonly ReadObject[]): Placed {
  const { index: _, ...rest } = finding;
  return { place: placeOfFinding(finding, read), ...rest };
}

function repeatedKeys(read: readonly ReadObject[]): readonly Placed[] {
  return read.flatMap(({ object, repeatedKeys }) =>
    repeatedKeys.map(({ key, place }): Placed => {
      const message = `${key} is given twice in one map; the last one counts`;
      return { place, name: object.metadata?.name ?? "", severity: "warning", message };
    }),
  );
}

function show(findings: readonly Placed[], count: number, screen: Screen): void {
  for (const { place, name, severity, message } of findings)
    screen.line(
      `${place}: `,
      { text: severity, color: severity === "error" ? "red" : "yellow" },
      ` ${name}: ${message}`,
    );
  const sets = counted(count, "SidecarSet");
  const errors = findings.filter(({ severity }) => severity === "error").length;
  if (findings.length === 0) screen.line({ text: `${sets}: nothing is wrong`, color: "green" });
  else screen.line(`${sets}: ${counted(errors, "error")}, ${counted(findings.length - errors, "warning")}`);
}

/** Findings of `lint` as tools read them: SARIF 2.1.0, and the workflow commands of GitHub Actions. */
interface Finding {
  /** position as file:line:column */
  readonly place: string;
  /** name of the SidecarSet */
  readonly name: string;
  readonly severity: "error" | "warning";
  readonly message: string;
}

const PLACE = /^(.*):(\d+):(\d+)$/s;

const RULES = {
  error: { id: "sidecarset/refused", text: "The webhook refuses the SidecarSet." },
  warning: { id: "sidecarset/doubtful", text: "The SidecarSet is accepted, and does not do what it seems to say." },
} as const;

function partsOf(place: string): { readonly file: string; readonly line: number; readonly column: number } {
  const [, file = place, line = "1", column = "1"] = PLACE.exec(place) ?? [];
  return { file, line: Number(line), column: Number(column) };
}

/** One log with one run, even if there are no findings. */
export function sarifLog(findings: readonly Finding[], version: string): object {
  const rules = (["error", "warning"] as const).map((level) => ({
    id: RULES[level].id,
    shortDescription: { text: RULES[level].text },
    defaultConfiguration: { level },
  }));
  const results = findings.map(({ place, name, severity, message }) => {
    const { file, line, column } = partsOf(place);
    const physicalLocation = {
      artifactLocation: { uri: fileUri(file) },
      region: { startLine: line, startColumn: column },
    };
    return {
      ruleId: RULES[severity].id,
      ruleIndex: severity === "error" ? 0 : 1,
      level: severity,
      message: { text: textOf(name, message) },
      locations: [{ physicalLocation }],
    };
  });
  return {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [{ tool: { driver: { name: "sidecarset lint", version, rules } }, columnKind: "utf16CodeUnits", results }],
  };
}

/** A relative reference, or a file: URI for an absolute path; Windows writes \ in paths. */
function fileUri(file: string): string {
  const path = file.replaceAll("\\", "/").replace(/^(\.\/)+/, "");
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  if (/^[A-Za-z]:\//.test(path)) return `file:///${encoded.replace("%3A", ":")}`;
  return path.startsWith("/") ? `file://${encoded}` : encoded;
}

/** One line for each finding, which GitHub shows at the line of the file. */
export function githubCommands(findings: readonly Finding[]): readonly string[] {
  return findings.map(({ place, name, severity, message }) => {
    const { file, line, column } = partsOf(place);
    const properties = `file=${escapeProperty(file)},line=${line},col=${column},title=sidecarset lint`;
    return `::${severity} ${properties}::${escapeData(textOf(name, message))}`;
  });
}

function textOf(name: string, message: string): string {
  return name === "" ? message : `SidecarSet ${name}: ${message}`;
}

function escapeData(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
