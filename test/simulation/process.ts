/** A process that runs passes. It has its own clock. It can be killed, or frozen and thawed, between any two awaits. */
import type { Clock } from "../../shared/controller/loop/clock.ts";
import { newPassMemory, type PassMemory } from "../../shared/controller/pass.ts";
import type { Chance } from "./chance.ts";
import type { Timeline } from "./scheduler.ts";

export class Process {
  readonly name: string;
  readonly clock: Clock;
  readonly memory: PassMemory;
  readonly #scheduler: Timeline;
  #isKilled = false;
  #frozenUntilMs = 0;
  #skewMs = 0;

  /** `memory`: the memory that earlier passes in the same place left. */
  constructor(scheduler: Timeline, chance: Chance, name: string, memory: PassMemory = newPassMemory()) {
    this.memory = memory;
    this.#scheduler = scheduler;
    this.name = name;
    this.clock = {
      now: () => this.#scheduler.nowMs,
      epochMs: () => this.#scheduler.nowMs + this.#skewMs,
      sleep: (ms, signal) => this.#sleep(ms, signal),
      random: chance.next,
    };
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }

  /** Ends the process: its awaits of outside events never resolve. */
  kill(): void {
    this.#isKilled = true;
  }

  freeze(ms: number): void {
    this.#frozenUntilMs = Math.max(this.#frozenUntilMs, this.#scheduler.nowMs + ms);
  }

  /** Sets the clock forward, or back if `ms` is negative. */
  jump(ms: number): void {
    this.#skewMs += ms;
  }

  /** Runs `receive` within the process: later if the process is frozen, never if it was killed. */
  deliver(delayMs: number, receive: () => void): () => void {
    let cancel: () => void;
    const arrive = () => {
      if (this.#isKilled) return;
      const frozenMs = this.#frozenUntilMs - this.#scheduler.nowMs;
      if (frozenMs > 0) cancel = this.#scheduler.after(frozenMs, arrive);
      else receive();
    };
    cancel = this.#scheduler.after(delayMs, arrive);
    return () => cancel();
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const wake = () => {
        cancel();
        resolve();
      };
      const cancel = this.deliver(ms, () => {
        signal?.removeEventListener("abort", wake);
        resolve();
      });
      signal?.addEventListener("abort", wake, { once: true });
    });
  }
}
