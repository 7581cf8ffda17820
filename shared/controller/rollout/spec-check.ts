/** Whether a SidecarSet says something else by now, asked while a batch of its pods is written to. */
import { isSteeredAlike } from "../../core/pod/steering/steered.ts";
import { type Context, readSame, type Snapshot } from "./observe.ts";

/** A batch may take many seconds, and nobody wants to wait for its end who has seen what the new image does. */
const EVERY_MS = 2_000;

/** Of one batch, from its beginning. */
export class SpecCheck {
  readonly #context: Context;
  readonly #look: Snapshot;
  #readAtMs: number;
  #isReading = false;
  #isOutdated = false;

  constructor(context: Context, snapshot: Snapshot) {
    this.#context = context;
    this.#look = snapshot;
    this.#readAtMs = context.clock.now();
  }

  /** The SidecarSet was seen to be another than was looked at. */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  /** The same. Begins to read the SidecarSet when it is time; nobody waits for that, and a read that fails tells nothing. */
  check(): boolean {
    const isTime = this.#context.clock.now() - this.#readAtMs >= EVERY_MS;
    if (isTime && !this.#isReading && !this.#isOutdated) this.#read().catch(() => undefined);
    return this.#isOutdated;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    const before = this.#look.sidecarSet;
    try {
      const same = await readSame(this.#context, this.#look);
      this.#isOutdated = same === undefined || !isSteeredAlike(same, before);
    } finally {
      this.#readAtMs = this.#context.clock.now();
      this.#isReading = false;
    }
  }
}
