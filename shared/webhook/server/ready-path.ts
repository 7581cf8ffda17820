/** The path for readiness: the webhooks can read what they need, and decide correctly; no API server asks. */
export const READY_PATH = "/readyz";
