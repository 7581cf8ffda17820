/** The suites of the webhook's vectors, by file. */
import type { SuiteTable } from "./suite.ts";
import { controllerRevisionSuite } from "./suites/controllerrevision.ts";
import { helpersSuite } from "./suites/helpers.ts";
import { matchSuite } from "./suites/match.ts";
import { podHandleSuite } from "./suites/pod-handle.ts";
import { podInjectSuite } from "./suites/pod-inject.ts";
import { revisionSequenceSuite } from "./suites/revision-sequence.ts";
import { sidecarSetConversionSuite } from "./suites/sidecarset-conversion.ts";
import { sidecarSetDefaultAndHashSuite } from "./suites/sidecarset-default-and-hash.ts";
import { sidecarSetValidateSuite } from "./suites/sidecarset-validate.ts";

export const webhookSuites: SuiteTable = {
  "launch-priority": podInjectSuite,
  match: matchSuite,
  "pod-handle-jsonpatch": podHandleSuite,
  "pod-inject-basic": podInjectSuite,
  "pod-inject-canary": podInjectSuite,
  "pod-inject-hotupgrade": podInjectSuite,
  "pod-inject-metadata": podInjectSuite,
  "pod-inject-random": podInjectSuite,
  "pod-inject-resources": podInjectSuite,
  "pod-inject-revision": podInjectSuite,
  "pod-inject-transferenv": podInjectSuite,
  "pod-inject-update": podInjectSuite,
  "pod-inject-volumes": podInjectSuite,
  controllerrevision: controllerRevisionSuite,
  "controllerrevision-sequences": revisionSequenceSuite,
  helpers: helpersSuite,
  "sidecarset-conversion": sidecarSetConversionSuite,
  "sidecarset-default-and-hash": sidecarSetDefaultAndHashSuite,
  "sidecarset-validate": sidecarSetValidateSuite,
};
