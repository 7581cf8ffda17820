/** The code that Stryker changes in one run, and its tests. The tests start no process, and none waits for seconds. */
export interface Part {
  readonly tests: readonly string[];
  /** the most milliseconds of a test; slower tests are left out; absent: no limit */
  readonly mostMs?: number;
  readonly setup?: readonly string[];
}

/** Parts by the name of a directory of `shared`. */
export const PARTS = {
  core: {
    tests: ["test/core/**/*.test.ts", "test/mutation/vectors.test.ts"],
    setup: ["test/support/short-properties.ts"],
  },
  kube: { tests: ["test/kube/*.test.ts", "test/kube/*.slow.ts"] },
  webhook: {
    tests: [
      "test/webhook/*.test.ts",
      ...["widen-registration", "broken-build", "cold-starts"].map((name) => `test/webhook/${name}.slow.ts`),
      "test/mutation/view-worlds.slow.ts",
      "test/properties/managed-fields.test.ts",
    ],
  },
  controller: {
    tests: [
      "test/controller/**/*.test.ts",
      ...["disruption/budgets", "ordered-set/pass", "recreate", "functions"].map(
        (name) => `test/controller/${name}.slow.ts`,
      ),
      "test/mutation/pass-worlds.slow.ts",
    ],
    mostMs: 250,
  },
} satisfies Readonly<Record<string, Part>>;

type PartName = keyof typeof PARTS;

export function isPart(name: string | undefined): name is PartName {
  return name !== undefined && name in PARTS;
}

/** The variable with the part's name; Stryker's own processes read it too. */
export const VARIABLE = "MUTATED";

const named = process.env[VARIABLE];

export const MUTATED: PartName = isPart(named) ? named : "core";
