import { expect, test } from "vitest";
import { setErrors } from "../../../shared/core/statefulset/admission/validate-set.ts";
import { setOf } from "./fixture.ts";

test.each([
  ["Always", []],
  ["", []],
  [undefined, []],
  ["OnFailure", ["spec.template.spec.restartPolicy"]],
])("setErrors checks a template with the restartPolicy %j", (restartPolicy, fields) => {
  const containers = [{ name: "main", image: "app:1" }];
  const spec = { containers, ...(restartPolicy === undefined ? {} : { restartPolicy }) };
  const set = setOf({ template: { metadata: { labels: { app: "db" } }, spec } });
  const errors = setErrors(set).filter(({ field }) => field.includes("restartPolicy"));
  expect(errors.map(({ field }) => field)).toEqual(fields);
});

const SECCOMP = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_MAIN = "container.seccomp.security.alpha.kubernetes.io/main";
const TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations";
const APP_ARMOR = "container.apparmor.security.beta.kubernetes.io";

test.each([
  ["kubernetes.io/config.mirror", "x", ["[kubernetes.io/config.mirror]: must set spec.nodeName if mirror pod"]],
  [SECCOMP, "runtime/default", []],
  [SECCOMP, "localhost/profile", []],
  [SECCOMP, "localhost//profile", [`.${SECCOMP}: must be a relative path`]],
  [SECCOMP_MAIN, "localhost/../profile", [`.${SECCOMP_MAIN}: must not contain '..'`]],
  [SECCOMP_MAIN, "none", [`.${SECCOMP_MAIN}: must be a valid seccomp profile`]],
  [`${APP_ARMOR}/main`, "localhost/profile", []],
  [`${APP_ARMOR}/main`, "none", [`[${APP_ARMOR}/main]: invalid AppArmor profile name: "none"`]],
  [`${APP_ARMOR}/debug`, "unconfined", []],
  [`${APP_ARMOR}/other`, "unconfined", [`[${APP_ARMOR}/other]: container not found`]],
  ["controller.kubernetes.io/pod-deletion-cost", "much", []],
  [TOLERATIONS, "", []],
  [TOLERATIONS, "null", []],
  [TOLERATIONS, '[{"Key":"a","effect":"NoExecute","tolerationSeconds":1},{"operator":"Exists"}]', []],
  [TOLERATIONS, "{}", [": json: cannot unmarshal object into Go value of type []core.Toleration"]],
  [TOLERATIONS, "x", [": is no JSON"]],
  [TOLERATIONS, '[{"key":1}]', [": has what is no toleration"]],
  [TOLERATIONS, '[{"key":"a b"}]', [`.${TOLERATIONS}[0].key: name part must consist`]],
  [
    TOLERATIONS,
    '[{"value":"a b"}]',
    [`.${TOLERATIONS}[0].operator: operator must be Exists`, `.${TOLERATIONS}[0].operator: a valid label must be`],
  ],
  [
    TOLERATIONS,
    '[{"operator":"Exists","value":"v","effect":"X","tolerationSeconds":3}]',
    [
      `.${TOLERATIONS}[0].effect: effect must be 'NoExecute'`,
      `.${TOLERATIONS}[0].operator: value must be empty`,
      `.${TOLERATIONS}[0].effect: supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
    ],
  ],
  [TOLERATIONS, '[{"key":"a","operator":"In"}]', [`.${TOLERATIONS}[0].operator: supported values: "Equal", "Exists"`]],
  ["example.com/free", "anything", []],
])("setErrors checks a template with the annotation %s: %s", (key, value, problems) => {
  const spec = { containers: [{ name: "main", image: "app:1" }], ephemeralContainers: [{ name: "debug" }] };
  const set = setOf({ template: { metadata: { labels: { app: "db" }, annotations: { [key]: value } }, spec } });
  const errors = setErrors(set).filter(({ field }) => field.startsWith("spec.template.annotations"));
  const found = errors.map(({ field, detail }) => `${field.slice("spec.template.annotations".length)}: ${detail}`);
  expect(found).toEqual(problems.map((problem) => expect.stringContaining(problem)));
});

test.each([
  [{}, []],
  [{ generateName: "db-" }, []],
  [{ generateName: "DB-" }, ["metadata.generateName"]],
  [{ generateName: "db_" }, ["metadata.generateName"]],
  [{ namespace: "" }, ["metadata.namespace"]],
  [{ namespace: "Shop.a" }, ["metadata.namespace"]],
  [{ finalizers: ["orphan", "kubernetes", "example.com/hold"] }, []],
  [{ finalizers: ["hold"] }, ["metadata.finalizers[0]"]],
])("setErrors checks a set with the metadata %j", (metadata, fields) => {
  const set = setOf();
  const errors = setErrors({ ...set, metadata: { ...set.metadata, ...metadata } });
  expect(errors.map(({ field }) => field).filter((field) => field.startsWith("metadata"))).toEqual(fields);
});
