/** Whose turn it is: how far each SidecarSet has come in a pass, which are due again, and where the next pass begins. */
import type { SidecarSet } from "../../api/sidecarset.ts";
import { type Cluster, SIDECARSETS } from "../../kube/port.ts";
import type { RolloutContext } from "./look.ts";
import { listAll } from "./observe.ts";
import type { SidecarSetReport } from "./report.ts";
import { messageOf, note, type Service } from "./service.ts";

/** So long after its turn a SidecarSet that is not followed is looked at again. */
const RETURN_MS = 60_000;

export interface Turn {
  readonly context: RolloutContext;
  report: SidecarSetReport;
  /** when it ended last, on the pass's clock */
  endedAtMs: number;
  following?: Promise<void> | undefined;
}

export class Turns extends Map<string, Turn> {
  /** how many are followed now */
  followed = 0;
  /** in which they began */
  readonly order = new Set<string>();
}

export interface Listed {
  readonly name: string;
  readonly generation: number;
}

export async function listSidecarSets(cluster: Cluster): Promise<readonly Listed[]> {
  const { items } = await listAll<SidecarSet, Listed>(cluster, SIDECARSETS, {}, ({ metadata }) => ({
    name: metadata?.name ?? "",
    generation: metadata?.generation ?? 0,
  }));
  return items;
}

/** The next pass begins with the first one that began too late in this one. */
export function cursorOf({ cursor, notReached }: Service, turns: Turns): string {
  const begun = [...turns.order];
  const late = new Set(notReached);
  const first = begun.findIndex((name) => late.has(name));
  return begun[first - 1] ?? cursor;
}

/** In the order of the turns, which overlap. */
export function reportsOf(turns: Turns, names: readonly string[]): readonly SidecarSetReport[] {
  return [...new Set([...names, ...turns.keys()])].flatMap((name) => turns.get(name)?.report ?? []);
}

/** SidecarSets that are new, have changed, or have not been reconciled for a while. */
export async function dueNames(service: Service, turns: Turns): Promise<readonly string[]> {
  const isDue = ({ name, generation }: Listed) => {
    const turn = turns.get(name);
    if (!turn) return true;
    if (turn.following) return false;
    return turn.report.generation !== generation || service.clock.now() - turn.endedAtMs >= RETURN_MS;
  };
  try {
    return (await listSidecarSets(service.cluster)).filter(isDue).map(({ name }) => name);
  } catch (error) {
    note(service, messageOf(error));
    return [];
  }
}
