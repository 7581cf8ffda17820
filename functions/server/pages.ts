/** Pages for people and Prometheus go through hono; reviews, thousands a second, do not. */
import type { Hono } from "hono";
import type { HttpAnswer, HttpRequest } from "../../shared/webhook/server/http.ts";

/** A hono app's answer; `path` replaces the request's own, which may hold a secret. */
export async function askPages(pages: Hono, { method, query }: HttpRequest, path: string): Promise<HttpAnswer> {
  const url = new URL(`http://pages${path}`);
  url.search = query;
  const response = await pages.fetch(new Request(url, { method }));
  return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
}
