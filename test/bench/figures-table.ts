/**
 * Writes the tables of docs/benchmarks.md, docs/deploy-costs.md, docs/deploy-scale.md and test/bench/README.md from
 * figures.json.
 */
import type { BundleSize } from "../../infra/build.ts";
import type { ColdStartFigures } from "./cold-start.ts";
import type { Cost, Measurements } from "./cost.ts";
import type { MeasuredCode } from "./figures-age.ts";
import { CLUSTERS_OF_A_SET } from "./figures-parts.ts";
import { type QueueFigures, queueCostTable } from "./queue/queue-table.ts";
import type { FigureRow } from "./wanted-figure.ts";

export interface Figures {
  readonly figures: readonly FigureRow[];
  readonly measuredAt: string;
  /** the code that `lambda` measured */
  readonly code: MeasuredCode;
  readonly machine: { readonly node: string; readonly processor: string; readonly runtimeClient: string };
  readonly sizes: Readonly<Record<string, BundleSize>>;
  readonly coldStart: ColdStartFigures;
  readonly queue: QueueFigures;
  readonly cost: {
    readonly measured: Measurements;
    readonly idleMonth: Cost;
    /** number of clusters → dollars of an idle month */
    readonly clusters: Readonly<Record<string, number>>;
    readonly fargateMonth: number;
    readonly breakEvenPods: number;
    readonly podsPerMinute: number;
    readonly podsMonth: Cost;
    readonly doorsMonth: Readonly<Record<string, number>>;
    readonly rolloutOf10000Pods: Cost & { readonly minutes: number };
  };
}

/** Returns the document with a new part between its two marks. @throws Error if a mark is missing */
function withTable(document: string, name: string, table: string): string {
  const [begin, end] = [`<!-- ${name}: written by npm run figures -->`, `<!-- ${name} ends -->`];
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the document has no ${begin} … ${end}`);
  return `${document.slice(0, from + begin.length)}\n${table}\n${document.slice(to)}`;
}

/** Returns for each document with tables the function that writes it. */
export function documentsOf(figures: Figures): readonly (readonly [path: string, write: (text: string) => string])[] {
  const { code, cost, sizes, coldStart, queue } = figures;
  return [
    ["docs/benchmarks.md", (text) => withTable(text, "figures", mainTable(figures))],
    ["docs/deploy-costs.md", (text) => withTable(text, "cost", costTable(cost, code))],
    ["test/bench/README.md", (text) => withTable(text, "cold starts", startTable(sizes, coldStart))],
    ["docs/deploy-scale.md", (text) => withTable(text, "queue", queueCostTable(queue))],
  ];
}

const MEASURED_BY: Readonly<Record<FigureRow["by"], string>> = {
  CI: "CI",
  bench: "benchmark",
  soak: "soak",
};

function mainTable({ figures }: Figures): string {
  const shown = (value: number) =>
    value.toLocaleString("en-US", { maximumSignificantDigits: Number.isInteger(value) ? 10 : 4 });
  const lines = figures
    .filter(({ isMain }) => isMain)
    .map(({ what, by, measuredAt, is, of, atMost, atLeast, isMet }) => {
      const bound = atMost === undefined ? `at least ${shown(atLeast ?? Number.NaN)}` : `at most ${shown(atMost)}`;
      const value = of === undefined ? shown(is) : `${shown(is)} of ${shown(of)}`;
      return `| ${what} | ${bound} | ${value}${isMet ? "" : " (missed)"} | ${MEASURED_BY[by]}, ${measuredAt} |`;
    });
  return ["| figure | target | measured | by |", "|---|---|---|---|", ...lines].join("\n");
}

function dollars(amount: number): string {
  return amount < 0.01 ? "< $0.01" : `$${amount.toFixed(2)}`;
}

function costTable(cost: Figures["cost"], { commit }: MeasuredCode): string {
  const { idleMonth, podsPerMinute, podsMonth, doorsMonth, rolloutOf10000Pods } = cost;
  const several = Object.entries(cost.clusters).filter(([clusters]) => clusters !== "1");
  const pods = podsPerMinute.toLocaleString("en-US");
  const rows: [string, number][] = [
    ...Object.entries(idleMonth.parts),
    ["**an idle cluster, a month**", idleMonth.total],
    ...several.map(([clusters, month]): [string, number] => [
      `${clusters} idle clusters by ${Number(clusters) > CLUSTERS_OF_A_SET ? "two sets" : "one set"} of functions`,
      month,
    ]),
    [`**${pods} new pods a minute, a month**, by Function URL`, podsMonth.total],
    ["an HTTP API in front of them, in addition", doorsMonth["HTTP API"] ?? Number.NaN],
    ["a load balancer in front of them, in addition", doorsMonth["load balancer"] ?? Number.NaN],
    ["answers to an API server outside the region, in addition", doorsMonth["answers to the internet"] ?? Number.NaN],
    ["`serve` on Fargate instead: two tasks and a load balancer", cost.fargateMonth],
    [`**one rollout over 10,000 pods**, ${rolloutOf10000Pods.minutes} minutes`, rolloutOf10000Pods.total],
  ];
  return [
    `| what | cost (times of commit \`${commit}\`) |`,
    "|---|---|",
    ...rows.map(([what, amount]) => `| ${what} | ${dollars(amount)} |`),
  ].join("\n");
}

function startTable(sizes: Figures["sizes"], { functions }: ColdStartFigures): string {
  const rows = Object.entries(functions).map(([name, { cold, coldCpu, warm }]) => {
    const eager = ((sizes[name]?.eager ?? Number.NaN) / 1000).toFixed(0);
    const computing = coldCpu === undefined ? "" : `${coldCpu.median.toFixed(0)} ms`;
    return `| ${name} | ${eager} kB | ${cold.min.toFixed(0)} ms | ${cold.median.toFixed(0)} ms | ${computing} | ${warm.median.toFixed(1)} ms |`;
  });
  return [
    "| function | code loaded | first answer, best | median | computing, median | later answers |",
    "|---|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}
