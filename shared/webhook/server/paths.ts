/** The paths that API servers call, as OpenKruise registers them: a configuration made for it keeps working. */

export const MUTATE_POD_PATH = "/mutate-pod";
export const MUTATE_SIDECARSET_PATH = "/mutate-apps-kruise-io-sidecarset";
export const VALIDATE_SIDECARSET_PATH = "/validate-apps-kruise-io-sidecarset";
export const MUTATE_RECREATE_REQUEST_PATH = "/mutate-apps-kruise-io-containerrecreaterequest";
export const MUTATE_STATEFUL_SET_PATH = "/mutate-apps-kruise-io-statefulset";
export const VALIDATE_STATEFUL_SET_PATH = "/validate-apps-kruise-io-statefulset";
/** ours: pods that turn ready, or fail, where that is registered */
export const POD_STATUS_PATH = "/hint-pod-status";
export const CONVERT_PATH = "/convert";

/** Paths that releases before v1beta1 registered. */
export const OLDER_MUTATE_SIDECARSET_PATH = "/mutate-apps-kruise-io-v1alpha1-sidecarset";
export const OLDER_MUTATE_RECREATE_REQUEST_PATH = "/mutate-apps-kruise-io-v1alpha1-containerrecreaterequest";
export const OLDER_VALIDATE_SIDECARSET_PATH = "/validate-apps-kruise-io-v1alpha1-sidecarset";

/** The path under which a caller who knows the secret is answered. */
export function secretPath(secret: string, path: string): string {
  return `/s/${secret}${path}`;
}
