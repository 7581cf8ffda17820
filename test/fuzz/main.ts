/**
 * `npm run fuzz -- --bodies 20000 [--from N]` sends random bodies. Exits 1 for a crash, a 5xx, an answer that takes
 * over a second, or one that is not a review.
 */
import { keepReport } from "../simulation/report-file.ts";
import { readOptions } from "../support/read-options.ts";
import { fuzzedBody, PATHS, WAYS } from "./bodies.ts";
import { problemOf } from "./judge.ts";
import { fuzzedWebhooks } from "./webhooks.ts";

const SHOWN = 20;
const { values } = readOptions({
  options: {
    bodies: { type: "string" },
    from: { type: "string" },
    show: { type: "boolean" },
    json: { type: "string" },
  },
});
const bodies = Number(values.bodies ?? 20_000);
const from = Number(values.from ?? 0);
const print = (line: string) => void process.stdout.write(`${line}\n`);

const answer = fuzzedWebhooks();
const statuses: Record<string, number> = {};
let [looked, problems, reviews, worstMs] = [0, 0, 0, 0];
for (let index = from; index < from + bodies; index++) {
  const fuzzed = fuzzedBody(index);
  if (values.show) print(`${fuzzed.path} ${fuzzed.body}`);
  const [beganMs, used] = [performance.now(), process.cpuUsage()];
  const answered = await answer(fuzzed.path, fuzzed.body).catch((error: unknown) => ({ status: 0, body: `${error}` }));
  const { user, system } = process.cpuUsage(used);
  // On a busy machine other processes take much of the time.
  const ms = Math.min(performance.now() - beganMs, (user + system) / 1000);
  const problem = problemOf(fuzzed, { ...answered, ms });
  looked++;
  worstMs = Math.max(worstMs, ms);
  statuses[answered.status] = (statuses[answered.status] ?? 0) + 1;
  if (answered.status === 200) reviews++;
  if (!problem) continue;
  problems++;
  if (problems <= SHOWN) print(`FAIL npm run fuzz -- --show --bodies 1 --from ${index}   # ${fuzzed.path}: ${problem}`);
}
print(
  `${looked} bodies in ${WAYS.length} ways for ${PATHS.length} webhooks: ${problems} problems; ${reviews} reviews, ` +
    `answers by status ${JSON.stringify(statuses)}, the slowest ${Math.round(worstMs)} ms`,
);
if (values.json) keepReport(values.json, "fuzz", { bodies: looked, problems, reviews, slowestMs: Math.round(worstMs) });
process.exitCode = looked > 0 && reviews > looked / 10 && problems === 0 ? 0 : 1;
