/** An adapter for platforms that call a function with a `Request` and expect a `Response`. */
import { webhooksFrom } from "../../functions/webhooks.ts";

export function fetchHandler(env: Readonly<Record<string, string>>): (request: Request) => Promise<Response> {
  const { answer } = webhooksFrom(env);
  return async (request) => {
    const { pathname: path, search } = new URL(request.url);
    const headers = Object.fromEntries(request.headers);
    const readBody = async (maxBytes: number) => {
      const bytes: Uint8Array[] = [];
      let left = maxBytes;
      for await (const part of request.body ?? []) {
        left -= part.length;
        if (left < 0) return undefined;
        bytes.push(part);
      }
      return Buffer.concat(bytes).toString();
    };
    const given = await answer({ method: request.method, path, query: search.slice(1), headers, readBody });
    return new Response(given.body, given);
  };
}
