/** Which suite runs which file of the ordered set's vectors. */
import type { SuiteTable } from "./suite.ts";
import {
  identitySuite,
  ordinalRangeSuite,
  podNameSuite,
  setRevisionSuite,
  updateOrderSuite,
} from "./suites/set-basics.ts";
import { setReconcileSuite } from "./suites/set-reconcile.ts";

export const statefulsetSuites: SuiteTable = {
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
};
