/** What is tried on each version of Kubernetes that can be built, beside the one that all tests run on. */

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
