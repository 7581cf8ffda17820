import { MUTATED } from "./test/mutation/parts.ts";

const reportAs = (ending) => ({ fileName: `reports/mutation/${MUTATED}.${ending}` });

export default {
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner"],
  vitest: { configFile: "test/mutation/vitest.config.ts", related: false },
  mutate: (MUTATED === "core" ? ["core", "go"] : [MUTATED]).map((layer) => `shared/${layer}/**/*.ts`),
  ignorePatterns: ["/*", "!/shared", "!/functions", "!/infra", "!/test", "!/package.json", "!/tsconfig.json"],
  coverageAnalysis: "perTest",
  ignoreStatic: true,
  incremental: true,
  incrementalFile: `reports/mutation/${MUTATED}-incremental.json`,
  reporters: ["clear-text", "json", "html", "progress-append-only"],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  jsonReporter: reportAs("json"),
  htmlReporter: reportAs("html"),
  concurrency: 2,
  // a mutant may fill memory without end
  testRunnerNodeArgs: ["--max-old-space-size=2048"],
  timeoutMS: 10_000,
  timeoutFactor: 2,
  tempDirName: `.stryker-tmp/${MUTATED}`,
  thresholds: { high: 90, low: 85, break: 85 },
};
