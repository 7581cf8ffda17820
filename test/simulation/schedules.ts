/** Runs two passes and one change of the SidecarSet on three pods, in every order with at most two pre-emptions. */
import { type Campaign, campaignOf, emptyCampaign, merged } from "./campaign.ts";
import type { Sending } from "./network.ts";
import type { Releases } from "./releases.ts";
import type { Scenario } from "./scenario.ts";
import { World, type WorldResult } from "./world.ts";

type Actor = "pass-1" | "pass-2" | "user" | "time";
const ACTORS: readonly Actor[] = ["pass-1", "pass-2", "user", "time"];
const MAX_STEPS = 2_000;
const SET = "mesh";
const PASS = { deadlineMs: 20_000, isFollowing: true, sidecarSet: SET } as const;

/** Changes by the user. Each has its own set of schedules. */
export const CHANGES = ["new image", "pause", "partition", "rollback"] as const;
type Change = (typeof CHANGES)[number];

const SCENARIO: Scenario = {
  seed: 1,
  pods: 3,
  sets: [{ name: SET, isHot: false, isOrdinal: false }],
  isStrict: false,
  strategy: { maxUnavailable: 1 },
  pageSize: 500,
  passes: [],
  strikes: [],
  networkFaults: [],
  faultRate: 0,
  slowRate: 0,
  eventRate: 0,
  expireRate: 0,
  isForbidden: false,
  behaviours: [],
  badRate: 0,
  reshapeRate: 0,
  noticeMs: 1_000,
  readyMs: 1_000,
};

/** The step, counted from 0, at which another process continues. */
interface PreEmption {
  readonly atStep: number;
  readonly by: Actor;
}

/** Runs all schedules with at most `most` pre-emptions. The first pre-emption is at a step of this share. */
export async function runSchedules(change: Change, isOurs: (step: number) => boolean, most = 2): Promise<Campaign> {
  let campaign = emptyCampaign();
  const explore = async (preEmptions: readonly PreEmption[], isOurStep: (step: number) => boolean): Promise<void> => {
    const { result, offers } = await new Stage(change, preEmptions).run();
    if (preEmptions.length > 0 || isOurStep(0))
      campaign = merged(campaign, campaignOf(named(result, change, preEmptions)));
    if (preEmptions.length === most) return;
    const ours = offers.filter(({ atStep }) => isOurStep(atStep));
    for (const next of ours) await explore([...preEmptions, next], () => true);
  };
  await explore([], isOurs);
  return campaign;
}

function named(result: WorldResult, change: Change, preEmptions: readonly PreEmption[]): WorldResult {
  const schedule = preEmptions.map(({ atStep, by }) => `${by} at step ${atStep}`).join(", ");
  return { ...result, violations: result.violations.map((what) => `${change}; ${schedule || "in turn"}: ${what}`) };
}

interface Ran {
  readonly result: WorldResult;
  /** the pre-emptions that were possible after the last one */
  readonly offers: readonly PreEmption[];
}

/** One schedule: the working process continues as long as it can, except at pre-emptions. */
class Stage {
  readonly #change: Change;
  readonly #preEmptions: readonly PreEmption[];
  readonly #world: World;
  /** calls that wait for their turn */
  readonly #parked = new Map<string, (() => void)[]>([
    ["pass-1", []],
    ["pass-2", []],
  ]);
  readonly #offers: PreEmption[] = [];
  #running = 2;
  #isChanged = false;

  constructor(change: Change, preEmptions: readonly PreEmption[]) {
    this.#change = change;
    this.#preEmptions = preEmptions;
    const gate = ({ process: { name } }: Sending, go: () => void) => {
      const calls = this.#parked.get(name);
      if (calls) calls.push(go);
      else go();
    };
    this.#world = new World(SCENARIO, { gate });
  }

  async run(): Promise<Ran> {
    const world = this.#world;
    world.users.releases.releaseNext(SET);
    for (const pass of [world.startPass(PASS), world.startPass(PASS)]) void pass.finally(() => this.#running--);
    await world.scheduler.settle();
    let current: Actor = "pass-1";
    for (let step = 0; this.#running > 0 || !this.#isChanged; step++) {
      if (step === MAX_STEPS) throw new Error(`a schedule of ${this.#change} has no end`);
      current = this.#choose(current, step);
      await this.#act(current);
    }
    this.#parked.clear();
    world.calm();
    await world.settle();
    return { result: world.result(), offers: this.#offers };
  }

  #choose(current: Actor, step: number): Actor {
    const able = ACTORS.filter((actor) => this.#can(actor));
    const usual = current !== "time" && able.includes(current) ? current : (able[0] ?? "time");
    if (step > (this.#preEmptions.at(-1)?.atStep ?? -1))
      this.#offers.push(...able.filter((by) => by !== usual).map((by) => ({ atStep: step, by })));
    return this.#preEmptions.find(({ atStep }) => atStep === step)?.by ?? usual;
  }

  #can(actor: Actor): boolean {
    if (actor === "user") return !this.#isChanged;
    if (actor === "time") return this.#world.scheduler.isPending;
    return (this.#parked.get(actor)?.length ?? 0) > 0;
  }

  async #act(actor: Actor): Promise<void> {
    const { scheduler, users } = this.#world;
    if (actor === "time") await scheduler.runNext();
    else if (actor === "user") {
      this.#isChanged = true;
      applyChange(users.releases, this.#change);
    } else {
      this.#parked.get(actor)?.shift()?.();
      await scheduler.runFor(ANSWERED_MS);
    }
  }
}

/** Longer than a call and its answer take, so that awaited events can happen in this time. */
const ANSWERED_MS = 41;

function applyChange(releases: Releases, change: Change): void {
  if (change === "new image") releases.releaseNext(SET);
  if (change === "pause") releases.apply(SET, { strategy: { paused: true } });
  if (change === "partition") releases.apply(SET, { strategy: { partition: 2 } });
  if (change === "rollback") releases.rollBack(SET);
}
