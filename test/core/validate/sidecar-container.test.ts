import { describe, expect, it } from "vitest";
import { container, errorsOf, sidecarSet } from "./fixture.ts";

const rows: readonly (readonly [
  sentence: string,
  given: Readonly<Record<string, unknown>>,
  errors: readonly string[],
])[] = [
  [
    "after the containers of the pod, sharing volumes",
    { podInjectPolicy: "AfterAppContainer", shareVolumePolicy: { type: "enabled" } },
    [],
  ],
  [
    "of unknown policies",
    { podInjectPolicy: "x", shareVolumePolicy: { type: "x" } },
    [
      'spec.container.podInjectPolicy: Invalid value: "x": unsupported pod inject policy',
      'spec.container.shareVolumePolicy: Invalid value: {"type":"x"}: unsupported share volume policy',
    ],
  ],
  [
    "of no policy",
    { podInjectPolicy: "" },
    ['spec.container.podInjectPolicy: Invalid value: "": unsupported pod inject policy'],
  ],
  [
    "sharing volumes in no way",
    { shareVolumePolicy: {} },
    ["spec.container.shareVolumePolicy: Invalid value: {}: unsupported share volume policy"],
  ],
  ["with variables from a container by its name", { transferEnv: [{ sourceContainerName: "main", envName: "A" }] }, []],
  [
    "with variables from a container by a label and an annotation",
    {
      transferEnv: [
        { sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['a']" } } },
        { sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['A']" } } },
      ],
    },
    [],
  ],
  [
    "with variables from a container by a label and an annotation that are none",
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
    "with variables from a container by names whose prefix is in capitals",
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
    "with variables from a container by a field of another version",
    {
      transferEnv: [{ sourceContainerNameFrom: { fieldRef: { apiVersion: "v2", fieldPath: "metadata.labels['a']" } } }],
    },
    [
      "spec[0].transferEnv.fieldRef.fieldPath: Invalid value: \"metadata.labels['a']\": error converting fieldPath: unsupported pod version: v2",
    ],
  ],
  [
    "with variables from a container by a field of no version",
    { transferEnv: [{ sourceContainerNameFrom: { fieldRef: { fieldPath: "metadata.labels['a']" } } }] },
    ["spec[0].transferEnv.fieldRef.apiVersion: Required value"],
  ],
  [
    "with variables from a container by no field",
    { transferEnv: [{ sourceContainerNameFrom: { fieldRef: { apiVersion: "v1" } } }] },
    ["spec[0].transferEnv.fieldRef.fieldPath: Required value"],
  ],
  [
    "with variables from a container by a subscript of another field",
    { transferEnv: [{ sourceContainerNameFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.x['a']" } } }] },
    [
      "spec[0].transferEnv.fieldRef.fieldPath: Invalid value: \"spec.x['a']\": error converting fieldPath: field path not supported: spec.x",
    ],
  ],
  [
    "with limits of its own and a policy",
    {
      resources: { limits: { cpu: "1" } },
      resourcesPolicy: {
        targetContainersMode: "sum",
        targetContainersNameRegex: ".*",
        resourcesExpr: { limits: { cpu: "cpu" } },
      },
    },
    [
      'spec[0].resourcesPolicy: Invalid value: {"targetContainersMode":"sum","targetContainersNameRegex":".*","resourcesExpr":{"limits":{"cpu":"cpu"}}}: resourcesPolicy and resources cannot be configured together',
    ],
  ],
  [
    "with requests of its own and a policy",
    {
      resources: { limits: {}, requests: { cpu: "1" } },
      resourcesPolicy: {
        targetContainersMode: "sum",
        targetContainersNameRegex: ".*",
        resourcesExpr: { limits: { cpu: "cpu" } },
      },
    },
    [
      'spec[0].resourcesPolicy: Invalid value: {"targetContainersMode":"sum","targetContainersNameRegex":".*","resourcesExpr":{"limits":{"cpu":"cpu"}}}: resourcesPolicy and resources cannot be configured together',
    ],
  ],
  [
    "with empty resources and a policy",
    {
      resources: { limits: {}, requests: {} },
      resourcesPolicy: {
        targetContainersMode: "sum",
        targetContainersNameRegex: ".*",
        resourcesExpr: { requests: { memory: "memory" } },
      },
    },
    [],
  ],
  [
    "with a policy that says nothing",
    { resourcesPolicy: {} },
    [
      "spec[0].resourcesPolicy.targetContainersNameRegex: Required value: invalid empty regex",
      "spec[0].resourcesPolicy.resourcesExpr: Invalid value: {}: at least one of limits or requests must be configured",
    ],
  ],
  [
    "with a policy of no bounds",
    { resourcesPolicy: { targetContainersMode: "sum", targetContainersNameRegex: ".*", resourcesExpr: {} } },
    ["spec[0].resourcesPolicy.resourcesExpr: Invalid value: {}: at least one of limits or requests must be configured"],
  ],
  [
    "with a policy of expressions that are none",
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

describe("a sidecar", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOf(sidecarSet({ containers: [container(given)] }))).toEqual(errors);
  });
});
