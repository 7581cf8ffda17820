import { expect, test } from "vitest";
import { StepFailed, throwFailures } from "../../../shared/core/statefulset/step.ts";

const thrown = (...texts: readonly string[]) => {
  try {
    throwFailures(texts.map((text) => new StepFailed(text)));
  } catch (error) {
    return (error as Error).message;
  }
  return "nothing";
};

/** The expected texts have the format of errors.NewAggregate in k8s.io/apimachinery. */
test.each([
  [[], "nothing"],
  [["a"], "a"],
  [["a", "b"], "[a, b]"],
  [["a", "b", "a"], "[a, b]"],
  [["a", "a"], "a"],
])("throwFailures joins the failures %j into the message: %s", (texts, text) => {
  expect(thrown(...texts)).toBe(text);
});
