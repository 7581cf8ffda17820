/** Sends a plain HTTPS request to an API server, for which the Cluster port has no call. */
import { request } from "node:https";

export interface RawTarget {
  readonly url: string;
  /** the authority's certificate as PEM */
  readonly caCertificate: string;
  readonly token: string;
}

export interface RawRequest {
  readonly method?: string;
  /** the path with its query */
  readonly path: string;
  /** the body; a string is sent unchanged, any other value as JSON */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** the token; absent: the target's; "": none */
  readonly token?: string;
}

export interface RawAnswer {
  readonly code: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
  /** the parsed body; undefined: it is not JSON */
  readonly body: unknown;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function sendRaw(
  target: RawTarget,
  { method = "GET", path, body, headers, token }: RawRequest,
): Promise<RawAnswer> {
  const bearer = token ?? target.token;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = request(new URL(path, target.url), {
      method,
      ca: target.caCertificate,
      headers: {
        accept: "application/json",
        ...(text === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
        ...(bearer === "" ? {} : { authorization: `Bearer ${bearer}` }),
        ...headers,
      },
    });
    outgoing.on("error", reject);
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => {
        const answer = Buffer.concat(chunks).toString("utf8");
        resolve({ code: incoming.statusCode ?? 0, headers: incoming.headers, text: answer, body: parsed(answer) });
      });
    });
    outgoing.end(text);
  });
}
