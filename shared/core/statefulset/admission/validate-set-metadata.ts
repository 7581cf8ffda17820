/** Decides whether an Advanced StatefulSet may have the metadata that it has. */
import type { ObjectMeta } from "../../../api/kubernetes.ts";
import { type FieldError, invalid, invalidEach, required } from "../../../go/field-error.ts";
import { dnsLabelErrors } from "../../../go/label-name.ts";
import { validateObjectMeta } from "../../admission/object-meta.ts";

const STANDARD_FINALIZERS: ReadonlySet<string> = new Set(["kubernetes", "orphan", "foregroundDeletion"]);

export function setMetadataErrors(metadata: ObjectMeta | undefined): readonly FieldError[] {
  const { namespace = "", generateName = "", ...rest } = metadata ?? {};
  const prefix = generateName === "" ? [] : dnsLabelErrors(maskTrailingDash(generateName));
  return [
    ...invalidEach("metadata.generateName", generateName, prefix),
    ...validateObjectMeta(rest, "metadata", dnsLabelErrors),
    ...(namespace === ""
      ? [required("metadata.namespace")]
      : invalidEach("metadata.namespace", namespace, dnsLabelErrors(namespace))),
    ...finalizerErrors(metadata),
  ];
}

/** Something follows it. Source: apimachinery's maskTrailingDash. */
function maskTrailingDash(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith("-") ? `${prefix.slice(0, -2)}a` : prefix;
}

/** Source: Kubernetes validateKubeFinalizerName. */
export function finalizerErrors(metadata: ObjectMeta | undefined): readonly FieldError[] {
  const detail = "name is neither a standard finalizer name nor is it fully qualified";
  return (metadata?.finalizers ?? []).flatMap((finalizer, index) =>
    finalizer.includes("/") || STANDARD_FINALIZERS.has(finalizer)
      ? []
      : [invalid(`metadata.finalizers[${index}]`, finalizer, detail)],
  );
}
