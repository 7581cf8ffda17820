/** Decides whether the containers of a pod were started as its spec says, by the hashes that a node agent reports. */
import type { Container, Pod } from "../../../api/kubernetes.ts";
import { RUNTIME_CONTAINERS_ANNOTATION } from "../../../api/names.ts";
import { goJson, sortedGoJson } from "../../../go/json/go-json.ts";
import { isJsonObject, type JsonObject, jsonObjectOf, jsonOf } from "../../../go/json/json-object.ts";
import { jsonProblem } from "../../../go/json/json-problem.ts";
import { CONTAINER_FIELDS } from "../../../go/types/container.ts";
import { decodeGo } from "../../../go/types/decode-go.ts";
import { struct } from "../../../go/types/go-type.ts";
import { metadataReferences } from "./metadata-references.ts";

const CONTAINER = struct<Container>(CONTAINER_FIELDS);
const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

export function hasRuntimeMeta(pod: Pod): boolean {
  return jsonObjectOf(pod.metadata?.annotations?.[RUNTIME_CONTAINERS_ANNOTATION]) !== undefined;
}

/** Why the annotation cannot be read, as Go says it; undefined: it can, or there is none. */
export function runtimeMetaProblem({ metadata }: Pod): string | undefined {
  const text = metadata?.annotations?.[RUNTIME_CONTAINERS_ANNOTATION];
  if (text === undefined) return undefined;
  const value = jsonOf(text);
  if (value === null || isJsonObject(value)) return undefined;
  return jsonProblem(text) ?? `annotation ${RUNTIME_CONTAINERS_ANNOTATION} is not a JSON object`;
}

/** "plain": name and image; "environment": what is read from labels and annotations. Every container must agree. */
export function areHashesConsistent(pod: Pod, kind: "plain" | "environment"): boolean {
  const reported = jsonObjectOf(pod.metadata?.annotations?.[RUNTIME_CONTAINERS_ANNOTATION])?.["containers"];
  const metas: readonly unknown[] = Array.isArray(reported) ? reported : [];
  return pod.spec.containers.every((container) => {
    const status = pod.status?.containerStatuses?.find(({ name }) => name === container.name);
    const meta = metas.find(
      (candidate): candidate is JsonObject => isJsonObject(candidate) && candidate["name"] === container.name,
    );
    if (!status || !meta || (meta["containerID"] ?? "") !== (status.containerID ?? "")) return false;
    const hashes = isJsonObject(meta["hashes"]) ? meta["hashes"] : {};
    return kind === "plain"
      ? [plainHash(container), wholeHash(container)].includes(hashes["plainHash"] as number)
      : (hashes["extractedEnvFromMetadataHash"] ?? 0) === environmentHash(container, pod);
  });
}

/** Source: Kubernetes pkg/kubelet/container, HashContainer (1.32). */
function plainHash({ name, image = "" }: Container): number {
  return hashObject(sortedGoJson({ name, image }));
}

/** The same before 1.31: of all that the container is. */
function wholeHash(container: Container): number {
  const decoded = decodeGo(CONTAINER, container);
  return decoded.kind === "Decoded" ? hashObject(goJson(decoded.value)) : plainHash(container);
}

/** 0 for a container that reads none. */
function environmentHash({ env }: Container, { metadata }: Pod): number {
  const read = metadataReferences(env).map(({ name, map, key }) => {
    const value = metadata?.[map]?.[key];
    return value ? { name, value } : { name };
  });
  return read.length === 0 ? 0 : hashObject(goJson(read));
}

/** FNV-1a, 32 bits, over the bytes as Go's spew prints them. Source: Kubernetes pkg/util/hash, DeepHashObject. */
function hashObject(json: string): number {
  const printed = `([]uint8)[${new TextEncoder().encode(json).join(" ")}]`;
  let hash = OFFSET_BASIS;
  for (const byte of new TextEncoder().encode(printed)) hash = Math.imul(hash ^ byte, PRIME) >>> 0;
  return hash;
}
