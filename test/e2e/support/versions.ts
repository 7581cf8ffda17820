/** Tests that run on every version of Kubernetes. All other tests run on the version in go.mod only. */

/** Filters, as vitest takes them. */
export const ON_EACH_VERSION = [
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
].map((file) => `test/e2e/${file}.e2e.ts`);
