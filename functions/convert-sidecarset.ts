/** Lambda: SidecarSets from one API version to the other. Decides from the review alone. */

import { readConfig } from "../shared/config.ts";
import { createLog } from "../shared/log.ts";
import { webhookApp } from "../shared/webhook/app.ts";
import { CONVERT_PATH } from "../shared/webhook/paths.ts";
import { convertSidecarSets } from "../shared/webhook/sidecarset-conversion.ts";
import { handle } from "./lambda-http.ts";

const app = webhookApp({
  log: createLog(readConfig().logLevel),
  conversions: { [CONVERT_PATH]: convertSidecarSets },
});

export const handler = handle(app);
