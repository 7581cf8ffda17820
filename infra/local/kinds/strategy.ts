/** What differs from kind to kind when an object is written. */

import type { ApiObject } from "../storage/object.ts";
import { CRD_STRATEGY } from "./crd-strategy.ts";
import { CONFIG_STRATEGY, REVISION_STRATEGY, SECRET_STRATEGY } from "./data-strategy.ts";
import type { FieldError } from "./field-error.ts";
import type { Kind } from "./kind.ts";
import { NAMESPACE_STRATEGY } from "./namespace-strategy.ts";
import { POD_STRATEGY } from "./pod-strategy.ts";
import { WEBHOOK_STRATEGY } from "./webhook-strategy.ts";
import { DEPLOYMENT_STRATEGY, REPLICA_SET_STRATEGY, STATEFUL_SET_STRATEGY } from "./workload-strategy.ts";

export interface Strategy {
  /** Fills in defaults; changes the object. */
  default(object: ApiObject): void;
  /** Last touch before a new object is validated; changes the object. */
  prepareCreate(object: ApiObject): void;
  /** Last touch before a change of the object itself is validated; changes the object. */
  prepareUpdate(object: ApiObject): void;
  validate(object: ApiObject): readonly FieldError[];
  validateUpdate(next: ApiObject, previous: ApiObject): readonly FieldError[];
  /** Of what is written to /status. */
  validateStatus(next: ApiObject, previous: ApiObject): readonly FieldError[];
}

const PLAIN: Strategy = {
  default: () => undefined,
  prepareCreate: () => undefined,
  prepareUpdate: () => undefined,
  validate: () => [],
  validateUpdate: () => [],
  validateStatus: () => [],
};

const STRATEGIES: Readonly<Record<string, Partial<Strategy>>> = {
  "/pods": POD_STRATEGY,
  "/namespaces": NAMESPACE_STRATEGY,
  "/configmaps": CONFIG_STRATEGY,
  "/secrets": SECRET_STRATEGY,
  "apps/deployments": DEPLOYMENT_STRATEGY,
  "apps/replicasets": REPLICA_SET_STRATEGY,
  "apps/statefulsets": STATEFUL_SET_STRATEGY,
  "apps/controllerrevisions": REVISION_STRATEGY,
  "admissionregistration.k8s.io/mutatingwebhookconfigurations": WEBHOOK_STRATEGY,
  "admissionregistration.k8s.io/validatingwebhookconfigurations": WEBHOOK_STRATEGY,
  "apiextensions.k8s.io/customresourcedefinitions": CRD_STRATEGY,
};

export function strategyOf(kind: Kind): Strategy {
  return { ...PLAIN, ...STRATEGIES[kind.collection] };
}
