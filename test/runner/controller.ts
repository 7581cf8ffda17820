/** Which suite runs which file of the controller's vectors. */
import type { SuiteTable } from "./suite.ts";

export const controllerSuites: SuiteTable = {};
