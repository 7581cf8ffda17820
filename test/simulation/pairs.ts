/**
 * Lists the pairs of a rollout's features that occur together in a world, and why some never do. `npm run simulate --
 * --pairs` prints the table.
 */
import type { Scenario } from "./scenario.ts";

const FEATURES = {
  waves: ({ release }) => release?.waves !== undefined,
  metrics: ({ release }) => release?.checks !== undefined,
  approvals: ({ release }) => release?.gate !== undefined,
  disruptions: ({ disruptions }) => disruptions !== undefined,
  replacements: ({ release }) => release?.replaced?.includes("Restart") === false,
  restarts: ({ release }) => release?.replaced?.includes("Restart") === true,
  evictions: ({ release }) => release?.isEvicting === true,
  nodes: ({ strikes }) => strikes.some(({ fault }) => fault === "node lost"),
  history: ({ release }) => release?.historyLimit !== undefined,
  ordinals: ({ sets }) => sets.some(({ isOrdinal }) => isOrdinal),
  hot: ({ sets }) => sets.some(({ isHot }) => isHot),
  owners: ({ sets }) => sets.some(({ perOwner }) => perOwner !== undefined),
  strict: ({ isStrict }) => isStrict,
  partition: ({ strategy }) => (strategy.partition ?? 0) !== 0,
  pauses: ({ strikes }) => strikes.some(({ fault }) => fault === "paused"),
  pulls: ({ pulls }) => pulls !== undefined,
  finished: ({ bystanders = [] }) => bystanders.some(({ kind }) => ["task", "evicted", "missed"].includes(kind)),
} as const satisfies Readonly<Record<string, (scenario: Scenario) => boolean>>;

type Feature = keyof typeof FEATURES;

const NAMES = Object.keys(FEATURES) as readonly Feature[];

/** Features that never occur together in one world, with the reason. */
const APART: readonly (readonly [Feature, readonly Feature[], string])[] = [
  ["restarts", ["replacements"], "one annotation asks for either"],
  [
    "restarts",
    ["metrics", "disruptions", "evictions", "nodes", "history", "ordinals", "owners", "pulls", "finished"],
    "such worlds have workloads with controllers, and the judges of the others know owners by the names of pods",
  ],
  [
    "owners",
    ["waves", "metrics", "disruptions", "replacements", "nodes", "history"],
    "not sampled: such worlds turn budgets of owners off",
  ],
  ["ordinals", ["waves", "metrics"], "not sampled: such worlds turn the order of ordinals off"],
  ["disruptions", ["hot"], "not sampled: such worlds turn hot upgrades off"],
  [
    "finished",
    ["waves", "metrics", "approvals", "disruptions", "nodes", "history", "pulls"],
    "not sampled: a few worlds of evictions and of replacements have such pods; test/core/finished-pods.test.ts has all",
  ],
];

/** Returns why the two features never occur together; undefined: they do. */
function whyApart(one: Feature, other: Feature): string | undefined {
  const isOf = (list: readonly Feature[], wanted: Feature) => list.includes(wanted);
  return APART.find(([name, list]) => (name === one && isOf(list, other)) || (name === other && isOf(list, one)))?.[2];
}

const ALL = NAMES.flatMap((one, at) => NAMES.slice(at + 1).map((other) => [one, other] as const));
const nameOfPair = ([one, other]: readonly [Feature, Feature]) => `features: ${one} + ${other}`;

/** Names of the counts of worlds with two features, such as "features: waves + metrics". */
export const PAIR_NAMES: readonly string[] = ALL.filter((pair) => whyApart(...pair) === undefined).map(nameOfPair);

/** Returns the pairs of features in a world. */
export function pairsIn(scenario: Scenario): readonly string[] {
  return ALL.filter((pair) => pair.every((feature) => FEATURES[feature](scenario))).map(nameOfPair);
}

/** Returns the lines of the table: the number of worlds for each pair, and the reasons for missing pairs. */
export function pairTable(met: Readonly<Record<string, number>>): readonly string[] {
  const width = 13;
  const cell = (one: Feature, other: Feature) => {
    const isFirst = NAMES.indexOf(one) < NAMES.indexOf(other);
    if (one === other) return "";
    if (whyApart(one, other) !== undefined) return "apart";
    return String(met[nameOfPair(isFirst ? [one, other] : [other, one])] ?? 0);
  };
  const rowOf = (cells: readonly string[]) =>
    cells
      .map((text) => text.padEnd(width))
      .join("")
      .trimEnd();
  return [
    rowOf(["", ...NAMES]),
    ...NAMES.map((one) => rowOf([one, ...NAMES.map((other) => cell(one, other))])),
    ...APART.map(([one, others, why]) => `${one} apart from ${others.join(", ")}: ${why}`),
  ];
}

/** Counts the pairs in the worlds of these seeds, without running the worlds. */
export function countPairs(scenarios: Iterable<Scenario>): Readonly<Record<string, number>> {
  const met: Record<string, number> = {};
  for (const scenario of scenarios) for (const pair of pairsIn(scenario)) met[pair] = (met[pair] ?? 0) + 1;
  return met;
}
