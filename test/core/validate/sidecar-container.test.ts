import { describe, expect, it } from "vitest";
import { container, errorsOf, sidecarSet } from "./fixture.ts";

const rows: readonly (readonly [
  sentence: string,
  given: Readonly<Record<string, unknown>>,
  errors: readonly string[],
])[] = [
  [
    "a sidecar with an unknown podInjectPolicy and an unknown shareVolumePolicy is refused",
    { podInjectPolicy: "x", shareVolumePolicy: { type: "x" } },
    [
      'spec.container.podInjectPolicy: Invalid value: "x": unsupported pod inject policy',
      'spec.container.shareVolumePolicy: Invalid value: {"type":"x"}: unsupported share volume policy',
    ],
  ],

  [
    "a transferEnv with an invalid label key and an invalid annotation key is refused",
    {
      transferEnv: [
        { sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['A!']" } } },
        { sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['A!']" } } },
      ],
    },
    [
      "spec[0].transferEnv.fieldRef: Invalid value: \"A!\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec[0].transferEnv.fieldRef: Invalid value: \"A!\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "a transferEnv key with a prefix in capitals is refused for a label, but not for an annotation",
    {
      transferEnv: [
        { sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['EXAMPLE.com/a']" } } },
        {
          sourceContainerNameFrom: {
            fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['EXAMPLE.com/a']" },
          },
        },
      ],
    },
    [
      "spec[0].transferEnv.fieldRef: Invalid value: \"EXAMPLE.com/a\": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a transferEnv with an unsupported apiVersion is refused",
    {
      transferEnv: [{ sourceContainerNameFrom: { fieldRef: { apiVersion: "v2", fieldPath: "metadata.labels['a']" } } }],
    },
    [
      "spec[0].transferEnv.fieldRef.fieldPath: Invalid value: \"metadata.labels['a']\": error converting fieldPath: unsupported pod version: v2",
    ],
  ],

  [
    "a transferEnv without a fieldPath is refused",
    { transferEnv: [{ sourceContainerNameFrom: { fieldRef: { apiVersion: "v1" } } }] },
    ["spec[0].transferEnv.fieldRef.fieldPath: Required value"],
  ],
  [
    "a transferEnv with a key of an unsupported field is refused",
    { transferEnv: [{ sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.x['a']" } } }] },
    [
      "spec[0].transferEnv.fieldRef.fieldPath: Invalid value: \"spec.x['a']\": error converting fieldPath: field path not supported: spec.x",
    ],
  ],

  [
    "an empty resourcesPolicy is refused",
    { resourcesPolicy: {} },
    [
      "spec[0].resourcesPolicy.targetContainersNameRegex: Required value: invalid empty regex",
      "spec[0].resourcesPolicy.resourcesExpr: Invalid value: {}: at least one of limits or requests must be configured",
    ],
  ],
  [
    "a resourcesPolicy with invalid expressions is refused",
    {
      resourcesPolicy: {
        targetContainersMode: "sum",
        targetContainersNameRegex: ".*",
        resourcesExpr: { limits: { cpu: "memory", memory: "1+" }, requests: { memory: "cpu" } },
      },
    },
    [
      'spec[0].resourcesPolicy.resourcesExpr.limits.cpu: Invalid value: "memory": invalid expression: undefined variable: memory',
      'spec[0].resourcesPolicy.resourcesExpr.limits.memory: Invalid value: "1+": invalid expression: parse error: syntax error at line 1, col 3',
      'spec[0].resourcesPolicy.resourcesExpr.requests.memory: Invalid value: "cpu": invalid expression: undefined variable: cpu',
    ],
  ],
];

describe("validation of a sidecar container:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOf(sidecarSet({ containers: [container(given)] }))).toEqual(errors);
  });
});
