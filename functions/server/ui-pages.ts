/** Addresses of the pages of `serve`, and the texts for pages that are not there. Nothing is read for them. */
import type { Frame } from "../../shared/core/inspect/report/document.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { ObjectKey } from "../../shared/kube/port.ts";

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
