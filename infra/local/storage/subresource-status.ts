/** Which half of an object a write may touch: the status, or all but the status. */

import type { Kind } from "../kinds/kind.ts";
import type { Call } from "./api.ts";
import type { ApiObject } from "./object.ts";

/** Kinds whose labels and annotations may be changed through /status. */
const WITH_METADATA: ReadonlySet<string> = new Set(["/pods", "/namespaces", "/nodes"]);

function statusOf(object: ApiObject): { status?: unknown } {
  return object["status"] === undefined ? {} : { status: object["status"] };
}

/** The current object with the wanted status. */
export function statusOnly(kind: Kind, wanted: ApiObject, current: ApiObject): ApiObject {
  const { status: _status, ...rest } = current;
  const hasMetadata = WITH_METADATA.has(kind.collection);
  const metadata = hasMetadata
    ? {
        ...wanted.metadata,
        ...(current.metadata.ownerReferences && { ownerReferences: current.metadata.ownerReferences }),
      }
    : // Whether it was written for another object is checked all the same.
      { ...current.metadata, uid: wanted.metadata.uid ?? current.metadata.uid ?? "" };
  return structuredClone({ ...rest, metadata, ...statusOf(wanted) });
}

/** The wanted object with the current status, where the kind keeps them apart. */
export function withoutStatusChange(call: Call, wanted: ApiObject, current: ApiObject): ApiObject {
  if (!call.kind.hasStatus) return wanted;
  const { status: _status, ...rest } = wanted;
  return structuredClone({ ...rest, metadata: wanted.metadata, ...statusOf(current) });
}
