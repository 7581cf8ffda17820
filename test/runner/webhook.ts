/** Which suite runs which file of the webhook's vectors. */
import type { SuiteTable } from "./suite.ts";

export const webhookSuites: SuiteTable = {};
