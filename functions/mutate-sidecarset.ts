/** Lambda: defaults and hashes of SidecarSets, and defaults of ordered sets. Decides from the review alone. */
import { readConfig } from "../shared/config.ts";
import { mutateSidecarSet } from "../shared/core/admit-sidecarset.ts";
import { mutateStatefulSet } from "../shared/core/admit-stateful-set.ts";
import {
  MUTATE_SIDECARSET_PATH,
  MUTATE_STATEFUL_SET_PATH,
  OLDER_MUTATE_SIDECARSET_PATH,
} from "../shared/webhook/paths.ts";
import { lambdaWebhook } from "./lambda-http.ts";

const { featureGates } = readConfig();

export const handler = lambdaWebhook({
  admissions: {
    [MUTATE_SIDECARSET_PATH]: mutateSidecarSet,
    [OLDER_MUTATE_SIDECARSET_PATH]: mutateSidecarSet,
    [MUTATE_STATEFUL_SET_PATH]: (request) => mutateStatefulSet(request, featureGates),
  },
});
