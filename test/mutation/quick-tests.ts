/** Leaves out slow tests, because a surviving mutant runs every test that reaches it. */
import { beforeEach } from "vitest";
import { fileOf, NEVER_MS, readDurations } from "./durations.ts";
import { MUTATED, PARTS, type Part } from "./parts.ts";

const { mostMs = NEVER_MS - 1 }: Part = PARTS[MUTATED];
const durations = readDurations() ?? {};

beforeEach(({ task, skip }) => {
  const ofFile = durations[fileOf(task.file.filepath)] ?? {};
  const { fullTestName } = task;
  if ((ofFile[fullTestName] ?? 0) > mostMs) skip("it takes long, or follows on one that does");
});
