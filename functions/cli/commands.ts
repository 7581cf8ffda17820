/** Every command, in the order in which the help tells of them. */
import type { Command } from "./command.ts";
import { DEMO } from "./demo.ts";
import { SERVE } from "./serve.ts";
import { TICK } from "./tick.ts";
import { WEBHOOKS } from "./webhooks.ts";

export const COMMANDS: readonly Command[] = [WEBHOOKS, DEMO, SERVE, TICK];
