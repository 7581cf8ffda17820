/** Decides nothing: one pod's change as it is being planned, and what of it has to be written. */
import type { Container, Pod } from "../../../api/kubernetes.ts";
import type { ImageChange, ResourceChange } from "../../actions.ts";

export type Annotations = Readonly<Record<string, string>>;

/** What a plan makes of one pod, or why it cannot. */
export type PodPlan =
  | {
      readonly kind: "planned";
      readonly images: readonly ImageChange[];
      /** absent: it is no resize */
      readonly resources?: readonly ResourceChange[];
      /** those that change, whole values */
      readonly annotations: Annotations;
      /** absent: none change */
      readonly labels?: Annotations;
      /** it takes the pod out of endpoints, and nothing else */
      readonly isDrain?: true;
      /** as in PatchPod */
      readonly isAllowed?: true;
    }
  | { readonly kind: "refused"; readonly message: string };

/** A container that gets an image, which may be the one it has. */
export interface Retarget {
  readonly container: string;
  readonly image: string;
  readonly annotations: Annotations;
  /** a native sidecar; absent: in spec.containers */
  readonly list?: "initContainers";
  /** the hot-upgrade sidecar, and its slot that works from now on */
  readonly working?: readonly [sidecar: string, slot: string];
}

export function containerOf(pod: Pod, name: string): Container | undefined {
  return pod.spec.containers.find((container) => container.name === name);
}

/** Images that are the same already need no change. */
export function imageChanges(pod: Pod, retargets: readonly Retarget[]): readonly ImageChange[] {
  return retargets.flatMap(({ container, image, list }) => {
    const containers = pod.spec[list ?? "containers"] ?? [];
    const index = containers.findIndex(({ name }) => name === container);
    const from = containers[index]?.image ?? "";
    return from === image ? [] : [{ index, container, from, to: image, ...(list ? { list } : {}) }];
  });
}

export function changedAnnotations(before: Annotations | undefined, after: Annotations): Annotations {
  return Object.fromEntries(Object.entries(after).filter(([key, value]) => before?.[key] !== value));
}
