/** `npm run bench -- core|webhook|ordered [--json]`: prints a table, or one JSON object. */
import { measureCore } from "./core.ts";
import { coreTable } from "./core-table.ts";
import { measureOrdered, orderedTable } from "./ordered.ts";
import { measureWebhook } from "./webhook/measure-webhook.ts";
import { webhookTable } from "./webhook/webhook-table.ts";

interface Printed {
  readonly figures: object;
  readonly table: string;
}

const CORE_ROUNDS = 15;
const WEBHOOK = { rounds: 9, milliseconds: 400, callers: [1, 8, 32], sidecarSets: [1, 10, 200, 50_000] };

const BENCHMARKS: Readonly<Record<string, () => Printed | Promise<Printed>>> = {
  core: () => {
    const figures = measureCore(CORE_ROUNDS);
    return { figures, table: coreTable(figures, CORE_ROUNDS) };
  },
  ordered: async () => {
    const figures = await measureOrdered();
    return { figures, table: orderedTable(figures) };
  },
  webhook: async () => {
    const figures = await measureWebhook(WEBHOOK);
    return { figures, table: webhookTable(figures) };
  },
};

const [what = "", ...flags] = process.argv.slice(2);
const run = BENCHMARKS[what];
if (run === undefined) {
  const known = Object.keys(BENCHMARKS).join(", ");
  process.stderr.write(
    `${what || "nothing"} is no benchmark: npm run bench -- NAME [--json], NAME being one of ${known}\n`,
  );
  process.exitCode = 2;
} else {
  const { figures, table } = await run();
  process.stdout.write(flags.includes("--json") ? `${JSON.stringify(figures)}\n` : table);
}
