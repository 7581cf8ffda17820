/** How fast the nodes are, and what images do on them. */
import type { Clock } from "../storage/clock.ts";
import type { ImageBehaviour } from "./image.ts";

export interface KubeletSettings {
  readonly clock: Clock;
  /** From the wish to run a container until it runs. */
  readonly startDelayMs: number;
  /** From running until ready; for an init container until it has ended. */
  readonly readyDelayMs: number;
  /** From deletion until a pod is gone, if its grace period allows as much. */
  readonly terminationDelayMs: number;
  imageBehaviour(image: string): ImageBehaviour;
}
