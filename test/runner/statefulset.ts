/** Which suite runs which file of the ordered set's vectors. */
import type { SuiteTable } from "./suite.ts";

export const statefulsetSuites: SuiteTable = {};
