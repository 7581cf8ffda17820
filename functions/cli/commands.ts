/** Every command, in the order in which the help tells of them. */
import type { Command } from "./command.ts";
import { DEMO } from "./demo.ts";
import { REPORT } from "./report.ts";
import { SERVE } from "./serve.ts";
import { TICK } from "./tick.ts";
import { WEBHOOKS } from "./webhooks.ts";

export const COMMANDS: readonly Command[] = [REPORT, WEBHOOKS, DEMO, SERVE, TICK];
