/** Images as a spec writes them, where a runtime has written them out in full. */
import type { Container, ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { fullImageName } from "../../go/image-reference.ts";

const HUB = "docker.io/";

/**
 * The pod with the images of its statuses as its spec has them: `nginx:1.29` where containerd says
 * `docker.io/library/nginx:1.29`. OpenKruise compares them letter by letter, by which a pod whose image is taken back
 * before its kubelet has seen it would never be done. The same pod where nothing is written in short. `compared`: how
 * the image of a spec is written for that comparison.
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

/** The same list where there is nothing to do, as with most pods. */
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
