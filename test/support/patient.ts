/**
 * The longest wait of tests for an event that must come. Machines of a CI are slow at times, and early events cost
 * nothing.
 */
export const PATIENT = { timeout: 60_000, interval: 50 };
