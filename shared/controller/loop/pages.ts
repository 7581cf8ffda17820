/** Reads all pages of a list, and can continue where an earlier reading ended. */
import type { KubernetesObject, LabelSelector, LabelSelectorRequirement } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/error.ts";
import { samePage } from "../../kube/failure.ts";
import type { Cluster, ListOptions, Resource } from "../../kube/port.ts";

const PAGE_SIZE = 500;
/** Divisor of the page size after a failed page. Each later page doubles. */
const SMALLER_BY = 10;
/** Limit of restarts of a list whose pages expired before they were read. */
const MAX_LISTS = 3;

/** The part of a list that was read so far. */
export interface Pages<R> {
  items: R[];
  /** version of the list; "" before the first page */
  resourceVersion: string;
  /** token of the next page */
  token: string | undefined;
  isComplete: boolean;
  /** number of items in the next page; absent: no limit */
  limit?: number;
}

export function noPages<R>(): Pages<R> {
  return { items: [], resourceVersion: "", token: undefined, isComplete: false };
}

/** A list, and the part of each item to keep: the result of `keep`, unless undefined. */
export interface Listing<T extends KubernetesObject, R> {
  readonly resource: Resource;
  readonly options: ListOptions;
  readonly keep: (item: T) => R | undefined;
  /** returns true to end early, between two pages */
  readonly isOver?: () => boolean;
}

/**
 * Reads what `pages` lack, each item through `keep` as it arrives. An expired page token restarts the list. @throws
 * KubeError; reading can continue from `pages`
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
  const { token, limit = PAGE_SIZE } = pages;
  const all = { ...options, limit, keep: (item: KubernetesObject) => keep(item as T) };
  const asked = cluster.list<T>(resource, token === undefined ? all : { ...all, continue: token });
  const page = await asked.catch((error) => {
    // Objects of a tenant may be so large that the page did not arrive in time.
    if (!isKubeError(error, 410)) pages.limit = Math.max(1, Math.floor(limit / SMALLER_BY));
    throw error;
  });
  const kept = (page.kept as readonly (R | undefined)[] | undefined) ?? page.items.map(keep);
  for (const one of kept) if (one !== undefined) pages.items.push(one);
  if (limit < PAGE_SIZE) pages.limit = Math.min(PAGE_SIZE, 2 * limit);
  pages.resourceVersion = page.metadata.resourceVersion;
  pages.token = page.metadata.continue || undefined;
  if (token !== undefined && pages.token === token) throw samePage(resource);
  pages.isComplete = pages.token === undefined;
}

/** Limit of an object's characters: a thousand such objects of a tenant leave a pass of 512 MB enough memory. */
const MOST_CHARACTERS = 64 * 1024;
const CHARACTERS_OF_VALUE = 10;

/** Wraps `keep` so that it leaves out objects that are too large. A problem names the first one of each kind. */
export function keepSmall<T extends KubernetesObject, R>(
  { problems }: { readonly problems: string[] },
  kind: string,
  keep: (item: T) => R | undefined,
): (item: T) => R | undefined {
  const why = `is left out: a pass would keep more than ${MOST_CHARACTERS} characters of it`;
  return (item) => {
    const kept = keep(item);
    if (kept === undefined || charactersLeft(kept, MOST_CHARACTERS) >= 0) return kept;
    const { namespace, name } = item.metadata ?? {};
    const isSaid = problems.some((problem) => problem.startsWith(`${kind} `) && problem.endsWith(why));
    if (!isSaid) problems.push(`${kind} ${namespace}/${name} ${why}`);
    return undefined;
  };
}

/**
 * The part of `left` characters that remains after this value. Below zero the rest of the value is not read. Each value
 * also takes memory beside its text.
 */
function charactersLeft(value: unknown, left: number): number {
  let rest = left - CHARACTERS_OF_VALUE - (typeof value === "string" ? value.length : 0);
  if (typeof value !== "object" || value === null) return rest;
  for (const [key, member] of Object.entries(value)) {
    rest = charactersLeft(member, rest - key.length);
    if (rest < 0) break;
  }
  return rest;
}

/** A LabelSelector as the query parameter of a list: the API server selects, and less comes over the wire. */
const KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const VALUE = /^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/** The selector's text; "" selects all. Undefined: the API server would refuse it, so the caller selects by itself. */
export function selectorText(selector: LabelSelector): string | undefined {
  const labels = Object.entries(selector.matchLabels ?? {}).map(([key, value]) =>
    requirementText({ key, operator: "In", values: [value] }),
  );
  const parts = [...labels, ...(selector.matchExpressions ?? []).map(requirementText)];
  return parts.includes(undefined) ? undefined : parts.join(",");
}

function requirementText({ key, operator, values = [] }: LabelSelectorRequirement): string | undefined {
  if (!KEY.test(key) || !values.every((value) => VALUE.test(value))) return undefined;
  switch (operator) {
    case "In":
    case "NotIn":
      return values.length === 0 ? undefined : `${key} ${operator.toLowerCase()} (${values.join(",")})`;
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    default:
      return undefined;
  }
}
