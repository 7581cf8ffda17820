/** All pages of a list, which can be gone on with where reading them ended early. */
import type { KubernetesObject } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/error.ts";
import { samePage } from "../../kube/failure.ts";
import type { Cluster, ListOptions, Resource } from "../../kube/port.ts";

const PAGE_SIZE = 500;
/** A list whose pages expired before they were read is begun again this often. */
const MAX_LISTS = 3;

/** As far as a list was read. */
export interface Pages<R> {
  items: R[];
  /** "" before the first page */
  resourceVersion: string;
  /** of the next page */
  token: string | undefined;
  isComplete: boolean;
}

export function noPages<R>(): Pages<R> {
  return { items: [], resourceVersion: "", token: undefined, isComplete: false };
}

/** What to list, and what is kept of each item: what `keep` returns, unless that is undefined. */
export interface Listing<T extends KubernetesObject, R> {
  readonly resource: Resource;
  readonly options: ListOptions;
  readonly keep: (item: T) => R | undefined;
  /** ends it early, between two pages */
  readonly isOver?: () => boolean;
}

/**
 * Reads what `pages` lack, each item through `keep` as it comes. An expired page token begins the list again.
 * @throws KubeError; `pages` are good to go on with
 */
export async function readPages<T extends KubernetesObject, R>(
  cluster: Cluster,
  listing: Listing<T, R>,
  pages: Pages<R>,
): Promise<Pages<R>> {
  for (let attempt = 1; ; attempt++) {
    try {
      await readOn(cluster, listing, pages);
      return pages;
    } catch (error) {
      if (!isKubeError(error, 410)) throw error;
      Object.assign(pages, noPages<R>());
      if (attempt === MAX_LISTS) throw error;
    }
  }
}

async function readOn<T extends KubernetesObject, R>(
  cluster: Cluster,
  listing: Listing<T, R>,
  pages: Pages<R>,
): Promise<void> {
  while (!pages.isComplete && listing.isOver?.() !== true) await readPage(cluster, listing, pages);
}

async function readPage<T extends KubernetesObject, R>(
  cluster: Cluster,
  { resource, options, keep }: Listing<T, R>,
  pages: Pages<R>,
): Promise<void> {
  const { token } = pages;
  const all = { ...options, limit: PAGE_SIZE, keep: (item: KubernetesObject) => keep(item as T) };
  const page = await cluster.list<T>(resource, token === undefined ? all : { ...all, continue: token });
  const kept = (page.kept as readonly (R | undefined)[] | undefined) ?? page.items.map(keep);
  for (const one of kept) if (one !== undefined) pages.items.push(one);
  pages.resourceVersion = page.metadata.resourceVersion;
  pages.token = page.metadata.continue || undefined;
  if (token !== undefined && pages.token === token) throw samePage(resource);
  pages.isComplete = pages.token === undefined;
}
