/** The environment variables that a sidecar copies from the pod's containers. */
import type { Container, EnvVar, ObjectMeta } from "../../api/kubernetes.ts";
import type { FieldReference, SidecarContainer, TransferEnvVar } from "../../api/sidecarset.ts";
import { compareUtf8 } from "../../go/json/go-json.ts";
import { qualifiedNameErrors } from "../../go/label-name.ts";

/** The label or annotation in the path; undefined for any other field. */
export function referencedKey({
  fieldPath,
}: FieldReference): { readonly of: "labels" | "annotations"; readonly key: string } | undefined {
  const open = fieldPath.indexOf("['", 1);
  if (open < 0 || open + 4 > fieldPath.length || !fieldPath.endsWith("']")) return undefined;
  const [path, key] = [fieldPath.slice(0, open), fieldPath.slice(open + 2, -2)];
  if (path === "metadata.labels") return qualifiedNameErrors(key).length > 0 ? undefined : { of: "labels", key };
  if (path !== "metadata.annotations") return undefined;
  return qualifiedNameErrors(key.toLowerCase()).length > 0 ? undefined : { of: "annotations", key };
}

/** "" when it is missing. */
function fieldOf(reference: FieldReference, metadata: ObjectMeta): string | undefined {
  const referenced = referencedKey(reference);
  return referenced && (metadata[referenced.of]?.[referenced.key] ?? "");
}

function sourceOf({ sourceContainerName, sourceContainerNameFrom }: TransferEnvVar, metadata: ObjectMeta) {
  const fieldRef = sourceContainerNameFrom?.fieldRef;
  return fieldRef ? fieldOf(fieldRef, metadata) : (sourceContainerName ?? "");
}

/** The names without duplicates, in the order of the transfer. */
export function envNamesOf({ envName, envNames }: TransferEnvVar): readonly string[] {
  return [...new Set([...(envName ? [envName] : []), ...(envNames ?? [])])].sort(compareUtf8);
}

/** The last of a name wins. */
function envByContainer(containers: readonly Container[]): ReadonlyMap<string, EnvVar> {
  return new Map(
    containers.flatMap(({ name, env }) => (env ?? []).map((variable) => [`${name}/${variable.name}`, variable])),
  );
}

/** Whole variables, including valueFrom; missing ones are skipped. `metadata`: the pod's. */
export function transferredEnv(
  { transferEnv }: SidecarContainer,
  containers: readonly Container[],
  metadata: ObjectMeta,
): readonly EnvVar[] {
  const variables = envByContainer(containers);
  return (transferEnv ?? []).flatMap((transfer) => {
    const source = sourceOf(transfer, metadata);
    if (source === undefined) return [];
    return envNamesOf(transfer).flatMap((name) => variables.get(`${source}/${name}`) ?? []);
  });
}
