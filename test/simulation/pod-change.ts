/** What a pass's write changed on a pod, and whether that is all that it may change. */
import type { Container, Pod } from "../../shared/api/kubernetes.ts";
import {
  FENCE_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  UPGRADABLE_CONDITION,
  VERSION_ALT_ANNOTATION_PREFIX,
  VERSION_ANNOTATION_PREFIX,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../shared/api/names.ts";
import { EMPTY_IMAGE, hashOfPod, imageOf, SIDECAR } from "./objects.ts";

const OWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  FENCE_ANNOTATION,
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  IN_PLACE_UPDATE_STATE_ANNOTATION,
  WORKING_HOT_UPGRADE_ANNOTATION,
]);

export function changeOf(
  previous: Pod,
  next: Pod,
  isHot: boolean,
): "upgrade" | "flip" | "fence" | { readonly problem: string } {
  if (previous.metadata?.uid !== next.metadata?.uid) return { problem: "is another pod" };
  if (remains(previous) !== remains(next)) return { problem: "changes more than images and our annotations" };
  if (hashOfPod(previous) !== hashOfPod(next)) return "upgrade";
  const images = ({ spec }: Pod) => JSON.stringify(spec.containers.map(({ image }) => image));
  if (images(previous) !== images(next)) return isHot ? "flip" : { problem: "changes images without the hash" };
  const isFenced =
    previous.metadata?.annotations?.[FENCE_ANNOTATION] !== next.metadata?.annotations?.[FENCE_ANNOTATION];
  return isFenced ? "fence" : { problem: "upgrades a pod that was upgraded already" };
}

/** A pod without what an upgrade may change. */
function remains({ metadata, spec, ...rest }: Pod): string {
  const { resourceVersion: _, annotations = {}, ...others } = metadata ?? {};
  const kept = Object.entries(annotations).filter(
    ([key]) =>
      !OWN_ANNOTATIONS.has(key) &&
      !key.startsWith(VERSION_ANNOTATION_PREFIX) &&
      !key.startsWith(VERSION_ALT_ANNOTATION_PREFIX),
  );
  const isOurs = ({ name }: Container) => name === SIDECAR || name.startsWith(`${SIDECAR}-`);
  const containers = spec.containers.map((container) => (isOurs(container) ? { ...container, image: "" } : container));
  return JSON.stringify([rest, kept, others, { ...spec, containers }]);
}

/** Of a write to the status: undefined when nothing but our condition differs. */
export function conditionChange(previous: Pod, next: Pod): string | undefined {
  const rest = ({ metadata, spec, status }: Pod) => {
    const { resourceVersion: _, ...meta } = metadata ?? {};
    const conditions = (status?.conditions ?? []).filter(({ type }) => type !== UPGRADABLE_CONDITION);
    return JSON.stringify([meta, spec, { ...status, conditions }]);
  };
  return rest(previous) === rest(next) ? undefined : `changes more than the condition ${UPGRADABLE_CONDITION}`;
}

/** Hash and images move together. */
export function imageViolation({ spec }: Pod, hash: string, isHot: boolean): string | undefined {
  const image = imageOf(Number(hash.split("-")[1]));
  const has = (name: string) =>
    spec.containers.some((container) => container.name === name && container.image === image);
  const isWhole = isHot ? has(`${SIDECAR}-1`) || has(`${SIDECAR}-2`) : has(SIDECAR);
  return isWhole ? undefined : `has ${hash} without ${image}`;
}

/** Of the slots that work with a real image one at least is left alone. */
export function hotViolation(previous: Pod, next: Pod): string | undefined {
  const working = previous.spec.containers.filter(({ name, image }) => {
    const status = previous.status?.containerStatuses?.find((one) => one.name === name);
    return name.startsWith(`${SIDECAR}-`) && image !== EMPTY_IMAGE && status?.ready === true && status.image === image;
  });
  const isKept = ({ name, image }: Container) =>
    next.spec.containers.some((container) => container.name === name && container.image === image);
  return working.length === 0 || working.some(isKept) ? undefined : "leaves no container that works";
}
