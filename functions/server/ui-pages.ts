/** Makes the pages that `serve` shows, one at a time, and keeps each for a moment. */
import {
  type ReadReportContext,
  readDetail,
  readOverview,
  readPodExplanation,
} from "../../shared/controller/rollout/read-report.ts";
import type { Frame, Refresh } from "../../shared/core/inspect/report/document.ts";
import { renderPage } from "../../shared/core/inspect/report/page.ts";
import { renderPodPage } from "../../shared/core/inspect/report/pod-page.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { ObjectKey } from "../../shared/kube/port.ts";

/** All SidecarSets, one of them, or a pod of it. */
export interface Wanted {
  readonly name?: string | undefined;
  readonly pod?: ObjectKey;
  /** it does not refresh by itself */
  readonly isStill: boolean;
}

/** The page; undefined: what it would be about is not there */
export type MakePage = (wanted: Wanted) => Promise<string | undefined>;

export interface PageSource {
  /** Called for every page that is not at hand. */
  readonly context: () => Promise<ReadReportContext>;
  /** milliseconds, of a clock that only goes forward */
  readonly elapsed: () => number;
}

/** In the query: the page does not refresh by itself. */
export const STILL = "refresh=off";

/** Who looks again within it gets the same page: a page may cost a list of every pod. */
const KEPT_MS = 5_000;
const ALL = "All SidecarSets";
const REFRESH_SECONDS = 10;
/** One that takes long to read is read less often, however long somebody leaves it open: a twentieth of the time. */
const REFRESH_PER_READ = 20;

/** One page is made at a time, and kept for a moment. */
export function inTurn(source: PageSource): MakePage {
  let last: { readonly key: string; readonly at: number; readonly page: ReturnType<MakePage> } | undefined;
  return (wanted) => {
    const key = JSON.stringify(wanted);
    if (last !== undefined && last.key === key && source.elapsed() - last.at < KEPT_MS) return last.page;
    const before = last?.page.catch(() => undefined);
    const page = Promise.resolve(before).then(() => makePage(source, wanted));
    const entry = { key, at: source.elapsed(), page };
    last = entry;
    page.catch(() => {
      if (last === entry) last = undefined;
    });
    return page;
  };
}

async function makePage({ context, elapsed }: PageSource, wanted: Wanted): Promise<string | undefined> {
  const begin = elapsed();
  const render = await readPage(await context(), wanted);
  if (render === undefined) return undefined;
  const refreshSeconds = wanted.isStill ? undefined : refreshAfter(elapsed() - begin);
  return render({ seconds: refreshSeconds, other: otherOf(wanted) });
}

/** Where the same page is that does not refresh by itself, or does. */
export function otherOf({ isStill }: Wanted): string {
  return isStill ? "?" : `?${STILL}`;
}

/** Address and name of the pages above, outermost first. Links keep to whether pages refresh. */
export function pagesAbove({ name, pod, isStill }: Wanted): Frame["up"] {
  if (name === undefined) return [];
  const query = isStill ? `?${STILL}` : "";
  if (pod === undefined) return [[`../ui${query}`, ALL]];
  return [
    [`../../../../ui${query}`, ALL],
    [`../../../${name}${query}`, name],
  ];
}

/** Until a page that took so long to read is loaded again. */
export function refreshAfter(tookMs: number): number {
  return Math.max(REFRESH_SECONDS, Math.ceil((tookMs * REFRESH_PER_READ) / 1000));
}

/** Why there is no page, as far as strangers to the log may know; the default fits every failure. */
export function unreadText(error: unknown): string {
  const unread = "The cluster cannot be read now";
  if (!(error instanceof KubeError)) return unread;
  if (error.code === 0) return `${unread}: the API server did not answer`;
  if (error.code === 401) return `${unread}: the API server does not accept the credentials of this server`;
  if (error.code === 403) return `${unread}: the API server does not allow this server to read all that the page shows`;
  return `${unread}: the API server answered with ${error.code}`;
}

type Render = (refresh: Refresh) => string;

async function readPage(context: ReadReportContext, wanted: Wanted): Promise<Render | undefined> {
  const { name, pod, isStill } = wanted;
  const up = pagesAbove(wanted);
  const address = (path: string) => (isStill ? `${path}?${STILL}` : path);
  if (name === undefined) {
    const overview = await readOverview(context);
    return (refresh) => renderPage(overview, { linkTo: (one) => address(`ui/${one}`), refresh });
  }
  if (pod === undefined) {
    const detail = await readDetail(context, name);
    if (detail === undefined) return undefined;
    const content = { at: detail.at, cluster: context.clusterName, idle: undefined, details: [detail] };
    const linkToPod = (one: ObjectKey) => address(`${name}/pods/${one.namespace}/${one.name}`);
    return (refresh) => renderPage(content, { linkToPod, up, refresh });
  }
  const explanation = await readPodExplanation(context, name, pod);
  if (explanation === undefined) return undefined;
  return (refresh) => renderPodPage(explanation, { at: explanation.at, cluster: context.clusterName, refresh, up });
}
