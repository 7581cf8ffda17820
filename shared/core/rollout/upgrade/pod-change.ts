/** One pod's change while it is planned, and the part that has to be written. */
import type { Container, Pod } from "../../../api/kubernetes.ts";
import type { ImageChange, ResourceChange } from "../../actions.ts";

export type Annotations = Readonly<Record<string, string>>;

/** The plan for one pod, or the reason why there is none. */
export type PodPlan =
  | {
      readonly kind: "planned";
      readonly images: readonly ImageChange[];
      /** absent: no resize */
      readonly resources?: readonly ResourceChange[];
      /** changed annotations, with whole values */
      readonly annotations: Annotations;
      /** absent: none change */
      readonly labels?: Annotations;
      /** the patch only takes the pod out of endpoints */
      readonly isDrain?: true;
      /** as in PatchPod */
      readonly isAllowed?: true;
    }
  | { readonly kind: "refused"; readonly message: string };

/** A container that gets an image, possibly the one it has. */
export interface Retarget {
  readonly container: string;
  readonly image: string;
  readonly annotations: Annotations;
  /** a native sidecar; absent: in spec.containers */
  readonly list?: "initContainers";
  /** the hot-upgrade sidecar, and the slot that works from now on */
  readonly working?: readonly [sidecar: string, slot: string];
}

export function containerOf(pod: Pod, name: string): Container | undefined {
  return pod.spec.containers.find((container) => container.name === name);
}

/** The images that really change. */
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
