/** Decides which expressions give the environment variables that a sidecar takes over from the pod's containers. */
import type { SidecarContainer, TransferEnvVar } from "../../../api/sidecarset.ts";
import { celText } from "../../../go/json/cel-literal.ts";
import { envNamesOf, referencedKey } from "../transfer-env.ts";
import { type AnnotationExpressions, annotation } from "./annotation-expressions.ts";

/** CEL of the container's name; undefined: the entry is skipped. */
function sourceOf(
  { sourceContainerName, sourceContainerNameFrom }: TransferEnvVar,
  annotations: AnnotationExpressions,
) {
  const fieldRef = sourceContainerNameFrom?.fieldRef;
  if (!fieldRef) return celText(sourceContainerName ?? "");
  const { of, key } = referencedKey(fieldRef) ?? {};
  if (key === undefined) return undefined;
  if (of === "labels") return `object.metadata.?labels[?${celText(key)}].orValue("")`;
  return annotations.get(key) ?? annotation(key);
}

/** Lists that hold the variable or, where the source does not have it, nothing; the last of a name counts. */
export function transferExpressions(
  { transferEnv = [] }: SidecarContainer,
  annotations: AnnotationExpressions,
): readonly string[] {
  return transferEnv.flatMap((transfer) => {
    const source = sourceOf(transfer, annotations);
    if (source === undefined) return [];
    const env = `object.spec.containers.filter(c, c.name == ${source}).map(c, c.?env.orValue([])).flatten()`;
    return envNamesOf(transfer).map(
      (name) => `${env}.filter(e, e.name == ${celText(name)}).reverse().transformList(i, e, i == 0, e)`,
    );
  });
}
