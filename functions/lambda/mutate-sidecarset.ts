/** Lambda for defaults and hashes of SidecarSets, and defaults of Advanced StatefulSets. It needs only the review. */
import { mutateSidecarSet } from "../../shared/core/sidecarset/mutate.ts";
import { mutateStatefulSet } from "../../shared/core/statefulset/mutate.ts";
import { readConfig } from "../../shared/settings/config.ts";
import {
  MUTATE_SIDECARSET_PATH,
  MUTATE_STATEFUL_SET_PATH,
  OLDER_MUTATE_SIDECARSET_PATH,
} from "../../shared/webhook/server/paths.ts";
import { lambdaWebhook } from "./http.ts";

export const handler = lambdaWebhook((env) => {
  const { featureGates } = readConfig(env);
  return {
    admissions: {
      [MUTATE_SIDECARSET_PATH]: mutateSidecarSet,
      [OLDER_MUTATE_SIDECARSET_PATH]: mutateSidecarSet,
      [MUTATE_STATEFUL_SET_PATH]: (request) => mutateStatefulSet(request, featureGates),
    },
  };
});
