/** Every command, in the order in which the help tells of them. */
import type { Command } from "./command.ts";
import { COMPILE } from "./compile.ts";
import { DEMO } from "./demo.ts";
import { DIFF } from "./diff.ts";
import { EXPLAIN } from "./explain.ts";
import { PLAN } from "./plan.ts";
import { PREVIEW } from "./preview.ts";
import { REPORT } from "./report.ts";
import { SERVE } from "./serve.ts";
import { TICK } from "./tick.ts";
import { WEBHOOKS } from "./webhooks.ts";

export const COMMANDS: readonly Command[] = [
  PREVIEW,
  DIFF,
  PLAN,
  EXPLAIN,
  REPORT,
  WEBHOOKS,
  COMPILE,
  DEMO,
  SERVE,
  TICK,
];
