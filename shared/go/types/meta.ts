/** Go types of meta/v1 in SidecarSets and their objects. Source: k8s.io/apimachinery v0.32, pkg/apis/meta/v1. */
import type { LabelSelector, ObjectMeta } from "../../api/kubernetes.ts";
import { always, BOOLEAN, each, INT64, list, map, optional, pointer, RAW, STRING, struct, TIME } from "./go-type.ts";

export const TYPE_META = each("kind apiVersion", optional(STRING));

const OWNER_REFERENCE = struct({
  ...each("apiVersion kind name uid", always(STRING)),
  ...each("controller blockOwnerDeletion", pointer(BOOLEAN)),
});

const MANAGED_FIELDS_ENTRY = struct({
  ...each("manager operation apiVersion", optional(STRING)),
  time: pointer(TIME),
  fieldsType: optional(STRING),
  fieldsV1: pointer(RAW),
  subresource: optional(STRING),
});

export const OBJECT_META = struct<ObjectMeta>({
  ...each("name generateName namespace selfLink uid resourceVersion", optional(STRING)),
  generation: optional(INT64),
  creationTimestamp: always(TIME),
  deletionTimestamp: pointer(TIME),
  deletionGracePeriodSeconds: pointer(INT64),
  labels: optional(map(STRING)),
  annotations: optional(map(STRING)),
  ownerReferences: optional(list(OWNER_REFERENCE)),
  finalizers: optional(list(STRING)),
  managedFields: optional(list(MANAGED_FIELDS_ENTRY)),
});

const LABEL_SELECTOR_REQUIREMENT = struct({
  key: always(STRING),
  operator: always(STRING),
  values: optional(list(STRING)),
});

export const LABEL_SELECTOR = struct<LabelSelector>({
  matchLabels: optional(map(STRING)),
  matchExpressions: optional(list(LABEL_SELECTOR_REQUIREMENT)),
});
