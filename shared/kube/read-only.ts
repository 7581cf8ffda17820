/** A cluster port that cannot write, whatever it is asked for: what a dry run works with. */
import { KubeError } from "./error.ts";
import type { Cluster } from "./port.ts";

/** Reads go through. A write rejects with KubeError, unless it is one that the API server itself does not store. */
export function readOnlyCluster(cluster: Cluster): Cluster {
  const refuse = (what: string, name = "") => {
    const message = `${what} ${name}: this process makes dry runs only, and writes nothing`;
    return Promise.reject(new KubeError(message, { code: 0, reason: "ReadOnly", isOutcomeKnown: true }));
  };
  return {
    ...cluster,
    create: (resource, object, options) =>
      options?.dryRun
        ? cluster.create(resource, object, options)
        : refuse(`create ${resource.plural}`, object.metadata?.name),
    patch: (resource, key, patch, options) =>
      options?.dryRun ? cluster.patch(resource, key, patch, options) : refuse(`patch ${resource.plural}`, key.name),
    delete: (resource, key, options) =>
      options?.dryRun ? cluster.delete(resource, key, options) : refuse(`delete ${resource.plural}`, key.name),
  };
}
