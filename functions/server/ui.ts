/** The page in a browser: /ui lists the SidecarSets, /ui/NAME reports on one, /ui/NAME/pods/NAMESPACE/POD explains a pod, for those who know its secret path. */
import { type Context, Hono } from "hono";
import { systemClock, timestamp } from "../../shared/controller/loop/clock.ts";
import { type Frame, PAGE_POLICY, type Refresh, renderNotice } from "../../shared/core/inspect/report/document.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { ObjectKey } from "../../shared/kube/port.ts";
import { type Log, rateLimited, withoutSecrets } from "../../shared/log.ts";
import type { SecretReference } from "../../shared/settings/secret-source.ts";
import {
  type Authenticate,
  type AuthenticateOptions,
  type Authenticator,
  authenticator,
  splitPath,
} from "../../shared/webhook/server/authenticate.ts";
import type { Answerer, HttpRequest } from "../../shared/webhook/server/http.ts";
import { askPages } from "./metrics.ts";

interface UiOptions {
  readonly makePage: MakePage;
  readonly isKnown: Authenticate;
  readonly isWebhooks: Authenticator["isKept"];
  readonly log: Log;
}

const UI = /^\/ui(?:\/|$)/;
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": PAGE_POLICY,
  "cache-control": "no-store",
  // The address holds the secret.
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
};

/**
 * Serves the pages, and passes other requests to `others`. Pages have their own secret, because it opens more than a
 * webhook's.
 * @throws SecretError or AwsError when the secrets cannot be read
 */
export async function serveUi(others: Answerer, secrets: SecretReference, server: UiServer): Promise<Answerer> {
  const { identify, makePage, isWebhooks } = server;
  const authentication = {
    mode: "secret-path",
    pathSecrets: secrets,
    clientNames: [],
    clientCertificateFrom: "api-gateway",
  } as const;
  const { isKnown, ready } = authenticator(authentication, identify, { isPlain: true });
  await ready;
  return withUi(others, { isKnown, isWebhooks, makePage, log: identify.log });
}

export interface UiServer {
  /** says whether a secret opens the webhooks */
  readonly isWebhooks: Authenticator["isKept"];
  readonly identify: AuthenticateOptions;
  readonly makePage: MakePage;
}

/** Hands requests for other paths, and requests of strangers, to `others`. */
function withUi(others: Answerer, options: UiOptions): Answerer {
  const pages = pagesOf(options.makePage, options.log);
  const sayShared = rateLimited((requests) => {
    options.log.error("the page is not shown: its secret is that of the webhooks, too", { requests });
  });
  return async (request) => {
    const split = splitPath(request.path);
    if (!(UI.test(split.path) && (await isKnown(options, request, split)))) return others(request);
    if (!(await opensWebhook(options, split.secret))) return askPages(pages, request, split.path);
    sayShared(undefined);
    return others(request);
  };
}

/** Names of SidecarSets, namespaces and pods. */
const NAME = "[a-z0-9][a-z0-9.-]{0,252}";

function pagesOf(makePage: MakePage, log: Log): Hono {
  const page = (context: Context) => answer(context, makePage, log);
  return new Hono()
    .get("/ui", page)
    .get("/ui/", (context) => context.redirect("../ui", 308))
    .get(`/ui/:name{${NAME}}`, page)
    .get(`/ui/:name{${NAME}}/pods/:namespace{${NAME}}/:pod{${NAME}}`, page)
    .get("*", (context) => context.text("there is no page of that name", 404))
    .all("*", (context) => context.text("only GET is allowed here", 405, { allow: "GET, HEAD" }));
}

async function isKnown(options: UiOptions, request: HttpRequest, split: ReturnType<typeof splitPath>) {
  try {
    return await options.isKnown(request, split, "admission");
  } catch (error) {
    options.log.error("callers cannot be told from strangers", { error });
    return false;
  }
}

/** An unknown answer counts as yes. */
async function opensWebhook({ isWebhooks }: UiOptions, secret: string | undefined): Promise<boolean> {
  try {
    return await isWebhooks(secret);
  } catch {
    return true;
  }
}

async function answer(context: Context, makePage: MakePage, log: Log): Promise<Response> {
  const wanted = wantedBy(context);
  const send = (body: string, code: 200 | 404 | 503) => context.body(withoutSecrets(body), code, HEADERS);
  try {
    const page = await makePage(wanted);
    if (page !== undefined) return send(page, 200);
    return send(notice(`There is no ${nameOf(wanted)}`, wanted), 404);
  } catch (error) {
    log.error("page failed", { sidecarSet: wanted.name, error });
    // A page that refreshes comes back when the cluster does.
    const seconds = wanted.isStill ? undefined : refreshAfter(0);
    const refresh = { seconds, other: otherOf(wanted) };
    return send(notice(`${unreadText(error)}. The log of the server has more`, wanted, refresh), 503);
  }
}

function notice(sentence: string, wanted: Wanted, refresh?: Refresh): string {
  return renderNotice(sentence, { at: timestamp(systemClock), refresh, up: pagesAbove(wanted) });
}

function wantedBy({ req }: Context): Wanted {
  const { name, namespace, pod } = req.param() as Readonly<Record<string, string | undefined>>;
  const isStill = new URL(req.url).search === `?${STILL}`;
  return { name, isStill, ...(pod === undefined || namespace === undefined ? {} : { pod: { namespace, name: pod } }) };
}

function nameOf({ name, pod }: Wanted): string {
  return pod === undefined ? `SidecarSet ${name}` : `such pod, or no SidecarSet ${name}`;
}

// Addresses of the pages of `serve`, and the texts for pages that are not there. Nothing is read for them.

/** The wanted page: all SidecarSets, one of them, or a pod of it. */
export interface Wanted {
  readonly name?: string | undefined;
  readonly pod?: ObjectKey;
  /** the page does not refresh by itself */
  readonly isStill: boolean;
}

/** The page; undefined: its subject does not exist */
export type MakePage = (wanted: Wanted) => Promise<string | undefined>;

/** The query of a page that does not refresh by itself. */
export const STILL = "refresh=off";

const ALL = "All SidecarSets";
const REFRESH_SECONDS = 10;
/** Limits refreshes of a page that is slow to read: reading takes at most a twentieth of the time. */
const REFRESH_PER_READ = 20;

/** Link to the same page with refreshes, or without. */
export function otherOf({ isStill }: Wanted): string {
  return isStill ? "?" : `?${STILL}`;
}

/** Address and name of the pages above, outermost first. Links keep the choice whether pages refresh. */
export function pagesAbove({ name, pod, isStill }: Wanted): Frame["up"] {
  if (name === undefined) return [];
  const query = isStill ? `?${STILL}` : "";
  if (pod === undefined) return [[`../ui${query}`, ALL]];
  return [
    [`../../../../ui${query}`, ALL],
    [`../../../${name}${query}`, name],
  ];
}

/** The time until a page is loaded again, by the time that it took to read. */
export function refreshAfter(tookMs: number): number {
  return Math.max(REFRESH_SECONDS, Math.ceil((tookMs * REFRESH_PER_READ) / 1000));
}

/** The reason why there is no page, without details of the log; the default fits every failure. */
export function unreadText(error: unknown): string {
  const unread = "The cluster cannot be read now";
  if (!(error instanceof KubeError)) return unread;
  if (error.code === 0) return `${unread}: the API server did not answer`;
  if (error.code === 401) return `${unread}: the API server does not accept the credentials of this server`;
  if (error.code === 403) return `${unread}: the API server does not allow this server to read all that the page shows`;
  return `${unread}: the API server answered with ${error.code}`;
}
