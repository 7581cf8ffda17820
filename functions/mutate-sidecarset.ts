/** Lambda: defaults and hashes of SidecarSets. Decides from the review alone. */

import { readConfig } from "../shared/config.ts";
import { mutateSidecarSet } from "../shared/core/admit-sidecarset.ts";
import { createLog } from "../shared/log.ts";
import { webhookApp } from "../shared/webhook/app.ts";
import { MUTATE_SIDECARSET_PATH, OLDER_MUTATE_SIDECARSET_PATH } from "../shared/webhook/paths.ts";
import { handle } from "./lambda-http.ts";

const app = webhookApp({
  log: createLog(readConfig().logLevel),
  admissions: { [MUTATE_SIDECARSET_PATH]: mutateSidecarSet, [OLDER_MUTATE_SIDECARSET_PATH]: mutateSidecarSet },
});

export const handler = handle(app);
