/** Finds the pods that an object of any kind would create, by the pod templates in it. */
import type { KubernetesObject, Pod } from "../../api/kubernetes.ts";

interface PodTemplate {
  readonly metadata?: Pod["metadata"];
  readonly spec: NonNullable<Pod["spec"]>;
}

/** Custom resources nest pod templates in each other, but not endlessly. */
const DEEPEST = 20;
const CONTAINER_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

/**
 * The pod itself; or one pod for each pod template, in the order of the object's fields (Deployment, CronJob, CloneSet,
 * PyTorchJob, …), named as its controller would begin to name it. Empty for an object that has neither.
 */
export function podsOf(object: KubernetesObject): readonly Pod[] {
  if (object.kind === "Pod") return [object as Pod];
  const { name, namespace } = object.metadata ?? {};
  return templatesIn(object, 0).map(({ metadata, spec }): Pod => {
    const { name: _name, ...own } = metadata ?? {};
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...own, ...(name ? { generateName: `${name}-` } : {}), ...(namespace ? { namespace } : {}) },
      spec,
    };
  });
}

function templatesIn(value: unknown, depth: number): readonly PodTemplate[] {
  if (typeof value !== "object" || value === null || depth > DEEPEST) return [];
  if (isPodTemplate(value)) return [value];
  return Object.values(value).flatMap((one) => templatesIn(one, depth + 1));
}

/** Patterns of policies have containers too, but none with a name that a pod may have. */
function isPodTemplate(value: object): value is PodTemplate {
  const { spec } = value as { readonly spec?: { readonly containers?: unknown } | null };
  const containers = spec?.containers;
  return Array.isArray(containers) && containers.length > 0 && containers.every(isContainer);
}

function isContainer(value: unknown): boolean {
  const { name } = (value ?? {}) as { readonly name?: unknown };
  return typeof name === "string" && CONTAINER_NAME.test(name);
}
