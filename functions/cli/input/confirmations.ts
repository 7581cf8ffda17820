/** Confirmations of writes: each is for one action on one SidecarSet in one state, for some minutes, and once. */
import { createHash, randomBytes } from "node:crypto";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { sortedGoJson } from "../../../shared/go/json/go-json.ts";
import { CliError } from "../../terminal/screen.ts";

export const VALID_MINUTES = 5;
/** The number of kept confirmations. Older ones are forgotten, so that a client in a loop uses no more memory. */
const MOST = 100;

/** The change that a plan showed. The write makes exactly this change, if nothing has changed since. */
export interface Intended {
  /** the action, such as `undo log-agent --to-revision=3` */
  readonly action: string;
  /** the state before the plan */
  readonly before: SidecarSet;
  /** the state that the API server would store */
  readonly after: SidecarSet;
}

interface Given {
  readonly action: string;
  readonly state: string;
  readonly untilMs: number;
}

export class Confirmations {
  readonly #given = new Map<string, Given>();
  readonly #now: () => number;

  /** `now`: milliseconds of a clock that never goes back */
  constructor(now: () => number) {
    this.#now = now;
  }

  give(intended: Intended): string {
    for (const token of [...this.#given.keys()].slice(0, Math.max(0, this.#given.size - MOST + 1)))
      this.#given.delete(token);
    const token = randomBytes(16).toString("base64url");
    const untilMs = this.#now() + VALID_MINUTES * 60_000;
    this.#given.set(token, { action: intended.action, state: stateOf(intended), untilMs });
    return token;
  }

  /** Uses up a token, with any result. @throws CliError for a token that does not allow this change */
  use(token: string, intended: Intended): void {
    const given = this.#given.get(token);
    this.#given.delete(token);
    const again = `call plan for ${intended.action}, show what it says, and use its confirmation`;
    if (given === undefined || given.untilMs < this.#now())
      throw new CliError(`the confirmation is unknown, used or older than ${VALID_MINUTES} minutes; ${again}`);
    if (given.action !== intended.action)
      throw new CliError(`the confirmation is for ${given.action}, not for ${intended.action}; ${again}`);
    if (given.state !== stateOf(intended))
      throw new CliError(`SidecarSet ${intended.before.metadata?.name} was changed after the plan; ${again}`);
  }
}

/** The parts that people write. Passes write the status every second, and the plan stays valid. */
function stateOf({ before, after }: Intended): string {
  const { uid = "", generation = 0, labels = {}, annotations = {} } = before.metadata ?? {};
  const state = { uid, generation, labels, annotations, spec: after.spec };
  return createHash("sha256").update(sortedGoJson(state)).digest("hex");
}
