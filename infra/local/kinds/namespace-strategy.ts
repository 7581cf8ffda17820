/** Namespaces: the label that carries the name, the finalizer, the phase. */
import { asObject } from "../storage/json.ts";
import type { ApiObject } from "../storage/object.ts";

const NAME_LABEL = "kubernetes.io/metadata.name";

export const NAMESPACE_STRATEGY = {
  default(namespace: ApiObject): void {
    const name = namespace.metadata.name;
    if (name !== undefined && name !== "") {
      namespace.metadata.labels = { ...namespace.metadata.labels, [NAME_LABEL]: name };
    }
  },
  prepareCreate(namespace: ApiObject): void {
    namespace["spec"] = { ...asObject(namespace["spec"]), finalizers: ["kubernetes"] };
    namespace["status"] = { phase: "Active" };
  },
};
