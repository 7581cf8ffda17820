/** The speed of nodes, and the behaviour of images on them. */

import { createHash } from "node:crypto";
import type { Clock } from "../storage/api.ts";

export interface KubeletSettings {
  readonly clock: Clock;
  /** Milliseconds from the decision to run a container until it runs. */
  readonly startDelayMs: number;
  /** Milliseconds from running until ready; for an init container until it has ended. */
  readonly readyDelayMs: number;
  /** Milliseconds from deletion until a pod is gone, if its grace period allows this. */
  readonly terminationDelayMs: number;
  imageBehaviour(image: string): ImageBehaviour;
}

// Names of pulled images, and the simulated behaviour of images.

/**
 * `unpullable`: the image does not exist. `never-ready`: it runs, and its readiness probe always fails. `hook-fails`,
 * `hook-never-ends`: the behaviour of the container's postStart hook; without a hook the container runs. `completes`:
 * it ends with exit code 0 and is not started again.
 */
export type ImageBehaviour = "runs" | "unpullable" | "never-ready" | "hook-fails" | "hook-never-ends" | "completes";

/** The behaviour of an image, by its tag, such as "does-not-exist". */
export function imageBehaviour(image: string): ImageBehaviour {
  if (image.includes("does-not-exist")) return "unpullable";
  return (
    (["never-ready", "hook-fails", "hook-never-ends", "completes"] as const).find((word) => image.includes(word)) ??
    "runs"
  );
}

/** The imageID docker-pullable://REPOSITORY@sha256:…, which is always the same for the same image. */
export function imageId(image: string): string {
  const [name = "", digest] = image.split("@");
  const repository = name.replace(/:[^:/]+$/, "");
  return `docker-pullable://${repository}@${digest ?? `sha256:${createHash("sha256").update(image).digest("hex")}`}`;
}

/**
 * The image name that containerd writes into a status. The product's function is not used, so that its mistakes show.
 */
export function fullName(image: string): string {
  const [first = "", ...rest] = image.split("/");
  const hasRegistry = rest.length > 0 && /[.:]|^localhost$/.test(first);
  const name = hasRegistry ? image : `docker.io/${rest.length === 0 ? "library/" : ""}${image}`;
  return /@|:[^/]+$/.test(name) ? name : `${name}:latest`;
}
