import { describe, expect, test } from "vitest";
import { podProblem } from "../../../shared/core/injection/admit-pod.ts";
import { parseJson } from "../../../shared/go/json/json-number.ts";
import { decodeGo } from "../../../shared/go/types/decode-go.ts";
import { QUANTITY as QUANTITY_TYPE } from "../../../shared/go/types/go-type.ts";

/** Pods with every field that injection reads; `@` marks the place of its value. */
const TEXTS = [
  ...["name", "generateName", "namespace", "deletionTimestamp"].map((field) => `{"metadata":{"${field}":@}}`),
  ...["labels", "annotations"].map((field) => `{"metadata":{"${field}":{"first":"value","key":@}}}`),
  ...["apiVersion", "kind", "name", "uid"].map((field) => `{"metadata":{"ownerReferences":[{},{"${field}":@}]}}`),
  ...["initContainers", "containers"].flatMap((containers) =>
    [
      ...["name", "image", "restartPolicy"].map((field) => `"${field}":@`),
      ...["name", "value"].map((field) => `"env":[{},{"${field}":@}]`),
      ...["name", "mountPath", "subPathExpr"].map((field) => `"volumeMounts":[{},{"${field}":@}]`),
      ...["name", "devicePath"].map((field) => `"volumeDevices":[{},{"${field}":@}]`),
    ].map((container) => `{"spec":{"${containers}":[{},{${container}}]}}`),
  ),
  ...["volumes", "imagePullSecrets"].map((field) => `{"spec":{"${field}":[{},{"name":@}]}}`),
  '{"spec":{"readinessGates":[{},{"conditionType":@}]}}',
  '{"status":{"phase":@}}',
];
const OBJECTS = [
  "@",
  '{"metadata":@}',
  '{"metadata":{"labels":@}}',
  '{"metadata":{"annotations":@}}',
  '{"metadata":{"ownerReferences":[@]}}',
  '{"spec":@}',
  ...["containers", "initContainers", "volumes", "imagePullSecrets", "readinessGates"].map(
    (field) => `{"spec":{"${field}":[@]}}`,
  ),
  ...["env", "volumeMounts", "volumeDevices"].map((field) => `{"spec":{"containers":[{"${field}":[@]}]}}`),
  '{"spec":{"containers":[{"resources":@}]}}',
  '{"spec":{"containers":[{"resources":{"limits":@}}]}}',
  '{"spec":{"containers":[{"resources":{"requests":@}}]}}',
  '{"status":@}',
];
const LISTS = [
  '{"metadata":{"ownerReferences":@}}',
  ...["containers", "initContainers", "volumes", "imagePullSecrets", "readinessGates"].map(
    (field) => `{"spec":{"${field}":@}}`,
  ),
  ...["env", "volumeMounts", "volumeDevices"].map((field) => `{"spec":{"containers":[{"${field}":@}]}}`),
];
const BOOLEANS = ['{"metadata":{"ownerReferences":[{"controller":@}]}}'];
const QUANTITIES = ["limits", "requests"].map(
  (bound) => `{"spec":{"containers":[{"resources":{"${bound}":{"cpu":"1","memory":@}}}]}}`,
);

/** One value of each kind. The last is a number that JavaScript cannot represent exactly. */
const TEXT = '"text"';
const QUANTITY = '"100m"';
const VALUES = [TEXT, QUANTITY, "true", "1", "[]", "{}", "12345678901234567890"];

const KINDS: readonly [kind: string, places: readonly string[], fitting: readonly string[], wanted: string][] = [
  ["a string", TEXTS, [TEXT, QUANTITY], "must be a string, not "],
  ["an object", OBJECTS, ["{}"], "must be an object, not "],
  ["a list", LISTS, ["[]"], "must be a list, not "],
  ["a boolean", BOOLEANS, ["true"], "must be true or false, not "],
  ["a quantity", QUANTITIES, [QUANTITY, "1", "12345678901234567890"], ""],
];

function problemAt(place: string, value: string): string | undefined {
  return podProblem(parseJson(place.replace("@", value)));
}

describe.each(KINDS)("podProblem for fields with %s:", (_kind, places, fitting, wanted) => {
  test.each(places)("the field @ of the pod %s accepts only values of its type", (place) => {
    for (const value of fitting) expect(problemAt(place, value), value).toBeUndefined();
    for (const value of VALUES.filter((other) => !fitting.includes(other)))
      expect(problemAt(place, value), value).toContain(wanted);
  });

  test.each(places.filter((place) => place !== "@"))(
    "null as the field @ of the pod %s is accepted unless it is an item of a list",
    (place) => {
      const problem = place.includes("[@]") ? "a list holds null where an object is meant" : undefined;
      expect(problemAt(place, "null")).toBe(problem);
    },
  );
});

test.each(["", "m", "k", "Ki", "M", "Mi", "G", "Gi", "T", "Ti", "P", "Pi", "E", "Ei"])(
  "decodeGo and podProblem accept short quantities with the suffix %j",
  (suffix) => {
    for (const digits of ["0", "00", "1", "250", "999999999", "0.5", "1.50", "0.001", "999999999.999"]) {
      const quantity = digits + suffix;
      expect(decodeGo(QUANTITY_TYPE, quantity).kind).toBe("Decoded");
      expect(podProblem({ spec: { containers: [{ resources: { limits: { memory: quantity } } }] } })).toBeUndefined();
    }
  },
);

/** Values for which podProblem decodes the pod, because it cannot judge them quickly. */
test.each([
  '{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e3"}}}],"tolerations":[null]}}',
  '{"spec":{"containers":[{"resources":{"limits":{"cpu":null}}}],"tolerations":[null]}}',
  '{"spec":{"containers":[{"rawJSON":1}],"tolerations":[null]}}',
])("podProblem accepts null in a list that injection does not read: %s", (pod) => {
  expect(podProblem(parseJson(pod))).toBeUndefined();
});
