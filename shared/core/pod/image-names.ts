/** Images in the spec's spelling, if a runtime has expanded them. */
import type { Container, ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { fullImageName } from "../../go/image-reference.ts";

const HUB = "docker.io/";

/**
 * The pod with its statuses' images in the spec's spelling: `nginx:1.29` for containerd's
 * `docker.io/library/nginx:1.29`. OpenKruise compares letters, so a pod with a reverted image would never be complete.
 * The same pod without short spellings. `compared`: the spec's image for that comparison.
 */
export function withSpecImages(pod: Pod, compared = (image: string) => image): Pod {
  const { spec, status } = pod;
  const before = status?.containerStatuses ?? [];
  const initBefore = status?.initContainerStatuses ?? [];
  const containerStatuses = renamed(spec.containers ?? [], before, compared);
  const initContainerStatuses = renamed(spec.initContainers ?? [], initBefore, compared);
  if (containerStatuses === before && initContainerStatuses === initBefore) return pod;
  return { ...pod, status: { ...status, containerStatuses, initContainerStatuses } };
}

/** The same list if nothing changes, as for most pods. */
function renamed(
  containers: readonly Container[],
  statuses: readonly ContainerStatus[],
  compared: (image: string) => string,
): readonly ContainerStatus[] {
  if (!statuses.some(({ image }) => image?.startsWith(HUB))) return statuses;
  return statuses.map((status) => {
    const image = containers.find(({ name }) => name === status.name)?.image;
    const isShort = image !== undefined && status.image !== image && status.image === fullImageName(image);
    return isShort ? { ...status, image: compared(image) } : status;
  });
}
