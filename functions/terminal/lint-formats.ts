/** Findings of `lint` as tools read them: SARIF 2.1.0, and the workflow commands of GitHub Actions. */

interface Finding {
  /** file:line:column */
  readonly place: string;
  /** of the SidecarSet */
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

/** One log with one run, also where nothing was found. */
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

/** A relative reference, or file: where the path is absolute; Windows writes \ in paths. */
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
