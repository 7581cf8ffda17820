/**
 * Calls of the Cluster port, each with the request that the API defines. The requests are written here again,
 * independently of the client, on purpose.
 */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { type Cluster, type ObjectKey, PODS, SIDECARSETS } from "../../../shared/kube/port.ts";
import type { Chance } from "../chance.ts";

interface Wanted {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** the content type of the body; "" for no body */
  readonly contentType: string;
  readonly isMetadataOnly: boolean;
}

export interface Call {
  readonly what: string;
  readonly isWrite: boolean;
  readonly wanted: Wanted;
  readonly run: (cluster: Cluster) => Promise<unknown>;
  /** returns the call's result from the API server's answer */
  readonly said: (body: unknown) => unknown;
}

type Key = Required<ObjectKey> & { readonly uid: string; readonly resourceVersion: string };

const JSON_TYPE = "application/json";
const asIs = (body: unknown) => body;

/** Returns calls about this pod. It may be missing, or be another pod by now. */
export function callsOf({ namespace, name, uid, resourceVersion }: Key, chance: Chance): readonly Call[] {
  const key = { namespace, name };
  const all = `/api/v1/namespaces/${namespace}/pods`;
  const path = `${all}/${encodeURIComponent(name)}`;
  const read = { isWrite: false, said: asIs };
  const write = { isWrite: true, said: asIs };
  const get = { method: "GET", body: undefined, contentType: "", isMetadataOnly: false };
  const isDryRun = chance.isLucky(0.3);
  const dryRun = isDryRun ? { dryRun: "All" } : {};
  const sets = "/apis/apps.kruise.io/v1beta1/sidecarsets";
  const test = { op: "test", path: "/metadata/resourceVersion", value: resourceVersion } as const;
  const note = { op: "add", path: "/metadata/annotations", value: { note: "<é&€>" } } as const;
  const merge = { metadata: { uid, resourceVersion, labels: { app: "web" } } };
  const named = { apiVersion: "v1", kind: "Pod", metadata: { namespace, name: `${name}-new`, labels: { app: "<&>" } } };
  const preconditions = chance.pick([{}, { uid }, { resourceVersion }, { uid, resourceVersion }]);
  const isBare = Object.keys(preconditions).length === 0;
  const deletion = {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(isBare ? {} : { preconditions }),
    ...(isDryRun ? { dryRun: ["All"] } : {}),
  };
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { namespace, name },
    deleteOptions: { preconditions: { uid, resourceVersion } },
  } as unknown as KubernetesObject;
  const answer = chance.isLucky(0.5) ? undefined : ("metadata" as const);
  const isMetadataOnly = answer === "metadata";
  const patching = { method: "PATCH", isMetadataOnly };
  return [
    { ...read, what: `GET ${name}`, wanted: { ...get, path, query: {} }, run: (cluster) => cluster.get(PODS, key) },
    {
      ...read,
      what: "GET mesh",
      wanted: { ...get, path: `${sets}/mesh`, query: {} },
      run: (cluster) => cluster.get(SIDECARSETS, { name: "mesh" }),
    },
    {
      ...read,
      what: "LIST with a selector",
      wanted: { ...get, path: all, query: { labelSelector: "app in (web,ä€😀)", limit: "2" } },
      run: (cluster) => cluster.list(PODS, { namespace, labelSelector: "app in (web,ä€😀)", limit: 2 }),
    },
    {
      ...read,
      what: "LIST that is kept in part",
      wanted: { ...get, path: "/api/v1/pods", query: {} },
      run: (cluster) => cluster.list(PODS, { keep: ({ metadata }) => metadata?.uid }),
      said: (body) => {
        const { items, ...rest } = body as { readonly items: readonly KubernetesObject[] };
        return { ...rest, items: [], kept: items.map(({ metadata }) => metadata?.uid) };
      },
    },
    {
      ...write,
      what: `CREATE ${name}-new`,
      wanted: { method: "POST", path: all, query: dryRun, body: named, contentType: JSON_TYPE, isMetadataOnly: false },
      run: (cluster) => cluster.create(PODS, named, { dryRun: isDryRun }),
    },
    {
      ...write,
      what: `CREATE an eviction of ${name}`,
      wanted: {
        method: "POST",
        path: `${path}/eviction`,
        query: {},
        body: eviction,
        contentType: JSON_TYPE,
        isMetadataOnly: false,
      },
      run: (cluster) => cluster.create(PODS, eviction, { subresource: "eviction" }),
    },
    {
      ...write,
      what: `PATCH ${name} on a condition`,
      wanted: { ...patching, path, query: dryRun, body: [test, note], contentType: "application/json-patch+json" },
      run: (cluster) =>
        cluster.patch(
          PODS,
          key,
          { type: "json", operations: [test, note] },
          { dryRun: isDryRun, ...(answer ? { answer } : {}) },
        ),
    },
    {
      ...write,
      what: `PATCH ${name}, merged`,
      wanted: {
        ...patching,
        path: `${path}/status`,
        query: {},
        body: merge,
        contentType: "application/merge-patch+json",
      },
      run: (cluster) =>
        cluster.patch(
          PODS,
          key,
          { type: "merge", body: merge },
          { subresource: "status", ...(answer ? { answer } : {}) },
        ),
    },
    {
      ...write,
      what: `DELETE ${name} ${JSON.stringify(preconditions)}`,
      wanted: { method: "DELETE", path, query: {}, body: deletion, contentType: JSON_TYPE, isMetadataOnly: false },
      run: (cluster) => cluster.delete(PODS, key, { ...preconditions, dryRun: isDryRun }),
      said: () => undefined,
    },
  ];
}
