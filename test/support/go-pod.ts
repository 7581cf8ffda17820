/** Returns a pod's JSON as Go reads and prints it, in the parts that injection can change. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { CONTAINER_FIELDS } from "../../shared/go/types/container.ts";
import { decodeGo } from "../../shared/go/types/decode-go.ts";
import { type GoType, list, struct } from "../../shared/go/types/go-type.ts";
import { OBJECT_META } from "../../shared/go/types/meta.ts";
import { VOLUME } from "../../shared/go/types/volume.ts";

type Fields = Readonly<Record<string, unknown>>;

const CONTAINERS = list(struct(CONTAINER_FIELDS));

function typed(type: GoType, value: unknown): unknown {
  if (value === undefined || value === null) return undefined;
  const decoded = decodeGo(type, value);
  if (decoded.kind === "DecodeError") throw new Error(decoded.message);
  return decoded.value;
}

/** Returns the list; an empty list with omitempty is absent. */
function typedList(type: GoType, value: unknown): unknown {
  return Array.isArray(value) && value.length > 0 ? typed(type, value) : undefined;
}

function isEmpty(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === "" || value === 0 || value === false;
}

/** Returns the value without anything empty, for a rough comparison of fields that injection never changes. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => [key, withoutEmpty(member)] as const);
  return Object.fromEntries(members.filter(([, member]) => !isEmpty(member)));
}

/** `namespace`: the namespace that the reference fills in for a pod without one. */
export function goPod(object: KubernetesObject, namespace: string | undefined): unknown {
  const { metadata, spec, status, ...rest } = object as KubernetesObject & Fields;
  const { containers, initContainers, volumes, ...others } = (spec ?? {}) as Fields;
  const named = { ...metadata, namespace: metadata?.namespace || namespace };
  return {
    ...(withoutEmpty(rest) as Fields),
    metadata: withoutEmpty(typed(OBJECT_META, named)),
    spec: {
      containers: typedList(CONTAINERS, containers),
      initContainers: typedList(CONTAINERS, initContainers),
      volumes: typedList(list(VOLUME), volumes),
      others: withoutEmpty(others),
    },
    status: withoutEmpty(status ?? {}),
  };
}
