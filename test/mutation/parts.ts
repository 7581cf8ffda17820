/** What Stryker changes in one run, and by which tests it is found: those that neither start processes nor wait for seconds. */
export interface Part {
  readonly tests: readonly string[];
  readonly leftOut?: readonly string[];
  /** parts of the names of tests that take seconds: a mutant that nothing finds runs every test that reaches it */
  readonly slow?: readonly string[];
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
    leftOut: ["change-in-batch", "halt", "overlap"].map((name) => `test/controller/${name}.test.ts`),
    slow: [
      "a release that halts",
      "a pass of 8000 ms",
      "keeps the pod out of its services",
      "of a batch keeps within its limit",
      "goes back to the image as it was written",
      "set back by an hour does not make a pass longer",
      "no batch begins without a value within the bound",
      "stop the rollout once there are more than may be",
      "also when the call lands late",
      "its count is forgotten after two minutes",
      "so that its patch comes too late",
      "has ended meanwhile does nothing to its pod",
      "another way to write the same image",
      "one container after the other when it is ordered",
      "a rollout under the older definition",
      "tells what is forbidden and which role",
      "of pods: each is tried again after a longer while",
      "a following pass",
      "dies at any of its calls",
    ],
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
