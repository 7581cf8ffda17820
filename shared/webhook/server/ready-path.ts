/** Whether what the webhooks need can be read, and this build decides; no API server asks. */
export const READY_PATH = "/readyz";
