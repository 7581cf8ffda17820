/** Callers of a webhook: each sends the next request when it has its answer, over a connection that it keeps, as API servers do. */
import { Agent, request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { answerCalls } from "../process/answer-calls.ts";

export interface LoadPlan {
  readonly port: number;
  readonly path: string;
  /** "": a GET */
  readonly body: string;
  /** PEM */
  readonly authority: string;
  readonly callers: number;
  readonly milliseconds: number;
  /** milliseconds that a caller waits after an answer; absent: none */
  readonly pauseMs?: number;
  /** headers beside the body's */
  readonly headers?: Readonly<Record<string, string>>;
  /** code of a good answer; absent: 200 */
  readonly code?: number;
}

export interface Load {
  readonly requests: number;
  /** milliseconds of each request, in the order of the answers; they include the caller's own work */
  readonly milliseconds: readonly number[];
  readonly seconds: number;
  /** body of one answer */
  readonly lastAnswer: string;
}

function ask({ port, path, body, code = 200, ...plan }: LoadPlan, agent: Agent): Promise<string> {
  const ofBody = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const headers = { ...(body === "" ? {} : ofBody), ...plan.headers };
  const method = body === "" ? "GET" : "POST";
  return new Promise((resolve, reject) => {
    const outgoing = request({ host: "127.0.0.1", port, path, method, agent, headers }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        if (incoming.statusCode === code) resolve(text);
        else reject(new Error(`answered ${incoming.statusCode} ${text}`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** The first call of each makes its connection, and is not counted. */
async function run(plan: LoadPlan): Promise<Load> {
  const agent = new Agent({ keepAlive: true, ca: plan.authority, maxSockets: plan.callers });
  const callers = Array.from({ length: plan.callers });
  let [lastAnswer = ""] = await Promise.all(callers.map(() => ask(plan, agent)));
  const times: number[] = [];
  const begin = performance.now();
  const call = async () => {
    while (performance.now() - begin < plan.milliseconds) {
      const sent = performance.now();
      lastAnswer = await ask(plan, agent);
      times.push(performance.now() - sent);
      if (plan.pauseMs !== undefined) await sleep(plan.pauseMs);
    }
  };
  await Promise.all(callers.map(call));
  const seconds = (performance.now() - begin) / 1000;
  agent.destroy();
  return { requests: times.length, milliseconds: times, seconds, lastAnswer };
}

answerCalls({ run });
