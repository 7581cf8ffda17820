/** The resource of an object's kind, for kinds that have a regular plural, as all have that we install. */
import type { KubernetesObject } from "../api/kubernetes.ts";
import type { Resource } from "../kube/port.ts";

export function resourceOf({ apiVersion = "", kind = "", metadata }: KubernetesObject): Resource {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  return {
    group,
    version,
    plural: `${kind.toLowerCase()}s`.replace(/ys$/, "ies"),
    namespaced: metadata?.namespace !== undefined,
  };
}
