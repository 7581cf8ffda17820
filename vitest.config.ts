import { defineConfig, type TestUserConfig } from "vitest/config";
import { PATIENT } from "./test/support/patient.ts";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19))
  throw new Error(
    `Node ${process.versions.node} is too old for the tests: run \`npm ci\`, then \`npm test\`, which takes Node 24.`,
  );

const SETUP = [
  "test/support/clean-slate.ts",
  "test/support/kept-output.ts",
  ...(process.env["TEST_COSTS"] ? ["test/support/costs.ts"] : []),
];

/** Quick tests at full length. */
export const QUICK = {
  include: ["test/**/*.test.ts", "infra/local/test/*.test.ts"],
  setupFiles: SETUP,
  // Files share what they import: most of the time went into loading it for each file.
  isolate: false,
  pool: "threads",
  // Nothing may hang on how busy the machine is.
  testTimeout: 600_000,
  hookTimeout: 600_000,
  expect: { poll: PATIENT },
} satisfies TestUserConfig;

export const RUN = {
  passWithNoTests: false,
  // The output of a test is shown if the test fails.
  silent: "passed-only",
  reporters: ["minimal", "json"],
  experimental: { diagnostics: false },
} satisfies TestUserConfig;

/** `npm test`: what needs neither processes nor much computing. Properties are tried on few cases. */
export default defineConfig({
  test: {
    ...QUICK,
    ...RUN,
    setupFiles: ["test/support/short-properties.ts", ...SETUP],
    maxWorkers: "100%",
    outputFile: { json: "reports/quick.json" },
  },
});
