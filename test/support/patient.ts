/** The longest wait of tests for an event that must come: machines of a CI are noisy, and early events cost nothing. */
export const PATIENT = { timeout: 60_000, interval: 50 };
