/** Which suite runs which file of the webhook's vectors. */
import type { SuiteTable } from "./suite.ts";
import { controllerRevisionSuite } from "./suites/controllerrevision.ts";
import { helpersSuite } from "./suites/helpers.ts";
import { revisionSequenceSuite } from "./suites/revision-sequence.ts";
import { sidecarSetConversionSuite } from "./suites/sidecarset-conversion.ts";
import { sidecarSetDefaultAndHashSuite } from "./suites/sidecarset-default-and-hash.ts";
import { sidecarSetValidateSuite } from "./suites/sidecarset-validate.ts";

export const webhookSuites: SuiteTable = {
  controllerrevision: controllerRevisionSuite,
  "controllerrevision-sequences": revisionSequenceSuite,
  helpers: helpersSuite,
  "sidecarset-conversion": sidecarSetConversionSuite,
  "sidecarset-default-and-hash": sidecarSetDefaultAndHashSuite,
  "sidecarset-validate": sidecarSetValidateSuite,
};
