/** Kinds of worlds out of the ordinary: each has a few of fifty seeds, so that all others stay what they are. */

export const WORLD_KINDS = [
  "crowd",
  "shares",
  "namespaces",
  "order",
  "policies",
  "busy",
  "proxy",
  "lagging",
  "collected",
  "hands",
  "clocks",
  "evictions",
  "approvals",
  "nodes",
  "history",
  "selections",
  "replacements",
  "waves",
  "metrics",
  "disruptions",
  "restarts",
  "waveChecks",
  "missedRestarts",
] as const;

export type WorldKind = (typeof WORLD_KINDS)[number];

const OF_FIFTY: Readonly<Record<number, WorldKind>> = {
  2: "crowd",
  42: "crowd",
  6: "shares",
  8: "shares",
  10: "history",
  11: "evictions",
  12: "namespaces",
  14: "namespaces",
  15: "approvals",
  18: "waves",
  19: "order",
  20: "selections",
  22: "nodes",
  23: "metrics",
  24: "restarts",
  25: "policies",
  26: "policies",
  27: "missedRestarts",
  28: "busy",
  29: "proxy",
  30: "replacements",
  31: "evictions",
  32: "lagging",
  33: "disruptions",
  34: "history",
  35: "collected",
  36: "hands",
  37: "disruptions",
  38: "clocks",
  40: "restarts",
  41: "waveChecks",
  44: "replacements",
  45: "approvals",
  46: "nodes",
  47: "waves",
  48: "selections",
  49: "metrics",
};

/** undefined: an ordinary one. */
export function kindOf(seed: number): WorldKind | undefined {
  return OF_FIFTY[seed % 50];
}
