/** Reports of what a process does, for listeners that make spans of them. Without a listener nothing is reported. */
import { channel } from "node:diagnostics_channel";
import { withoutSecrets } from "./log.ts";

export type DoingValues = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** How something ended. */
export interface Ending {
  readonly values?: DoingValues;
  /** problems that did not end it, a sentence each */
  readonly problems?: readonly string[];
  /** why it failed, a sentence; absent: it did not */
  readonly failure?: string | undefined;
}

/** The report that a listener receives, and its writable members. */
export interface Doing {
  readonly name: string;
  readonly values: DoingValues;
  /** Runs work whose own reports become parts of this one. Adds no error of its own. */
  within?: <T>(work: () => T) => T;
  /** Called once, when it is over. Never throws. */
  end?: (ending: Ending) => void;
}

/** The channel has a name, because a function's bundle and its listener cannot share an import. */
export const DOINGS = channel("sidecarset.doings");

/** The same as `work()`. No name or value may hold a secret; sentences may. */
export function withDoing<T>(
  name: string,
  values: DoingValues,
  work: () => Promise<T>,
  endingOf: (result: T) => Ending = () => ({}),
): Promise<T> {
  return DOINGS.hasSubscribers ? published({ name, values }, work, endingOf) : work();
}

async function published<T>(doing: Doing, work: () => Promise<T>, endingOf: (result: T) => Ending): Promise<T> {
  DOINGS.publish(doing);
  const { within = (inner) => inner(), end = () => undefined } = doing;
  try {
    const result = await within(work);
    end(withoutSecretsIn(endingOf(result)));
    return result;
  } catch (error) {
    end(withoutSecretsIn({ failure: error instanceof Error ? error.message : String(error) }));
    throw error;
  }
}

function withoutSecretsIn({ values, problems = [], failure }: Ending): Ending {
  const shown = failure === undefined ? {} : { failure: withoutSecrets(failure) };
  return { ...(values ? { values } : {}), problems: problems.map(withoutSecrets), ...shown };
}
