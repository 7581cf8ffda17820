import { describe, expect, it } from "vitest";
import { errorsOf, sidecarSet } from "./fixture.ts";

const rows: readonly (readonly [
  sentence: string,
  given: Readonly<Record<string, unknown>>,
  errors: readonly string[],
])[] = [
  [
    "a selector with every operator is accepted",
    {
      selector: {
        matchLabels: { a: "b" },
        matchExpressions: [
          { key: "a", operator: "In", values: ["b"] },
          { key: "a", operator: "NotIn", values: ["b"] },
          { key: "a", operator: "Exists" },
          { key: "a", operator: "DoesNotExist" },
        ],
      },
    },
    [],
  ],

  [
    "a selector with an empty requirement is refused",
    { selector: { matchExpressions: [{}] } },
    [
      'spec.selector.matchExpressions[0].operator: Invalid value: "": not a valid selector operator',
      'spec.selector.matchExpressions[0].key: Invalid value: "": name part must be non-empty',
      "spec.selector.matchExpressions[0].key: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.selector.selector: Invalid value: {"matchExpressions":[{}]}',
    ],
  ],
];

describe("validation of a selector:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOf(sidecarSet(given))).toEqual(errors);
  });
});
