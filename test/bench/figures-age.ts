/**
 * `npm run figures:age` warns of figures from older code, and never fails. It compares trees of git, so a clone without
 * history is enough.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

export interface MeasuredCode {
  /** hash of the measured commit */
  readonly commit: string;
  /** path of code whose speed counts → its tree in git */
  readonly trees: Readonly<Record<string, string>>;
}

/** The code that Lambda's functions run, for the times in docs/deploy-costs.md. */
const OF_LAMBDA = ["functions/lambda", "shared/webhook", "shared/core/injection", "shared/controller", "shared/kube"];

const git = (...args: readonly string[]) => execFileSync("git", args, { encoding: "utf8" }).trim();

export function measuredCode(revision = "HEAD"): MeasuredCode {
  const trees = OF_LAMBDA.map((path) => [path, git("rev-parse", `${revision}:${path}`)] as const);
  return { commit: git("rev-parse", "--short=8", revision), trees: Object.fromEntries(trees) };
}

/** Returns the paths whose code has changed. */
export function changedSince(measured: MeasuredCode, now: MeasuredCode): readonly string[] {
  return Object.keys(now.trees).filter((path) => measured.trees[path] !== now.trees[path]);
}

if (import.meta.main) {
  const { code } = JSON.parse(readFileSync("test/bench/figures.json", "utf8")) as { readonly code: MeasuredCode };
  const changed = changedSince(code, measuredCode());
  if (changed.length > 0)
    process.stdout.write(
      `::warning file=docs/deploy-costs.md::The times were measured at commit ${code.commit}, and since then ${changed.join(", ")} changed: npm run figures -- lambda measures them again\n`,
    );
}
