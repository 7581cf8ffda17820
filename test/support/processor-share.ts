/**
 * Gives a program a share of one processor, as Lambda gives a function for its memory: a control group of Linux, with a
 * new quota every 20 ms. Needs root, or a writable control group.
 */
import { access, mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Memory of a function with one whole processor. Source: Lambda, "Configuring Lambda function memory". */
const MB_OF_A_PROCESSOR = 1_769;
const PERIOD_US = 20_000;
const [V1, V2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];
const REMOVALS = 50;

export interface ProcessorShare {
  /** returns the command that starts the program in the group */
  readonly command: (program: string, argv: readonly string[]) => readonly [string, readonly string[]];
  /** removes the group after its last process has ended */
  readonly remove: () => Promise<void>;
}

/** Returns the share of one processor for a function with this many MB. */
export function shareOf(megabytes: number): number {
  return megabytes / MB_OF_A_PROCESSOR;
}

/** @throws Error in one sentence if this machine cannot share processors out */
export async function openShare(share: number): Promise<ProcessorShare> {
  const isV1 = await access(join(V1, "cpu.cfs_quota_us")).then(
    () => true,
    () =>
      access(V1).then(
        () => true,
        () => false,
      ),
  );
  const folder = join(isV1 ? V1 : V2, `sidecarset-${process.pid}-${performance.now().toFixed(0)}`);
  const quota = Math.round(share * PERIOD_US);
  try {
    await mkdir(folder);
    if (isV1) {
      await writeFile(join(folder, "cpu.cfs_period_us"), String(PERIOD_US));
      await writeFile(join(folder, "cpu.cfs_quota_us"), String(quota));
    } else await writeFile(join(folder, "cpu.max"), `${quota} ${PERIOD_US}`);
  } catch (error) {
    throw new Error("a share of a processor needs a control group that may be written to: run it as root on Linux", {
      cause: error,
    });
  }
  const enter = 'echo $$ > "$0" && exec "$@"';
  return {
    command: (program, argv) => ["/bin/sh", ["-c", enter, join(folder, "cgroup.procs"), program, ...argv]],
    async remove() {
      for (let times = 1; ; times++) {
        try {
          return await rmdir(folder);
        } catch (error) {
          // The kernel may still hold the last process.
          if (times === REMOVALS) throw error;
          await sleep(20);
        }
      }
    },
  };
}
