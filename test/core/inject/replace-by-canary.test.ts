import { expect, test } from "vitest";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { replaceByCanary } from "../../../shared/core/injection/match/matches.ts";

function canary(name: string, isCanary: string, base: string): SidecarSet {
  const annotations = { "apps.kruise.io/sidecarset-canary": isCanary, "apps.kruise.io/sidecarset-base": base };
  return { metadata: { name, annotations }, spec: {} };
}

const LOG: SidecarSet = { metadata: { name: "log" }, spec: {} };
const NAMELESS: SidecarSet = { spec: {} };

const rows: readonly [sentence: string, given: readonly SidecarSet[], left: readonly (string | undefined)[]][] = [
  ["replaceByCanary replaces a base by its canary", [LOG, canary("next", "true", "log")], ["next"]],
  [
    "replaceByCanary does not replace a base by a SidecarSet with the canary annotation True",
    [LOG, canary("next", "True", "log")],
    ["log", "next"],
  ],
  [
    "replaceByCanary does not replace a SidecarSet without a name by a canary without a base",
    [NAMELESS, canary("next", "true", "")],
    [undefined, "next"],
  ],
];
test.each(rows)("%s", (_, given, left) => {
  expect(replaceByCanary(given).map(({ metadata }) => metadata?.name)).toEqual(left);
});
