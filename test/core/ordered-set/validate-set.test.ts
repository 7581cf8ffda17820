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
