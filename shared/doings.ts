/** What is done, told to those who make spans of it. Nobody listens unless traces are wanted, and nothing is told then. */
import { channel } from "node:diagnostics_channel";
import { withoutSecrets } from "./log.ts";

export type DoingValues = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** How something ended. */
export interface Ending {
  readonly values?: DoingValues;
  /** what went wrong without ending it, a sentence each */
  readonly problems?: readonly string[];
  /** why it failed, a sentence; absent: it did not */
  readonly failure?: string | undefined;
}

/** What listeners are handed, and what they may write into it. */
export interface Doing {
  readonly name: string;
  readonly values: DoingValues;
  /** Does it where what it does in turn is known to be a part of it. Never throws by itself. */
  within?: <T>(work: () => T) => T;
  /** Called once, when it is over. Never throws. */
  end?: (ending: Ending) => void;
}

/** By its name, not by import: a function's bundle and what listens to it are apart. */
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
