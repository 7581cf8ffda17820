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
    "a selector with an unknown operator is refused",
    { selector: { matchExpressions: [{ key: "a", operator: "Near" }] } },
    [
      'spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
      'spec.selector.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Near"}]}',
    ],
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
  [
    "a selector with the operator In and no values is refused",
    { selector: { matchExpressions: [{ key: "a", operator: "In" }] } },
    [
      "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      'spec.selector.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"In"}]}',
    ],
  ],
  [
    "a selector with the operator Exists and values is refused",
    { selector: { matchExpressions: [{ key: "a", operator: "Exists", values: ["b"] }] } },
    [
      "spec.selector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
      'spec.selector.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}',
    ],
  ],
  [
    "a selector with an invalid key and value in its second requirement is refused",
    {
      selector: {
        matchExpressions: [
          { key: "a", operator: "Exists" },
          { key: "a b", operator: "In", values: ["b", "c d"] },
        ],
      },
    },
    [
      "spec.selector.matchExpressions[1].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.selector.matchExpressions[1].values[1]: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      'spec.selector.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"a b","operator":"In","values":["b","c d"]}]}',
    ],
  ],
  [
    "an empty namespaceSelector is refused",
    { namespaceSelector: {} },
    ["spec.namespaceSelector: Invalid value: {}: empty selector is not valid for sidecarset."],
  ],
];

describe("validation of a selector:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOf(sidecarSet(given))).toEqual(errors);
  });
});
