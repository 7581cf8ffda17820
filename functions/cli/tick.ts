/** `tick`: one pass by hand. */
import { runTick, troubleOf } from "../tick.ts";
import type { Command } from "./command.ts";

export const TICK: Command = {
  name: "tick",
  group: "Try it and run it",
  summary: "one rollout pass by hand; prints its report as JSON",
  options: [
    { flags: "--sidecarset <NAME>", about: "only this one" },
    { flags: "--dry-run", about: "write nothing, print what would be done" },
    { flags: "--deadline <DURATION>", about: "how long it may take; default: 55s" },
  ],
  examples: ["sidecarset tick", "sidecarset tick --sidecarset log-agent --dry-run"],
  run: async (input, session) => {
    const deadlineMs = input.durationMs("deadline") ?? 55_000;
    const sidecarSet = input.text("sidecarset");
    const report = await runTick(await session.cluster(), {
      deadlineMs,
      dryRun: input.isSet("dry-run"),
      ...(sidecarSet === undefined ? {} : { sidecarSet }),
    });
    session.screen.text(`${JSON.stringify(report, null, 2)}\n`);
    const trouble = troubleOf(report);
    for (const sentence of trouble) session.screen.warn(sentence);
    return trouble.length > 0 ? 1 : 0;
  },
};
