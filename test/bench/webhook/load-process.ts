/**
 * Callers of a webhook. Each sends its next request after an answer, over a connection that stays open, as API servers
 * do.
 */
import { Agent, request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { answerCalls } from "../process/answer-calls.ts";

export interface LoadPlan {
  readonly port: number;
  readonly path: string;
  /** the request's body; "": a GET */
  readonly body: string;
  /** the authority's certificate as PEM */
  readonly authority: string;
  readonly callers: number;
  readonly milliseconds: number;
  /** milliseconds that a caller waits after an answer; absent: none */
  readonly pauseMs?: number;
  /** additional headers of the request */
  readonly headers?: Readonly<Record<string, string>>;
  /** status code of a good answer; absent: 200 */
  readonly code?: number;
}

export interface Load {
  readonly requests: number;
  /** milliseconds of each request in the order of the answers, with the caller's own work */
  readonly milliseconds: readonly number[];
  readonly seconds: number;
  /** body of the last answer */
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

/** Runs the callers. Each one's first call opens its connection, and does not count. */
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
