/** Which tests run on which version of Kubernetes. */

/** The variable that names another version than the one in go.mod, which all tests run on: 1.33. */
export const VERSION_VARIABLE = "E2E_KUBERNETES";

/** Files of tests that run on every version. */
const ON_EACH_VERSION = [
  "contract",
  "injection",
  "several",
  "rollout",
  "in-place",
  "native-sidecars",
  "resize",
  "revisions",
  "fence",
  "compile",
  "disruption-budgets",
  "replace",
  "rbac",
  "cli-check",
];

/** Files of tests about what older versions do not have. */
const FROM_ON: Readonly<Record<string, string>> = { "static-manifests": "1.37" };

const fileOf = (name: string) => `test/e2e/${name}.e2e.ts`;

/** Filters, as vitest takes them, of what runs on this version when no file is named. */
export function filesOn(version: string): readonly string[] {
  const newer = Object.entries(FROM_ON).flatMap(([name, first]) => (isAtLeast(version, first) ? [name] : []));
  return [...ON_EACH_VERSION, ...newer].map(fileOf);
}

/** What does not run on this version. */
export function filesNotOn(version: string | undefined): readonly string[] {
  return Object.entries(FROM_ON).flatMap(([name, first]) => (isAtLeast(version, first) ? [] : [fileOf(name)]));
}

/** Versions as 1.33; undefined: the one in go.mod, of which nobody says here which it is. */
export function isAtLeast(version: string | undefined, first: string): boolean {
  const [, minor = 0] = (version ?? "").split(".").map(Number);
  return minor >= Number(first.split(".")[1]);
}
