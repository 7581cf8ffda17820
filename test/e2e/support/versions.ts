/** Lists the tests for each version of Kubernetes, and the results of the last runs. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** The variable that names a version such as 1.33. All tests run on the one in go.mod. */
export const VERSION_VARIABLE = "E2E_KUBERNETES";

/** The variable that names the version of a real node's kubelet, if it differs from the control plane's. */
export const KUBELET_VARIABLE = "E2E_KUBELET";

/** Names the reports of a run: node, e2e, e2e-1.33. */
export const RUN_NAME =
  process.env["E2E_NODE"] === "1" ? "node" : ["e2e", process.env[VERSION_VARIABLE]].filter(Boolean).join("-");

const MODULE = fileURLToPath(new URL("../control-plane/kubernetes/", import.meta.url));
const RESULTS = fileURLToPath(new URL("../versions.json", import.meta.url));

const PAGE = fileURLToPath(new URL("../README.md", import.meta.url));

/** Returns the version in a module file, such as 1.37.2. */
export function versionIn(file: string): string {
  const version = /k8s\.io\/kubernetes v([0-9.]+)/.exec(readFileSync(`${MODULE}${file}`, "utf8"))?.[1];
  if (version === undefined) throw new Error(`${file} requires no k8s.io/kubernetes`);
  return version;
}

function minorOf(version: string): string {
  return version.split(".").slice(0, 2).join(".");
}

/** The newest version, from go.mod, such as 1.37. */
export const MAIN_VERSION = minorOf(versionIn("go.mod"));

/** Returns the module file in test/e2e/control-plane/kubernetes for a version. */
export function moduleFileOf(version: string | undefined): string {
  return version === undefined || version === MAIN_VERSION ? "go.mod" : `versions/${version}.mod`;
}

/** Versions that can be built, oldest first. */
export function allVersions(): readonly string[] {
  const files = readdirSync(`${MODULE}versions`).filter((file) => file.endsWith(".mod"));
  return [...files.map((file) => basename(file, ".mod")), MAIN_VERSION].sort();
}

/** File that runs on every version → its subject. */
const CORE: Readonly<Record<string, string>> = {
  contract: "the API server answers as the embedded one",
  injection: "injection",
  several: "several SidecarSets for one pod",
  rollout: "rollouts",
  "in-place": "updates in place",
  "native-sidecars": "native sidecars",
  resize: "resources in place (`pods/resize`)",
  revisions: "revisions",
  fence: "the fence of policies",
  compile: "injection by policy (`compile`)",
  "static-manifests": "registrations in files",
  "disruption-budgets": "disruption budgets",
  replace: "evictions",
  rbac: "roles",
  "cli-check": "`check` and `migrate`",
};

/** File that runs on a node whose kubelet is older than the control plane → its subject. */
const OLDER_KUBELET: Readonly<Record<string, string>> = {
  contract: "what nodes do with pods",
  "hot-upgrade": "a hot upgrade under traffic",
  "in-place": "updates in place",
  "native-sidecars": "native sidecars",
  resize: "resources in place (`pods/resize`)",
};
export const FILES_ON_OLDER_KUBELET = Object.keys(OLDER_KUBELET).map((name) => `/${name}.`);

/** Test file → the first version that its subject works on. */
const FROM_ON: Readonly<Record<string, string>> = { resize: "1.33", compile: "1.36", "static-manifests": "1.36" };

/** Kubernetes 1.36 needs this flag to read registrations from files; 1.37 does not. */
export function flagsOn(version = wanted()): Readonly<Record<string, string>> {
  const isAsked = isAtLeast(version, "1.36") && !isAtLeast(version, "1.37");
  return isAsked ? { "feature-gates": "ManifestBasedAdmissionControlConfig=true" } : {};
}

/** True if the kubelet of the real node has this version or a newer one. */
export function isKubeletFrom(first: string): boolean {
  return isAtLeast(process.env[KUBELET_VARIABLE] ?? wanted(), first);
}

/** True if tests run on this version of Kubernetes or a newer one. */
export function runsFrom(first: string): boolean {
  return isAtLeast(wanted(), first);
}

/** False if the version of existing programs is unknown. */
export function isVersionKnown(): boolean {
  return wanted() !== undefined || !process.env["KUBEBUILDER_ASSETS"];
}

export function readsFiles(): boolean {
  return isVersionKnown() && isAtLeast(wanted(), "1.36");
}

function wanted(): string | undefined {
  return process.env[VERSION_VARIABLE];
}

const fileOf = (name: string) => `test/e2e/${name}.e2e.ts`;

function runsOn(name: string, version: string): boolean {
  return isAtLeast(version, FROM_ON[name] ?? version);
}

/** Returns filters for vitest: the files that run on this version if no file is named. */
export function filesOn(version: string): readonly string[] {
  return Object.keys(CORE).flatMap((name) => (runsOn(name, version) ? [fileOf(name)] : []));
}

export function filesNotOn(version = MAIN_VERSION): readonly string[] {
  const isOut = (name: string) => !runsOn(name, version) || (name === "static-manifests" && !readsFiles());
  return Object.keys(CORE).flatMap((name) => (isOut(name) ? [fileOf(name)] : []));
}

function isAtLeast(version: string | undefined, first: string): boolean {
  const minor = (text: string) => Number(text.split(".")[1]);
  return minor(version ?? MAIN_VERSION) >= minor(first);
}

interface Totals {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
}

const BELOW = " with kubelet ";

/** Version → file → tests that passed and failed in its last run. */
type Results = Readonly<Record<string, Readonly<Record<string, readonly [passed: number, failed: number]>>>>;

/**
 * Writes results on other versions into versions.json and the tables of test/e2e/README.md. The results of files that
 * did not run stay.
 */
export function recordResults(files: readonly Totals[]): void {
  const [version, kubelet] = [process.env[VERSION_VARIABLE], process.env[KUBELET_VARIABLE]];
  const isOnNode = process.env["E2E_NODE"] === "1";
  if (version === undefined || (isOnNode && kubelet === undefined)) return;
  const exact = `${versionIn(moduleFileOf(version))}${isOnNode ? BELOW + versionIn(moduleFileOf(kubelet)) : ""}`;
  const all = readResults();
  const ours = files
    .filter(({ file }) => file in (isOnNode ? OLDER_KUBELET : CORE))
    .map(({ file, passed, failed }) => [file, [passed, failed]]);
  const next: Results = { ...all, [exact]: { ...all[exact], ...Object.fromEntries(ours) } };
  const sorted = Object.fromEntries(Object.entries(next).toSorted(([a], [b]) => a.localeCompare(b)));
  // Arrays are written in the formatter's style.
  const text = JSON.stringify(sorted, undefined, 2).replaceAll(/\[\s+(\d+),\s+(\d+)\s+\]/g, "[$1, $2]");
  writeFileSync(RESULTS, `${text}\n`);
  const page = [versionTable(), kubeletTable()].reduce(withTable, readFileSync(PAGE, "utf8").split("\n"));
  writeFileSync(PAGE, page.join("\n"));
}

/** Replaces the table whose first column has the same title as `table`. */
function withTable(lines: readonly string[], table: readonly string[]): readonly string[] {
  const title = `${table[0]?.split(" | ")[0]} |`;
  const begin = lines.findIndex((line) => line.startsWith(title));
  if (begin < 0) throw new Error(`test/e2e/README.md has no table ${title}`);
  const end = lines.findIndex((line, index) => index > begin && !line.startsWith("|"));
  return [...lines.slice(0, begin), ...table, ...lines.slice(end)];
}

function readResults(): Results {
  return JSON.parse(readFileSync(RESULTS, "utf8")) as Results;
}

/** Returns rows of test/e2e/README.md: the passed tests on each version that can be built. */
export function versionTable(
  results = readResults(),
  versions = allVersions().map((version) => versionIn(moduleFileOf(version))),
): readonly string[] {
  return tableOf("tests that passed", { rows: CORE, versions, results });
}

/** Returns rows of test/e2e/README.md: the same for nodes whose kubelet is older than the control plane. */
export function kubeletTable(results = readResults()): readonly string[] {
  const versions = Object.keys(results).filter((one) => one.includes(BELOW));
  return tableOf("tests that passed on a node", { rows: OLDER_KUBELET, versions, results });
}

interface Table {
  readonly rows: Readonly<Record<string, string>>;
  readonly versions: readonly string[];
  readonly results: Results;
}

function tableOf(title: string, { rows, versions, results }: Table): readonly string[] {
  const cell = (name: string, version: string) => {
    const [passed, failed] = results[version]?.[name] ?? [0, 0];
    if (!runsOn(name, version)) return "not served";
    if (passed + failed === 0) return "not run";
    return failed > 0 ? `${failed} of ${passed + failed} failed` : String(passed);
  };
  const row = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    row([title, ...versions]),
    row(["", ...versions].map(() => "---")).replaceAll(" ", ""),
    ...Object.entries(rows).map(([name, what]) => row([what, ...versions.map((version) => cell(name, version))])),
  ];
}
