/** How long tests wait for what is bound to come: machines of a CI are noisy, and what is there sooner costs nothing. */
export const PATIENT = { timeout: 60_000, interval: 50 };
