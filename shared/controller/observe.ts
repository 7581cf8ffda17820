/** Reads what a decision about one SidecarSet needs: its revisions and its pods, page by page, shrunk as they come. */
import type { ControllerRevision, KubernetesObject, LabelSelector, Namespace, Pod } from "../api/kubernetes.ts";
import { SIDECARSET_NAME_LABEL } from "../api/names.ts";
import type { SidecarSet } from "../api/sidecarset.ts";
import { selectorMatches } from "../core/lib/label-selector.ts";
import { isKubeError } from "../kube/error.ts";
import {
  type Cluster,
  CONTROLLER_REVISIONS,
  type ListOptions,
  NAMESPACES,
  PODS,
  type Resource,
  SIDECARSETS,
} from "../kube/port.ts";
import { mapLimited } from "./concurrency.ts";
import { isLater, PodView } from "./pod-view.ts";
import { selectorText } from "./selector-text.ts";

const PAGE_SIZE = 500;
/** A list whose pages expired before they were read is begun again this often. */
const MAX_LISTS = 3;
const NAMESPACES_AT_ONCE = 4;
/** With more, one list of all pods is sooner read than so many lists. */
const MANY_NAMESPACES = 50;

/** Which pods a SidecarSet selects, in the terms of a list and a watch. */
export interface Scope {
  /** absent: all */
  readonly namespaces?: ReadonlySet<string>;
  /** sent to the API server; absent when there is nothing to send */
  readonly labelSelector?: string;
  /** holds also where the API server could not be asked to select */
  readonly isSelected: (pod: Pod) => boolean;
}

export interface Observed {
  readonly view: PodView;
  readonly scope: Scope;
  /** where a watch goes on; absent when nothing was listed */
  readonly resourceVersion?: string;
}

/** `withResources`: what containers ask for and have is kept of pods, too. Throws KubeError, and an Error for a selector with an unknown operator. */
export async function observePods(cluster: Cluster, sidecarSet: SidecarSet, withResources = false): Promise<Observed> {
  const { selector, namespaceSelector } = sidecarSet.spec;
  const labels = scopeOf(selector);
  const namespaces = namespaceSelector && new Set(await selectedNamespaces(cluster, namespaceSelector));
  const scope: Scope = namespaces ? { ...labels, namespaces, isSelected: within(namespaces, labels) } : labels;
  const view = new PodView(sidecarSet, withResources);
  // No selector selects nothing.
  if (!selector) return { view, scope };
  const isEach = namespaces !== undefined && namespaces.size <= MANY_NAMESPACES;
  const lists = await mapLimited(isEach ? [...namespaces] : [undefined], NAMESPACES_AT_ONCE, (namespace) =>
    listAll<Pod, number>(cluster, PODS, listOptions(scope, namespace), (pod) =>
      scope.isSelected(pod) ? view.gather(pod) : undefined,
    ),
  );
  const versions = lists.map((list) => list.resourceVersion);
  const oldest = versions.reduce<string | undefined>(
    (old, version) => (old === undefined || isLater(old, version) ? version : old),
    undefined,
  );
  view.complete(lists.map(({ items }) => items));
  return { view, scope, ...(oldest === undefined ? {} : { resourceVersion: oldest }) };
}

/** What OpenKruise and we recorded for a SidecarSet of this name. */
export async function listRevisions(
  cluster: Cluster,
  kruiseNamespace: string,
  name: string,
): Promise<readonly ControllerRevision[]> {
  const text = selectorText({ matchLabels: { [SIDECARSET_NAME_LABEL]: name } });
  // A name too long for a label's value has no labelled revisions.
  if (text === undefined) return [];
  const options = { namespace: kruiseNamespace, labelSelector: text };
  return (await listAll<ControllerRevision, ControllerRevision>(cluster, CONTROLLER_REVISIONS, options, (r) => r))
    .items;
}

function listOptions({ labelSelector }: Scope, namespace: string | undefined): ListOptions {
  return { ...(labelSelector ? { labelSelector } : {}), ...(namespace === undefined ? {} : { namespace }) };
}

function scopeOf(selector: LabelSelector | undefined): Pick<Scope, "labelSelector" | "isSelected"> {
  refuseUnknownOperators("spec.selector", selector);
  const text = selector ? selectorText(selector) : undefined;
  return {
    ...(text ? { labelSelector: text } : {}),
    isSelected: ({ metadata }) => selectorMatches(selector, metadata?.labels) === true,
  };
}

/** As OpenKruise does: what cannot be evaluated must not look like a SidecarSet that matches nothing. */
function refuseUnknownOperators(field: string, selector: LabelSelector | undefined): void {
  const probe = selectorMatches(selector, {});
  if (typeof probe === "object") throw new Error(`${field}: ${probe.message}`);
}

function within(namespaces: ReadonlySet<string>, { isSelected }: Pick<Scope, "isSelected">): Scope["isSelected"] {
  return (pod) => namespaces.has(pod.metadata?.namespace ?? "") && isSelected(pod);
}

async function selectedNamespaces(cluster: Cluster, selector: LabelSelector): Promise<readonly string[]> {
  refuseUnknownOperators("spec.namespaceSelector", selector);
  const text = selectorText(selector);
  const { items } = await listAll<Namespace, string>(
    cluster,
    NAMESPACES,
    text ? { labelSelector: text } : {},
    ({ metadata }) => (selectorMatches(selector, metadata?.labels) === true ? metadata?.name : undefined),
  );
  return [...items].sort();
}

/** All pages of one list, each item through `keep` as it comes. An expired page token begins the list again. */
export async function listAll<T extends KubernetesObject, R>(
  cluster: Cluster,
  resource: Resource,
  options: ListOptions,
  keep: (item: T) => R | undefined,
): Promise<{ readonly items: readonly R[]; readonly resourceVersion: string }> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await readPages(cluster, resource, options, keep);
    } catch (error) {
      if (!isKubeError(error, 410) || attempt === MAX_LISTS) throw error;
    }
  }
}

async function readPages<T extends KubernetesObject, R>(
  cluster: Cluster,
  resource: Resource,
  options: ListOptions,
  keep: (item: T) => R | undefined,
) {
  const items: R[] = [];
  const first = { ...options, limit: PAGE_SIZE, keep: (item: KubernetesObject) => keep(item as T) };
  for (let token: string | undefined; ; ) {
    const page = await cluster.list<T>(resource, token === undefined ? first : { ...first, continue: token });
    const kept = (page.kept as readonly R[] | undefined) ?? page.items.map(keep);
    items.push(...kept.filter((one) => one !== undefined));
    token = page.metadata.continue || undefined;
    if (token === undefined) return { items, resourceVersion: page.metadata.resourceVersion };
  }
}

/** undefined: there is none. */
export async function readSidecarSet(cluster: Cluster, name: string): Promise<SidecarSet | undefined> {
  try {
    return await cluster.get<SidecarSet>(SIDECARSETS, { name });
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}
