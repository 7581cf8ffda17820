/** Every command, in the order of the help. */

import type { Command } from "../command.ts";
import { PATH_SECRETS } from "../input/path-secrets.ts";
import { CHECK } from "./check.ts";
import { COMPILE } from "./compile.ts";
import { COMPLETION, completeWords } from "./completion.ts";
import { DEMO } from "./demo.ts";
import { DIFF } from "./diff.ts";
import { EXPLAIN } from "./explain.ts";
import { FLEET_APPLY, FLEET_STATUS, FLEET_UNDO } from "./fleet.ts";
import { INSTALL, UNINSTALL } from "./install.ts";
import { LINT } from "./lint.ts";
import { mcpCommand } from "./mcp.ts";
import { FROM_KRUISE, TO_KRUISE } from "./migrate.ts";
import { PLAN } from "./plan.ts";
import { PODS_COMMAND } from "./pods.ts";
import { PREVIEW } from "./preview.ts";
import { REPORT } from "./report.ts";
import { SERVE } from "./serve.ts";
import { CANARY, SET_IMAGE } from "./set-image.ts";
import { PAUSE, PROMOTE, RESUME, SET_MAX_UNAVAILABLE, SET_PARTITION } from "./set-strategy.ts";
import { STATUS } from "./status.ts";
import { TICK } from "./tick.ts";
import { ABORT, HISTORY, UNDO } from "./undo.ts";
import { VERSION } from "./version.ts";
import { WEBHOOKS } from "./webhooks.ts";

export const COMMANDS: readonly Command[] = [
  LINT,
  PREVIEW,
  DIFF,
  PLAN,
  EXPLAIN,
  STATUS,
  PODS_COMMAND,
  PAUSE,
  RESUME,
  PROMOTE,
  ABORT,
  UNDO,
  HISTORY,
  SET_IMAGE,
  CANARY,
  SET_PARTITION,
  SET_MAX_UNAVAILABLE,
  FLEET_APPLY,
  FLEET_STATUS,
  FLEET_UNDO,
  REPORT,
  CHECK,
  INSTALL,
  UNINSTALL,
  WEBHOOKS,
  PATH_SECRETS,
  FROM_KRUISE,
  TO_KRUISE,
  COMPLETION,
  COMPILE,
  VERSION,
  DEMO,
  SERVE,
  TICK,
  mcpCommand(() => COMMANDS),
  completeWords(() => COMMANDS),
];
