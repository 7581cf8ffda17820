/** Decides which part of a set a ControllerRevision records, and what is made of a set at a recorded revision. */
import type { ControllerRevision } from "../../../api/kubernetes.ts";
import type { PodTemplateSpec, StatefulSet } from "../../../api/stateful-set.ts";
import { sortedGoJson } from "../../../go/json/go-json.ts";
import { isJsonObject } from "../../../go/json/json-object.ts";
import { decodeGo } from "../../../go/types/decode-go.ts";
import { POD_TEMPLATE_SPEC } from "../../../go/types/pod.ts";

/**
 * The pod template, with everything that Go always prints. Compat: numbers pass through float64 (statefulset.md,
 * section 2). Throws where the template does not fit its type, which the API server stores only past the webhook.
 */
export function templateData({ spec: { template = {} } }: StatefulSet): unknown {
  const known = recorded.get(template);
  if (known) return known;
  const data = recordOf(template);
  recorded.set(template, data);
  return data;
}

/** Of templates that are the same objects: they never change, and a round decides on them twice. */
const recorded = new WeakMap<PodTemplateSpec, object>();

function recordOf(template: PodTemplateSpec): object {
  const decoded = decodeGo(POD_TEMPLATE_SPEC, template);
  if (decoded.kind === "DecodeError")
    throw new TypeError(`the pod template cannot be recorded: spec.template.${decoded.message}`);
  // In the order of Go's maps, as those of SidecarSets.
  return { spec: { template: JSON.parse(sortedGoJson({ ...decoded.value, $patch: "replace" })) } };
}

/** The set with the template of the revision; everything else is as it is now. */
export function restoreTemplate(set: StatefulSet, { data }: ControllerRevision): StatefulSet {
  const spec = isJsonObject(data) ? data["spec"] : undefined;
  const recorded = isJsonObject(spec) ? spec["template"] : undefined;
  const { $patch: _, ...template } = isJsonObject(recorded) ? recorded : {};
  return { ...set, spec: { ...set.spec, template: template as PodTemplateSpec } };
}
