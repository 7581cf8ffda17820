/**
 * Tests notifications while passes overlap, die and freeze, and while the receiver is slow or down. No notification may
 * be lost.
 */
import { expect, it } from "vitest";
import type { Notification, SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Notify } from "../../shared/approval/notifier.ts";
import type { Write } from "./api-server.ts";
import { type Chance, seededChance } from "./chance.ts";
import type { Process } from "./process.ts";
import { scenarioOf } from "./scenario.ts";
import { World } from "./world.ts";

const SEEDS = 60;
/** A claim is valid for a minute, and nothing is sent in its second half. */
const LEAST_BETWEEN_MS = 30_000;

const TOLD = "told";
const allOf = (object: unknown) => (object as SidecarSet | undefined)?.status?.notifications ?? [];
const waitingOf = (object: unknown) => allOf(object).filter(({ id }) => id !== TOLD);
/**
 * Earlier the receiver heard about the same obstacle. A notification about an obstacle that has ended before it is sent
 * is dropped.
 */
const wasTold = (object: unknown, { event, cause }: Notification) =>
  allOf(object).some((one) => one.id === TOLD && one.event === event && one.cause === cause);

/** Accepts some notifications, and answers late or never. Judges the delivery of the stored notifications. */
class Receiver {
  readonly violations: string[] = [];
  readonly recorded = new Set<string>();
  /** notification's id → the times at which it was accepted */
  readonly taken = new Map<string, number[]>();
  refused = 0;
  readonly #chance: Chance;
  readonly #nowMs: () => number;

  constructor(seed: number, nowMs: () => number) {
    this.#chance = seededChance(seed, 90);
    this.#nowMs = nowMs;
  }

  notifyBy(process: Process, isCalm: () => boolean): Notify {
    return (_sidecarSet, { id }, timeoutMs) => {
      const isDown = !isCalm() && this.#chance.isLucky(0.3);
      if (isDown) this.refused++;
      else this.#take(id);
      const afterMs = !isCalm() && this.#chance.isLucky(0.2) ? timeoutMs : this.#chance.between(1, 500);
      const isLate = afterMs >= timeoutMs;
      return new Promise((resolve) => {
        process.deliver(Math.min(afterMs, timeoutMs), () => resolve(isDown || isLate ? "no answer" : undefined));
      });
    };
  }

  #take(id: string): void {
    const times = this.taken.get(id) ?? [];
    const last = times.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (this.#nowMs() - last < LEAST_BETWEEN_MS)
      this.violations.push(`${id} is sent again after ${this.#nowMs() - last} ms`);
    if (!this.recorded.has(id)) this.violations.push(`${id} is sent, and was never written down`);
    this.taken.set(id, [...times, this.#nowMs()]);
  }

  see({ resource, object, previous, isRemoved }: Write): void {
    if (resource !== "sidecarsets" || isRemoved) return;
    const now = new Set(waitingOf(object).map(({ id }) => id));
    for (const id of now) this.recorded.add(id);
    for (const one of waitingOf(previous))
      if (!(now.has(one.id) || this.taken.has(one.id) || wasTold(previous, one)))
        this.violations.push(`${one.id} is lost: nobody has taken it`);
  }
}

it(`in ${SEEDS} worlds every notification that leaves the status was taken, and none is sent twice within a claim`, async () => {
  const total = { recorded: 0, taken: 0, again: 0, refused: 0 };
  for (let seed = 0; seed < SEEDS; seed++) {
    let world: World | undefined;
    const receiver = new Receiver(seed, () => world?.scheduler.nowMs ?? 0);
    world = new World(scenarioOf(seed), {
      notifyBy: (process, isCalm) => receiver.notifyBy(process, isCalm),
      see: (write) => receiver.see(write),
    });
    const { violations } = await world.run();
    expect([...violations, ...receiver.violations], `seed ${seed}`).toEqual([]);
    total.recorded += receiver.recorded.size;
    total.taken += receiver.taken.size;
    total.refused += receiver.refused;
    total.again += [...receiver.taken.values()].reduce((sum, times) => sum + times.length - 1, 0);
  }
  // A pass may die after the answer and before it marks the notification as sent. Then a notification comes twice; most
  // come once.
  expect(total.recorded).toBeGreaterThan(SEEDS);
  expect(total.taken).toBeGreaterThan(SEEDS);
  expect(total.refused).toBeGreaterThan(0);
  expect(total.again).toBeGreaterThan(0);
  expect(total.again).toBeLessThan(total.taken);
});
