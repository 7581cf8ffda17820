/** The suites of the ordered set's vectors, by file. */
import type { SuiteTable } from "./suite.ts";
import { setDefaultsSuite, setValidateSuite } from "./suites/set-admission.ts";
import {
  identitySuite,
  ordinalRangeSuite,
  podNameSuite,
  setRevisionSuite,
  updateOrderSuite,
} from "./suites/set-basics.ts";
import { setReconcileSuite } from "./suites/set-reconcile.ts";

export const statefulsetSuites: SuiteTable = {
  defaults: setDefaultsSuite,
  identity: identitySuite,
  "ordinal-range": ordinalRangeSuite,
  "pod-names": podNameSuite,
  "reconcile-adopt": setReconcileSuite,
  "reconcile-inplace": setReconcileSuite,
  "reconcile-lifecycle": setReconcileSuite,
  "reconcile-ordinals": setReconcileSuite,
  "reconcile-pvc": setReconcileSuite,
  "reconcile-random": setReconcileSuite,
  "reconcile-scale": setReconcileSuite,
  "reconcile-update": setReconcileSuite,
  revision: setRevisionSuite,
  "update-order": updateOrderSuite,
  validate: setValidateSuite,
};
