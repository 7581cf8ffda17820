/** Callers of a webhook: each sends the next request when it has its answer, over a connection that it keeps, as API servers do. */
import { connect, type TLSSocket } from "node:tls";
import { answerCalls } from "../process/answer-calls.ts";

export interface LoadPlan {
  readonly port: number;
  readonly path: string;
  readonly body: string;
  /** PEM */
  readonly authority: string;
  readonly callers: number;
  readonly milliseconds: number;
}

export interface Load {
  readonly requests: number;
  /** of each request, in the order of their answers */
  readonly milliseconds: readonly number[];
  readonly seconds: number;
  /** of one answer's body */
  readonly lastAnswer: string;
}

const HEAD_END = "\r\n\r\n";

/** The body, once all of the answer is there. Throws for anything but 200. */
function bodyOf(answer: string): string | undefined {
  const end = answer.indexOf(HEAD_END);
  if (end < 0) return undefined;
  if (!answer.startsWith("HTTP/1.1 200 ")) throw new Error(`answered ${answer}`);
  const length = /\r\ncontent-length: (\d+)/i.exec(answer.slice(0, end + 2))?.[1];
  if (length === undefined) throw new Error(`no content-length: ${answer.slice(0, end)}`);
  const body = answer.slice(end + HEAD_END.length);
  return body.length < Number(length) ? undefined : body;
}

/** Every text is ASCII, so that a character is a byte. */
function ask(socket: TLSSocket, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const read = (chunk: string) => {
      answer += chunk;
      try {
        const body = bodyOf(answer);
        if (body === undefined) return;
        socket.off("data", read);
        resolve(body);
      } catch (error) {
        reject(error);
      }
    };
    socket.on("data", read);
    socket.write(request);
  });
}

function openSocket({ port, authority }: LoadPlan): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", ca: authority }, () => resolve(socket));
    socket.setEncoding("latin1").setNoDelay(true).on("error", reject);
  });
}

async function run(plan: LoadPlan): Promise<Load> {
  const { path, body, callers, milliseconds } = plan;
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, */*\r\nAccept-Encoding: gzip\r\nContent-Length: ${body.length}`;
  const request = `${head}${HEAD_END}${body}`;
  const sockets = await Promise.all(Array.from({ length: callers }, () => openSocket(plan)));
  const times: number[] = [];
  let lastAnswer = "";
  const begin = performance.now();
  const call = async (socket: TLSSocket) => {
    while (performance.now() - begin < milliseconds) {
      const sent = performance.now();
      lastAnswer = await ask(socket, request);
      times.push(performance.now() - sent);
    }
  };
  await Promise.all(sockets.map(call));
  const seconds = (performance.now() - begin) / 1000;
  for (const socket of sockets) socket.destroy();
  return { requests: times.length, milliseconds: times, seconds, lastAnswer };
}

answerCalls({ run });
