/** What Stryker changes in one run, and by which tests it is found: those that neither start processes nor wait for seconds. */
export interface Part {
  readonly tests: readonly string[];
  readonly leftOut?: readonly string[];
  /** tests that take longer are left out; absent: none is */
  readonly mostMs?: number;
  readonly setup?: readonly string[];
}

/** By the name of a directory of `shared`. */
export const PARTS = {
  core: {
    tests: ["test/core/**/*.test.ts", "test/mutation/vectors.test.ts"],
    setup: ["test/mutation/short-properties.ts"],
  },
  kube: { tests: ["test/kube/*.test.ts"] },
  webhook: {
    tests: ["test/webhook/*.test.ts", "test/mutation/view-worlds.test.ts", "test/properties/managed-fields.test.ts"],
    leftOut: ["hint-in-process", "serve", "ui"].map((name) => `test/webhook/${name}.test.ts`),
  },
  controller: {
    tests: ["test/controller/**/*.test.ts", "test/mutation/pass-worlds.test.ts"],
    leftOut: ["missed-injection", "change-in-batch", "halt", "overlap"].map(
      (name) => `test/controller/${name}.test.ts`,
    ),
    mostMs: 250,
  },
} satisfies Readonly<Record<string, Part>>;

type PartName = keyof typeof PARTS;

export function isPart(name: string | undefined): name is PartName {
  return name !== undefined && name in PARTS;
}

/** In the environment, since Stryker's own processes read it too. */
export const VARIABLE = "MUTATED";

const named = process.env[VARIABLE];

export const MUTATED: PartName = isPart(named) ? named : "core";
