/** What a pulled image is called, and how an image behaves. */
import { createHash } from "node:crypto";

/** `unpullable`: no such image. `never-ready`: runs, and fails its readiness probe for ever. */
export type ImageBehaviour = "runs" | "unpullable" | "never-ready";

/** By name: a tag that holds "does-not-exist" or "never-ready" does what it says. */
export function imageBehaviour(image: string): ImageBehaviour {
  if (image.includes("does-not-exist")) return "unpullable";
  return image.includes("never-ready") ? "never-ready" : "runs";
}

/** docker-pullable://REPOSITORY@sha256:…, always the same for the same image. */
export function imageId(image: string): string {
  const [name = "", digest] = image.split("@");
  const repository = name.replace(/:[^:/]+$/, "");
  return `docker-pullable://${repository}@${digest ?? `sha256:${createHash("sha256").update(image).digest("hex")}`}`;
}
