/**
 * `npm run bench --
 * core|webhook|apiserver|rollout|priority-level|memory|first-decision|growth|clusters|queue|ordered|passes|share|rooms|serve|slow
 * [--json] [--pods 500,1000] [--real] [--full]` prints a table, or one JSON object. `npm run bench -- gates` runs
 * webhook, rollout, memory, first-decision, growth and passes for a short time. It fails if a figure breaks its limit,
 * and stores the figures in reports/bench.json.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { readOptions } from "../support/read-options.ts";
import { apiServerTable, measureApiServer } from "./api-server/measure-api-server.ts";
import { clustersTable, measureClusters } from "./clusters/measure-clusters.ts";
import { measureCore } from "./core.ts";
import { coreTable } from "./core-table.ts";
import { firstDecisionLine, measureFirstDecision } from "./first-decision/measure-first-decision.ts";
import {
  clustersGates,
  firstDecisionGates,
  gateLine,
  growthGates,
  isHeld,
  memoryGates,
  passesGates,
  rolloutGates,
  webhookGates,
} from "./gates.ts";
import { growthTable, measureGrowth } from "./growth/measure-growth.ts";
import { measureMemory } from "./memory/measure-memory.ts";
import { measureServe, serveTable } from "./memory/measure-serve.ts";
import { memoryTable } from "./memory/memory-table.ts";
import { measureOrdered, orderedTable } from "./ordered.ts";
import { measureQueue } from "./queue/measure-queue.ts";
import { queueTable } from "./queue/queue-table.ts";
import { measurePriorityLevel, priorityLevelTable } from "./rollout/measure-priority-level.ts";
import { measureRollout, type RolloutFigures } from "./rollout/measure-rollout.ts";
import { rolloutTable } from "./rollout/rollout-table.ts";
import { measureLargePodStore, measureRooms } from "./rooms/measure-rooms.ts";
import { arePaying, roomsTable } from "./rooms/rooms-table.ts";
import { measureShare, type ShareRow, shareTable } from "./share/measure-share.ts";
import { measureSlow, slowTable } from "./webhook/measure-slow.ts";
import { measurePasses, measureWebhook } from "./webhook/measure-webhook.ts";
import { passesTable, webhookTable } from "./webhook/webhook-table.ts";

interface Printed {
  readonly figures: object;
  readonly table: string;
  readonly isBroken?: boolean;
}

const CORE_ROUNDS = 15;
/** Takes about 2 minutes, or 5 with all sizes. */
const WEBHOOK = { rounds: 9, milliseconds: 400, callers: [1, 8, 32], sidecarSets: [1, 10], keptToo: [10] };
const FULL_WEBHOOK = { ...WEBHOOK, sidecarSets: [1, 10, 200, 50_000], keptToo: [1, 10, 200, 50_000] };
/** Takes about 6 minutes. Rounds are multiples of 42, for the order. */
const API_SERVER = { alone: { rounds: 168, milliseconds: 150 }, many: { rounds: 42, milliseconds: 300 } };
const SHORT_WEBHOOK = { rounds: 9, milliseconds: 250, callers: [1, 32], sidecarSets: [10], keptToo: [10] };
const SHORT_ROLLOUT = { sizes: [200], rounds: 1, where: "embedded" } as const;
/** Takes about 5 minutes: one tick of Lambda's function for each size. */
const MEMORY = { sizes: [1_000, 20_000, 60_000, 150_000], seconds: 58 };
const SHORT_MEMORY = { sizes: [20_000], seconds: 20 };
/** Takes half a minute, or a quarter for a share. With fewer SidecarSets the warm-up would count most. */
const FIRST_DECISION = { sidecarSets: 50_000, rounds: 7 };
const SHORT_FIRST_DECISION = { ...FIRST_DECISION, rounds: 3 };
/** Takes about 20 seconds, and short rounds 10. */
const GROWTH_ROUNDS = 5;
const SHORT_GROWTH_ROUNDS = 3;
const CLUSTER_PROCESSES = 9;
/** Takes about half a minute. */
const QUEUE = { sidecarSets: 5_000, rounds: 3 };
/** Takes about 2 minutes. */
const PASSES = { pods: 1_000, rounds: 3 };
/** Takes about 3 minutes. */
const SLOW = { delays: [3_000, undefined], milliseconds: 15_000, rounds: 3 };
/** Takes about 8 minutes. 512 MB is the size in serverless.yml, and 1,769 MB gives a whole processor. */
const SERVE = { pods: 1_000, restSeconds: 60 };
const SHARE = {
  megabytes: [512, 1_769, 3_008],
  sizes: [1_000, 20_000, 150_000],
  seconds: 58,
  maxUnavailable: 5_000,
  sidecarSets: 50_000,
  rounds: 3,
  processes: 9,
};
/** Takes about 10 minutes, most of them for the pod store. With --pods only the store runs: 6 minutes for 150,000. */
const ROOMS = { megabytes: 512, rounds: 9, pods: 20_000 };
const LARGE_ROUNDS = 3;
const REPORT = "reports/bench.json";
const DEFAULT_PODS = "500,1000,2000";
const REAL_PODS = "1000,2000,4000,10000";
const LEVEL_PODS = "2000";

function podNumbers(text: string): readonly number[] {
  const numbers = text.split(",").map(Number);
  if (numbers.every((count) => Number.isInteger(count) && count > 0)) return numbers;
  throw new Error(`--pods ${text}: expected numbers of pods, separated by commas, such as ${DEFAULT_PODS}`);
}

/** Stores measurements under their names in figures.json; other figures of earlier runs stay. */
async function keep(figures: Readonly<Record<string, object>>): Promise<void> {
  await mkdir("reports", { recursive: true });
  const measuredAt = new Date().toISOString().slice(0, 10);
  const before = JSON.parse(await readFile(REPORT, "utf8").catch(() => "{}")) as object;
  const dated = Object.entries(figures).map(([name, of]) => [name, { measuredAt, ...of }]);
  await writeFile(REPORT, `${JSON.stringify({ ...before, ...Object.fromEntries(dated) })}\n`);
}

async function gates(): Promise<Printed> {
  const webhook = await measureWebhook(SHORT_WEBHOOK);
  const rollout = await measureRollout(SHORT_ROLLOUT);
  const memory = await measureMemory(SHORT_MEMORY);
  const first = await measureFirstDecision(SHORT_FIRST_DECISION);
  const growth = await measureGrowth(SHORT_GROWTH_ROUNDS);
  const passes = await measurePasses(PASSES);
  const all = [
    ...growthGates(growth),
    ...webhookGates(webhook),
    ...rolloutGates(rollout),
    ...memoryGates(memory),
    ...firstDecisionGates(first),
    ...passesGates(passes),
  ];
  await keep({ webhook, rollout });
  const tables = [
    webhookTable(webhook),
    rolloutTable(rollout),
    memoryTable(memory),
    firstDecisionLine(first),
    growthTable(growth),
    passesTable(passes),
  ];
  const table = [...tables, ...all.map(gateLine), ""].join("\n");
  return { figures: { gates: all }, table, isBroken: !all.every(isHeld) };
}

interface Wanted {
  /** the value of --pods */
  readonly pods: string | undefined;
  readonly isReal: boolean;
  readonly isFull: boolean;
}

const BENCHMARKS: Readonly<Record<string, (wanted: Wanted) => Printed | Promise<Printed>>> = {
  core: () => {
    const figures = measureCore(CORE_ROUNDS);
    return { figures, table: coreTable(figures, CORE_ROUNDS) };
  },
  webhook: async ({ isFull }) => {
    const figures = await measureWebhook(isFull ? FULL_WEBHOOK : WEBHOOK);
    await keep({ webhook: figures });
    return { figures, table: webhookTable(figures) };
  },
  apiserver: async () => {
    const figures = await measureApiServer(API_SERVER);
    await keep({ apiServer: figures });
    return { figures, table: apiServerTable(figures) };
  },
  memory: async () => {
    const figures = await measureMemory(MEMORY);
    await keep({ memory: figures });
    return { figures, table: memoryTable(figures) };
  },
  serve: async () => {
    const figures = await measureServe(SERVE);
    await keep({ serve: figures });
    return { figures, table: serveTable(figures) };
  },
  passes: async ({ pods }) => {
    const figures = await measurePasses(
      pods === undefined ? PASSES : { ...PASSES, pods: Math.max(...podNumbers(pods)) },
    );
    await keep({ passes: figures });
    return { figures, table: passesTable(figures), isBroken: !passesGates(figures).every(isHeld) };
  },
  slow: async () => {
    const figures = await measureSlow(SLOW);
    await keep({ slow: figures });
    return { figures, table: slowTable(figures) };
  },
  "first-decision": async () => {
    const figures = await measureFirstDecision(FIRST_DECISION);
    await keep({ firstDecision: figures });
    return { figures, table: firstDecisionLine(figures) };
  },
  growth: async () => {
    const figures = await measureGrowth(GROWTH_ROUNDS);
    return { figures, table: growthTable(figures) };
  },
  clusters: async () => {
    const figures = await measureClusters(CLUSTER_PROCESSES);
    return { figures, table: clustersTable(figures), isBroken: !clustersGates(figures).every(isHeld) };
  },
  queue: async () => {
    const figures = await measureQueue(QUEUE);
    await keep({ queue: figures });
    return { figures, table: queueTable(figures) };
  },
  share: async () => {
    const rows: ShareRow[] = [];
    for await (const row of measureShare(SHARE)) {
      rows.push(row);
      await keep({ share: { rows } }); // stored now: a later row may fail
    }
    return { figures: { rows }, table: shareTable(rows, SHARE) };
  },
  rooms: async ({ pods }) => {
    const sizes = pods === undefined ? undefined : podNumbers(pods);
    const rooms = await (sizes ? measureLargePodStore(Math.max(...sizes), LARGE_ROUNDS) : measureRooms(ROOMS));
    await keep({ [sizes ? "largePodStore" : "rooms"]: { rooms } });
    return { figures: { rooms }, table: roomsTable(rooms), isBroken: !arePaying(rooms) };
  },
  ordered: async () => {
    const figures = await measureOrdered();
    return { figures, table: orderedTable(figures) };
  },
  rollout: async ({ pods, isReal }) => {
    const sizes = podNumbers(pods ?? (isReal ? REAL_PODS : DEFAULT_PODS));
    const where = isReal ? "real" : "embedded";
    const onSize = (soFar: RolloutFigures) => keep(isReal ? { realRollout: soFar } : { rollout: soFar });
    const figures = await measureRollout({ sizes, rounds: 3, where, onSize });
    return { figures, table: rolloutTable(figures) };
  },
  "priority-level": async ({ pods }) => {
    const figures = await measurePriorityLevel({ pods: Math.max(...podNumbers(pods ?? LEVEL_PODS)), rounds: 3 });
    await keep({ priorityLevel: figures });
    return { figures, table: priorityLevelTable(figures) };
  },
  gates,
};

async function main(): Promise<number> {
  const options = {
    json: { type: "boolean" },
    full: { type: "boolean", default: false },
    real: { type: "boolean", default: false },
    pods: { type: "string" },
  } as const;
  const { positionals, values } = readOptions({ options, allowPositionals: true });
  const [what = ""] = positionals;
  const run = BENCHMARKS[what];
  if (run === undefined) {
    const known = Object.keys(BENCHMARKS).join(", ");
    process.stderr.write(`${what || "nothing"} is no benchmark: npm run bench -- NAME, NAME being one of ${known}\n`);
    return 2;
  }
  const {
    figures,
    table,
    isBroken = false,
  } = await run({
    pods: values.pods,
    isReal: values.real,
    isFull: values.full,
  });
  process.stdout.write(values.json ? `${JSON.stringify(figures)}\n` : table);
  return isBroken ? 1 : 0;
}

process.exitCode = await main();
