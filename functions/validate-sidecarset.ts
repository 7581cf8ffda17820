/** Lambda: refuses SidecarSets that are invalid or conflict with others, and admits ContainerRecreateRequests. */
import { readCluster, readConfig } from "../shared/config.ts";
import { connect } from "../shared/kube/connect.ts";
import { clusterView } from "../shared/webhook/cluster-view.ts";
import { containerRecreateAdmission } from "../shared/webhook/container-recreate-admission.ts";
import {
  MUTATE_RECREATE_REQUEST_PATH,
  OLDER_MUTATE_RECREATE_REQUEST_PATH,
  OLDER_VALIDATE_SIDECARSET_PATH,
  VALIDATE_SIDECARSET_PATH,
} from "../shared/webhook/paths.ts";
import { sidecarSetValidation } from "../shared/webhook/sidecarset-validation.ts";
import { lambdaWebhook } from "./lambda-http.ts";

const config = readConfig();
const cluster = readCluster();
// Always anew: conflicts are looked for in what is there now.
const options = { ...config, freshnessMs: 0, connect: () => connect(cluster), now: Date.now };
const view = clusterView(options);
const validate = sidecarSetValidation({ ...config, view });
const recreate = containerRecreateAdmission(options);

export const handler = lambdaWebhook({
  admissions: {
    [VALIDATE_SIDECARSET_PATH]: validate,
    [OLDER_VALIDATE_SIDECARSET_PATH]: validate,
    [MUTATE_RECREATE_REQUEST_PATH]: recreate,
    [OLDER_MUTATE_RECREATE_REQUEST_PATH]: recreate,
  },
  checkReady: view.listSidecarSets,
});
