/** Lambda: defaults and hashes of SidecarSets. Decides from the review alone. */
import { mutateSidecarSet } from "../shared/core/admit-sidecarset.ts";
import { MUTATE_SIDECARSET_PATH, OLDER_MUTATE_SIDECARSET_PATH } from "../shared/webhook/paths.ts";
import { lambdaWebhook } from "./lambda-http.ts";

export const handler = lambdaWebhook({
  admissions: { [MUTATE_SIDECARSET_PATH]: mutateSidecarSet, [OLDER_MUTATE_SIDECARSET_PATH]: mutateSidecarSet },
});
