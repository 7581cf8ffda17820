/** Orders test files: the longest come first, so that no worker runs one of them alone at the end. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

const LONGEST = [
  "documents",
  "read-your-writes",
  "faults",
  "compile",
  "faults-restart",
  "contract",
  "given-cluster",
  "rbac-rules",
  "ordered-side-by-side",
  "revisions",
  "first-steps",
  "resize",
  "cli-ordered",
  "takeover",
];

function placeOf({ moduleId }: TestSpecification): number {
  const place = LONGEST.findIndex((file) => moduleId.endsWith(`/${file}.e2e.ts`));
  return place === -1 ? LONGEST.length : place;
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => placeOf(a) - placeOf(b) || a.moduleId.localeCompare(b.moduleId));
  }
}
