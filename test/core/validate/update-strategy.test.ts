import { describe, expect, it } from "vitest";
import { errorsOf, sidecarSet } from "./fixture.ts";

type Fields = Readonly<Record<string, unknown>>;

const matchSelector = { matchLabels: { a: "b" } };
const weights = (...weightPriority: readonly Fields[]): Fields => ({ priorityStrategy: { weightPriority } });
/** Returns a weight whose selector has the given requirements. */
const requiring = (...matchExpressions: readonly Fields[]): Fields =>
  weights({ weight: 1, matchSelector: { matchExpressions } });

const rows: readonly (readonly [sentence: string, given: Fields, errors: readonly string[]])[] = [
  [
    "an update strategy with a partition of 1 and a selector is refused",
    {
      partition: 1,
      paused: true,
      maxUnavailable: "10%",
      selector: {
        matchLabels: { b: "2", a: "1" },
        matchExpressions: [
          { key: "c", operator: "In", values: ["3", "4"] },
          { key: "d", operator: "Exists" },
        ],
      },
      priorityStrategy: { orderPriority: [{ orderedKey: "o" }] },
      scatterStrategy: [
        { key: "k", value: "v" },
        { key: "l", value: "w" },
      ],
    },
    [
      'updateStrategy: Invalid value: "&{Type:RollingUpdate Paused:true Selector:&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:c,Operator:In,Values:[3 4],},LabelSelectorRequirement{Key:d,Operator:Exists,Values:[],},},} Partition:1 MaxUnavailable:10% PriorityStrategy:0xPTR ScatterStrategy:[{Key:k Value:v} {Key:l Value:w}]}": Partition and Selector cannot be used together',
    ],
  ],

  [
    "a maxUnavailable below 0 is refused",
    { maxUnavailable: -1 },
    ["spec.updateStrategy.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"],
  ],
  [
    "an empty selector of an update strategy is refused",
    { selector: {} },
    ["spec.updateStrategy.selector: Invalid value: {}: empty selector is not valid for sidecarset."],
  ],
  ["a weight of 0 is accepted", weights({ weight: 0, matchSelector }), []],
  ["a weight of 100 is accepted", weights({ weight: 100, matchSelector }), []],

  [
    "a weight below 0 is refused",
    weights({ weight: -1, matchSelector }),
    ["spec.updateStrategy.priorityStrategy: Required value: weight must be valid number in the range 1-100"],
  ],

  [
    "a second weight without a selector is refused",
    weights({ weight: 1, matchSelector }, { weight: 1 }),
    ["spec.updateStrategy.priorityStrategy: Required value: selector can not be empty"],
  ],
  [
    "a weight with a selector that uses every operator is accepted",
    requiring(
      { key: "a", operator: "In", values: ["b"] },
      { key: "a", operator: "NotIn", values: ["b"] },
      { key: "a", operator: "Exists" },
      { key: "a", operator: "DoesNotExist" },
    ),
    [],
  ],

  [
    "a weight with the operator Exists and values is refused",
    requiring({ key: "a", operator: "Exists", values: ["b", "c"] }),
    [
      'spec.updateStrategy.priorityStrategy: Required value: invalid selector values: Invalid value: []string{"b", "c"}: values set must be empty for exists and does not exist',
    ],
  ],

  [
    "a weight with an empty label key is refused",
    requiring({ key: "", operator: "Exists" }),
    [
      "spec.updateStrategy.priorityStrategy: Required value: invalid selector key: Invalid value: \"\": name part must be non-empty; name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],

  [
    "a weight with an invalid label key and invalid label values is refused",
    requiring({
      key: "a b",
      operator: "In",
      values: ["c d", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!"],
    }),
    [
      "spec.updateStrategy.priorityStrategy: Required value: invalid selector [key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), values[0][a b]: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'), values[1][a b]: Invalid value: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!\": must be no more than 63 characters; a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]",
    ],
  ],
  [
    "a weight with an unknown operator in its second requirement is refused",
    requiring({ key: "a", operator: "Exists" }, { key: "a", operator: "Near" }),
    [
      'spec.updateStrategy.priorityStrategy: Required value: invalid selector "Near" is not a valid label selector operator',
    ],
  ],

  [
    "a scatterStrategy with the same key twice and no value is refused",
    { scatterStrategy: [{ key: "a" }, { key: "a" }] },
    ["spec.updateStrategy.scatterStrategy: Required value: duplicated key=a value="],
  ],
  [
    "a scatterStrategy without a key is refused",
    { scatterStrategy: [{ value: "b" }] },
    ["spec.updateStrategy.scatterStrategy: Required value: key should not be empty"],
  ],
];

describe("validation of an update strategy:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOf(sidecarSet({ updateStrategy: { type: "RollingUpdate", ...given } }))).toEqual(errors);
  });
});
