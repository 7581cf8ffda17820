/** The path for the API server of one of several clusters: below the cluster's name. */
import type { Authenticate, Authenticator } from "./authenticate.ts";

/** The path under which all webhooks of that cluster are. */
export function clusterPath(cluster: string): string {
  return `/clusters/${cluster}`;
}

const CLUSTER_PATH = /^\/clusters\/([a-z0-9-]+)(\/.*)$/;

/** `/clusters/eu/s/SECRET/mutate-pod` is `/s/SECRET/mutate-pod` of eu. undefined: no cluster is named. */
export function splitClusterPath(path: string): { readonly cluster: string; readonly path: string } | undefined {
  const [, cluster, rest] = CLUSTER_PATH.exec(path) ?? [];
  return cluster === undefined || rest === undefined ? undefined : { cluster, path: rest };
}

/**
 * Authenticates callers of one cluster. The secret of a path is derived from the whole path with the cluster's name. So
 * clusters may share the stored secret without knowing each other's paths. A path registered with the stored secret
 * would be valid for all clusters, and is refused.
 */
export function ofCluster(cluster: string): (authenticator: Authenticator) => Authenticate {
  return ({ isKnown, isKept }) =>
    async (request, split, purpose) => {
      if (await isKept(split.secret)) return false;
      return isKnown(request, { ...split, path: clusterPath(cluster) + split.path }, purpose);
    };
}
