/** The suites of the controller's vectors, by file. */
import type { SuiteTable } from "./suite.ts";
import { containerRecreateRequestSuite } from "./suites/container-recreate-request.ts";
import { daemonStatesSuite } from "./suites/container-recreate-request-daemon-states.ts";
import { containerRecreateRequestWebhookSuite } from "./suites/container-recreate-request-webhook.ts";
import { inPlaceUpdateSuite } from "./suites/inplace-update.ts";
import { launchPrioritySuite } from "./suites/launch-priority.ts";
import { podUpdateSuite } from "./suites/pod-update.ts";
import { reconcileSuite } from "./suites/reconcile.ts";
import { revisionSuite } from "./suites/revision.ts";
import { sidecarTerminatorSuite } from "./suites/sidecar-terminator.ts";
import { statusSuite } from "./suites/status.ts";
import { upgradeSelectSuite } from "./suites/upgrade-select.ts";

export const controllerSuites: SuiteTable = {
  "container-recreate-request": containerRecreateRequestSuite,
  "container-recreate-request-daemon-states": daemonStatesSuite,
  "container-recreate-request-webhook": containerRecreateRequestWebhookSuite,
  "hot-upgrade": reconcileSuite,
  "inplace-update": inPlaceUpdateSuite,
  "launch-priority": launchPrioritySuite,
  "pod-update": podUpdateSuite,
  reconcile: reconcileSuite,
  revision: revisionSuite,
  "sidecar-terminator": sidecarTerminatorSuite,
  status: statusSuite,
  "upgrade-select": upgradeSelectSuite,
  "upgrade-select-big": upgradeSelectSuite,
  "upgrade-select-ties": upgradeSelectSuite,
};
