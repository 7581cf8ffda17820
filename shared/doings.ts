/** Reports the work of a process to listeners that make spans of it. Without a listener it reports nothing. */
import { channel } from "node:diagnostics_channel";
import { withoutSecrets } from "./log.ts";

export type DoingValues = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** The end of some work. */
export interface Ending {
  readonly values?: DoingValues;
  /** problems that did not end the work, each one sentence */
  readonly problems?: readonly string[];
  /** reason of the failure in one sentence; absent: the work succeeded */
  readonly failure?: string | undefined;
}

/** The report that a listener receives, with members that it may set. */
export interface Doing {
  readonly name: string;
  readonly values: DoingValues;
  /** Runs the work, whose own reports become parts of this one. It adds no error of its own. */
  within?: <T>(work: () => T) => T;
  /** Called once, at the end of the work. It never throws. */
  end?: (ending: Ending) => void;
}

/** The channel has a name, because a function's bundle and its listener cannot share an import. */
export const DOINGS = channel("sidecarset.doings");

/** Runs `work()` and returns its result. No name or value may hold a secret; sentences may. */
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
