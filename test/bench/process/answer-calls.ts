/** The child's side of a benchmark process: functions that its parent calls by name. */

/** Messages between parent and child. `id` tells calls apart. */
export interface CallMessage {
  readonly id: number;
  readonly name: string;
  readonly argument: unknown;
}

export type AnswerMessage =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly problem: string };

type Handler = (argument: never) => unknown;

/** Microseconds that this process has computed so far, and its peak memory in bytes. */
export interface Usage {
  readonly cpu: number;
  readonly peakRss: number;
}

function usage(): Usage {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  return { cpu: userCPUTime + systemCPUTime, peakRss: maxRSS * 1024 };
}

/** Answers until the parent ends. Every process answers `usage`. */
export function answerCalls(handlers: Readonly<Record<string, Handler>>): void {
  const all: Readonly<Record<string, Handler>> = { usage, ...handlers };
  process.on("disconnect", () => process.exit());
  process.on("message", async ({ id, name, argument }: CallMessage) => {
    process.send?.(await answer(id, async () => all[name]?.(argument as never)));
  });
}

async function answer(id: number, work: () => Promise<unknown>): Promise<AnswerMessage> {
  try {
    return { id, value: await work() };
  } catch (error) {
    return { id, problem: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
