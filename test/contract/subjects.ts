/** All subjects of the contract. */
import { ADMISSION_CASES } from "./admission.ts";
import { ADMISSION_FAILURE_CASES } from "./admission-failures.ts";
import { CALL_CONDITION_CASES } from "./call-conditions.ts";
import type { ContractCase } from "./contract.ts";
import { CONVERSION_CASES } from "./conversion.ts";
import { CUSTOM_CASES, SCHEMA_CASES } from "./custom-resources.ts";
import { PAGE_CASES, SELECTOR_CASES } from "./lists.ts";
import { CREATE_CASES, DELETE_CASES, READ_CASES, REPLACE_CASES } from "./objects.ts";
import { JSON_PATCH_CASES, MERGE_PATCH_CASES, STRATEGIC_PATCH_CASES } from "./patches.ts";
import { POD_RESIZE_CASES } from "./pod-resize.ts";
import { POD_CASES } from "./pods.ts";
import { RUNNING_POD_CASES } from "./running-pods.ts";
import { WATCH_CASES } from "./watches.ts";

export const SUBJECTS: Readonly<Record<string, readonly ContractCase[]>> = {
  create: CREATE_CASES,
  read: READ_CASES,
  replace: REPLACE_CASES,
  delete: DELETE_CASES,
  "JSON patch": JSON_PATCH_CASES,
  "merge patch": MERGE_PATCH_CASES,
  "strategic merge patch": STRATEGIC_PATCH_CASES,
  pages: PAGE_CASES,
  selectors: SELECTOR_CASES,
  watch: WATCH_CASES,
  pods: POD_CASES,
  "pods/resize": POD_RESIZE_CASES,
  "running pods": RUNNING_POD_CASES,
  "custom resource schemas": SCHEMA_CASES,
  "custom resources": CUSTOM_CASES,
  conversion: CONVERSION_CASES,
  admission: [...ADMISSION_CASES, ...CALL_CONDITION_CASES],
  "admission that fails": ADMISSION_FAILURE_CASES,
};
