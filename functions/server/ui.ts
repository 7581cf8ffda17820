/** The page in a browser: /ui lists the SidecarSets, /ui/NAME reports on one, for those who know its secret path. */
import { type Context, Hono } from "hono";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { type ReadReportContext, readDetail, readOverview } from "../../shared/controller/rollout/read-report.ts";
import { PAGE_POLICY, renderPage } from "../../shared/core/inspect/report/page.ts";
import type { RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { type Log, withoutSecrets } from "../../shared/log.ts";
import type { SecretReference } from "../../shared/settings/reference.ts";
import {
  type Authenticate,
  type AuthenticateOptions,
  type Authenticator,
  authenticator,
  splitPath,
} from "../../shared/webhook/server/authenticate.ts";
import type { Answerer, HttpRequest } from "../../shared/webhook/server/http.ts";
import { nowAndThen } from "../../shared/webhook/server/now-and-then.ts";
import { askPages } from "./pages.ts";

interface UiOptions {
  readonly isKnown: Authenticate;
  readonly isWebhooks: Authenticator["isKept"];
  /** Called for every page that is not at hand. */
  readonly context: () => Promise<ReadReportContext>;
  readonly log: Log;
  /** milliseconds, of a clock that only goes forward */
  readonly elapsed: () => number;
}

const UI = /^\/ui(?:\/|$)/;
/** Who looks again within it gets the same page: a page may cost a list of every pod. */
const KEPT_MS = 5_000;

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
 * The pages in front of `others`, for those who know a secret of their own: it opens more than a webhook's does.
 * @throws SecretError or AwsError when the secrets cannot be read
 */
export async function serveUi(others: Answerer, secrets: SecretReference, server: UiServer): Promise<Answerer> {
  const { identify, connect, kruiseNamespace, settings, isWebhooks } = server;
  const authentication = {
    mode: "secret-path",
    pathSecrets: secrets,
    clientNames: [],
    clientCertificateFrom: "api-gateway",
  } as const;
  const { isKnown, ready } = authenticator(authentication, identify, { isPlain: true });
  await ready;
  const context = async () => ({
    cluster: await connect(),
    clusterName: "",
    clock: systemClock,
    kruiseNamespace,
    settings,
  });
  return withUi(others, { isKnown, isWebhooks, context, log: identify.log, elapsed: () => performance.now() });
}

export interface UiServer {
  /** Whether those of the webhooks are made from a secret. */
  readonly isWebhooks: Authenticator["isKept"];
  readonly identify: AuthenticateOptions;
  readonly connect: () => Promise<Cluster>;
  readonly kruiseNamespace: string;
  readonly settings: RolloutSettings;
}

/** Whatever is no page, or is asked for by a stranger, is left to `others`. */
function withUi(others: Answerer, options: UiOptions): Answerer {
  const pages = pagesOf(inTurn(options), options.log);
  const sayShared = nowAndThen((requests) => {
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

function pagesOf(read: Read, log: Log): Hono {
  const page = (context: Context) => answer(context, read, log);
  return new Hono()
    .get("/ui", page)
    .get("/ui/", (context) => context.redirect("../ui", 308))
    .get("/ui/:name{[a-z0-9][a-z0-9.-]{0,252}}", page)
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

/** Where that can't be told it may. */
async function opensWebhook({ isWebhooks }: UiOptions, secret: string | undefined): Promise<boolean> {
  try {
    return await isWebhooks(secret);
  } catch {
    return true;
  }
}

async function answer(context: Context, read: Read, log: Log): Promise<Response> {
  const name: string | undefined = context.req.param("name");
  try {
    const body = await read(name);
    if (body === undefined) return context.text(`there is no SidecarSet ${name}`, 404);
    return context.body(withoutSecrets(body), 200, HEADERS);
  } catch (error) {
    log.error("page failed", { sidecarSet: name, error });
    return context.text("the cluster cannot be read now, the log of the server says why", 503);
  }
}

/** The page about one SidecarSet, or about all; undefined: there is no such SidecarSet. */
type Read = (name: string | undefined) => Promise<string | undefined>;

/** One page is made at a time, and kept for a moment. */
function inTurn({ context, elapsed }: UiOptions): Read {
  let last:
    | { readonly name: string | undefined; readonly at: number; readonly page: Promise<string | undefined> }
    | undefined;
  return (name) => {
    if (last !== undefined && last.name === name && elapsed() - last.at < KEPT_MS) return last.page;
    const before = last?.page.catch(() => undefined);
    const page = Promise.resolve(before).then(async () => pageOf(await context(), name));
    const entry = { name, at: elapsed(), page };
    last = entry;
    page.catch(() => {
      if (last === entry) last = undefined;
    });
    return page;
  };
}

async function pageOf(context: ReadReportContext, name: string | undefined): Promise<string | undefined> {
  if (name === undefined) return renderPage(await readOverview(context), { linkTo: (one) => `ui/${one}` });
  const detail = await readDetail(context, name);
  if (detail === undefined) return undefined;
  return renderPage({ at: detail.at, cluster: context.clusterName, sets: [], details: [detail] }, { up: "../ui" });
}
