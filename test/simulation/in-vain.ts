/** In which namespaces no pod is evicted any more, since one came there without what it should have. Told apart from the core. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, INJECT_KEY } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { hashOfPod } from "./objects.ts";
import { restartsAskedFor } from "./replacements.ts";

/** What came so soon after the change may have been given what was there before it. */
const SETTLED_MS = 15_000;

interface Written {
  readonly time?: string;
  readonly fieldsV1?: Readonly<Record<string, unknown>>;
}

/** `matched`: with its sidecars; `bare`: without, which it selects. Two namespaces are all of them. */
export function isStoppedIn(
  set: SidecarSet,
  matched: readonly Pod[],
  bare: readonly Pod[],
): (namespace: string) => boolean {
  if (restartsAskedFor(set) > 0) return () => false;
  const writes = (set.metadata as { readonly managedFields?: readonly Written[] }).managedFields ?? [];
  const changes = writes.filter(({ fieldsV1 }) => fieldsV1?.["f:spec"] !== undefined).map(({ time = "" }) => time);
  const changedMs = Date.parse(changes.toSorted().at(-1) ?? set.metadata?.creationTimestamp ?? "");
  const hash = set.metadata?.annotations?.[HASH_ANNOTATION];
  const owners = new Set(matched.map(ownerOf));
  const isLate = ({ metadata }: Pod) => Date.parse(metadata?.creationTimestamp ?? "") > changedMs + SETTLED_MS;
  const vain = [
    ...matched.filter((pod) => hashOfPod(pod, set.metadata?.name ?? "") !== hash),
    ...bare.filter(
      (pod) => ownerOf(pod) !== "" && owners.has(ownerOf(pod)) && pod.metadata?.annotations?.[INJECT_KEY] !== "false",
    ),
  ].filter(isLate);
  const namespaces = new Set(vain.map(({ metadata }) => metadata?.namespace ?? ""));
  return (namespace) => namespaces.size > 1 || namespaces.has(namespace);
}

function ownerOf({ metadata }: Pod): string {
  return metadata?.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? "";
}
