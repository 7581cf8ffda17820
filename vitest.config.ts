import { defineConfig } from "vitest/config";
import { PATIENT } from "./test/support/patient.ts";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 22 || (major === 22 && minor < 19))
  throw new Error(
    `Node ${process.versions.node} is too old for the tests: run \`npm ci\`, then \`npm test\`, which takes Node 24.`,
  );

export const SETUP = ["test/support/kept-output.ts", ...(process.env["TEST_COSTS"] ? ["test/support/costs.ts"] : [])];

/** `npm test`: what needs neither processes nor much computing. Properties are tried on few cases. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "infra/local/test/*.test.ts"],
    setupFiles: ["test/support/short-properties.ts", ...SETUP],
    // Files share what they import: most of the time went into loading it for each file.
    isolate: false,
    pool: "threads",
    maxWorkers: "100%",
    // Nothing may hang on how busy the machine is.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: PATIENT },
    passWithNoTests: false,
    // What a test logs is shown if it fails.
    silent: "passed-only",
    reporters: ["minimal", "json"],
    outputFile: { json: "reports/quick.json" },
    experimental: { diagnostics: false },
  },
});
