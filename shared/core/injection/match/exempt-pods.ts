/** Decides which pods are left alone whatever SidecarSets say, before any of them is looked at. */
import type { LabelSelectorRequirement } from "../../../api/kubernetes.ts";
import { CONTROL_PLANE_LABEL, NAMESPACE_NAME_LABEL } from "../../../api/names.ts";

/** The cluster's own namespaces, as Kubernetes advises: DNS must start while the webhook is down. */
export const EXEMPT_NAMESPACES: readonly string[] = ["kube-node-lease", "kube-system"];

/** For a namespaceSelector: not these namespaces, and none with a control-plane label. */
export function outsideOf(namespaces: readonly string[]): readonly LabelSelectorRequirement[] {
  const byName = { key: NAMESPACE_NAME_LABEL, operator: "NotIn", values: namespaces };
  return [{ key: CONTROL_PLANE_LABEL, operator: "DoesNotExist" }, ...(namespaces.length > 0 ? [byName] : [])];
}

export interface MatchCondition {
  readonly name: string;
  /** CEL */
  readonly expression: string;
}

/** A mirror pod shows what a node runs anyway: nothing that is changed in it has an effect. */
export const NO_MIRROR_PODS: MatchCondition = {
  name: "not-a-mirror-pod",
  expression: `!has(object.metadata.annotations) || !("kubernetes.io/config.mirror" in object.metadata.annotations)`,
};
