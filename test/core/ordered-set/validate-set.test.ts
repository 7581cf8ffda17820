import { expect, test } from "vitest";
import { setErrors } from "../../../shared/core/ordered-set/validate-set.ts";
import { setOf } from "./fixture.ts";

test.each([
  ["Always", []],
  ["", []],
  [undefined, []],
  ["OnFailure", ["spec.template.spec.restartPolicy"]],
])("a template that restarts %j", (restartPolicy, fields) => {
  const containers = [{ name: "main", image: "app:1" }];
  const spec = { containers, ...(restartPolicy === undefined ? {} : { restartPolicy }) };
  const set = setOf({ template: { metadata: { labels: { app: "db" } }, spec } });
  const errors = setErrors(set).filter(({ field }) => field.includes("restartPolicy"));
  expect(errors.map(({ field }) => field)).toEqual(fields);
});

const SECCOMP = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_MAIN = "container.seccomp.security.alpha.kubernetes.io/main";
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
  [`${APP_ARMOR}/other`, "unconfined", [`[${APP_ARMOR}/other]: container not found`]],
  ["example.com/free", "anything", []],
])("a template with the annotation %s: %s", (key, value, problems) => {
  const spec = { containers: [{ name: "main", image: "app:1" }] };
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
])("a set with the metadata %j", (metadata, fields) => {
  const set = setOf();
  const errors = setErrors({ ...set, metadata: { ...set.metadata, ...metadata } });
  expect(errors.map(({ field }) => field).filter((field) => field.startsWith("metadata"))).toEqual(fields);
});
