/** Where the API server of one of several clusters asks: below the cluster's name. */
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
 * Who may ask for that cluster. The secret of a path is made from the whole of it, the cluster's name included, so that
 * clusters may share the secret that is kept, and yet none of them knows a path of another. One that is registered as it
 * is kept would be good for all of them, and is refused.
 */
export function ofCluster(cluster: string): (authenticator: Authenticator) => Authenticate {
  return ({ isKnown, isKept }) =>
    async (request, split, purpose) => {
      if (await isKept(split.secret)) return false;
      return isKnown(request, { ...split, path: clusterPath(cluster) + split.path }, purpose);
    };
}
