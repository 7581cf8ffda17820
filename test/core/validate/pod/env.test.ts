import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  ["a variable without a name", { env: [{ value: "x" }] }, ["container.env[0].name: Required value"]],
  [
    "a variable by a name that is none",
    { env: [{ name: "A B" }, { name: "1A" }] },
    [
      "container.env[0].name: Invalid value: \"A B\": a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')",
      "container.env[1].name: Invalid value: \"1A\": a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')",
    ],
  ],
  [
    "a variable by a name of dots",
    { env: [{ name: ".." }] },
    ["container.env[0].name: Invalid value: \"..\": must not be '..'"],
  ],
  [
    "a variable from nowhere",
    { env: [{ name: "A", valueFrom: {} }] },
    [
      'container.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
    ],
  ],
  [
    "a variable with a value and from nowhere",
    { env: [{ name: "A", value: "x", valueFrom: {} }] },
    [
      'container.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
    ],
  ],
  [
    "a variable from two places",
    {
      env: [
        { name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" }, configMapKeyRef: { name: "c", key: "k" } } },
      ],
    },
    ['container.env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time'],
  ],
  [
    "a variable from four places",
    {
      env: [
        {
          name: "A",
          valueFrom: {
            fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" },
            resourceFieldRef: { resource: "limits.cpu" },
            secretKeyRef: { name: "s", key: "k" },
            configMapKeyRef: { name: "c", key: "k" },
          },
        },
      ],
    },
    ['container.env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time'],
  ],
  ["a variable from a secret", { env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }] }, []],
  [
    "a variable from a secret that is not named",
    { env: [{ name: "A", valueFrom: { secretKeyRef: {} } }] },
    [
      "container.env[0].valueFrom.secretKeyRef.name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "container.env[0].valueFrom.secretKeyRef.key: Required value",
    ],
  ],
  [
    "a variable from a ConfigMap by names that are none",
    { env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "C", key: "a b" } } }] },
    [
      "container.env[0].valueFrom.configMapKeyRef.name: Invalid value: \"C\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "container.env[0].valueFrom.configMapKeyRef.key: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    ],
  ],
  [
    "every field that can be had",
    {
      env: [
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.uid" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.nodeName" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.serviceAccountName" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "status.hostIP" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "status.hostIPs" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "status.podIP" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "status.podIPs" } } },
      ],
    },
    [],
  ],
  [
    "the node by its old name",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.host" } } }] },
    [],
  ],
  [
    "a label and an annotation",
    {
      env: [
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['a']" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['A']" } } },
      ],
    },
    [],
  ],
  [
    "a field without a version",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "", fieldPath: "metadata.name" } } }] },
    ["container.env[0].valueFrom.fieldRef.apiVersion: Required value"],
  ],
  [
    "a field of another version",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v2", fieldPath: "metadata.name" } } }] },
    [
      'container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2',
    ],
  ],
  [
    "a field without a path",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "" } } }] },
    ["container.env[0].valueFrom.fieldRef.fieldPath: Required value"],
  ],
  [
    "a field that does not exist",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.generation" } } }] },
    [
      'container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.generation": error converting fieldPath: field label not supported: metadata.generation',
    ],
  ],
  [
    "a field that exists, but not for containers",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.restartPolicy" } } }] },
    [
      'container.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.restartPolicy": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"',
    ],
  ],
  [
    "a subscript of a field that has none",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name['a']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']",
    ],
  ],
  [
    "a label by a key that is none",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['a b']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "an annotation by a key that is none",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['A B']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "a subscript that is not closed",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['a'" } } }] },
    [
      "container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels['a'\": error converting fieldPath: field label not supported: metadata.labels['a'",
    ],
  ],
  [
    "a subscript of nothing",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "['a']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"['a']\": error converting fieldPath: field label not supported: ['a']",
    ],
  ],
  [
    "an empty subscript",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['']" } } }] },
    [
      'container.env[0].valueFrom.fieldRef: Invalid value: "": name part must be non-empty',
      "container.env[0].valueFrom.fieldRef: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "a subscript that is only half there",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels[']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels[']\": error converting fieldPath: field label not supported: metadata.labels[']",
    ],
  ],
  [
    "every resource that can be had",
    {
      env: [
        { name: "A", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "limits.ephemeral-storage" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.cpu" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.ephemeral-storage" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "limits.hugepages-2Mi" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.hugepages-2Mi" } } },
      ],
    },
    [],
  ],
  [
    "no resource",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: {} } }] },
    ["container.env[0].valueFrom.resourceFieldRef.resource: Required value"],
  ],
  [
    "a resource that cannot be had",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.gpu", divisor: "7" } } }] },
    [
      'container.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
    ],
  ],
  [
    "cpu by thousandths and by whole ones",
    {
      env: [
        { name: "A", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } } },
        { name: "B", valueFrom: { resourceFieldRef: { resource: "requests.cpu", divisor: "1" } } },
      ],
    },
    [],
  ],
  [
    "memory by a divisor that is none",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "2Mi" } } }] },
    [
      'container.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.memory": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource',
    ],
  ],
  [
    "memory by every divisor",
    {
      env: [
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "0" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1k" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1M" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1G" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1T" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1P" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1E" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Ki" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Mi" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Gi" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Ti" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Pi" } } },
        { name: "A", valueFrom: { resourceFieldRef: { resource: "requests.memory", divisor: "1Ei" } } },
      ],
    },
    [],
  ],
  [
    "storage by a divisor that is none",
    {
      env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "requests.ephemeral-storage", divisor: "1m" } } }],
    },
    [
      'container.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "requests.ephemeral-storage": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the local ephemeral storage resource',
    ],
  ],
  [
    "huge pages by a divisor that is none",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.hugepages-2Mi", divisor: "1m" } } }] },
    [
      'container.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.hugepages-2Mi": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages resource',
    ],
  ],
  [
    "another list's cpu by a divisor that is none",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "other.cpu", divisor: "7" } } }] },
    [
      'container.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "other.cpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
    ],
  ],
  [
    "all of a ConfigMap and of a secret",
    { envFrom: [{ prefix: "P_", configMapRef: { name: "c" } }, { secretRef: { name: "s" } }] },
    [],
  ],
  [
    "all of nothing",
    { envFrom: [{}] },
    ['container.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
  ],
  [
    "all of two things at once",
    { envFrom: [{ configMapRef: { name: "c" }, secretRef: { name: "s" } }] },
    ['container.envFrom: Invalid value: "": may not have more than one field specified at a time'],
  ],
  [
    "all of things without names, by a prefix that is none",
    { envFrom: [{ prefix: "1", configMapRef: {} }, { secretRef: {} }] },
    [
      "container.envFrom[0].prefix: Invalid value: \"1\": a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')",
      "container.envFrom[0].configMapRef.name: Required value",
      "container.envFrom[1].secretRef.name: Required value",
    ],
  ],
  [
    "all of things by names that are none",
    { envFrom: [{ configMapRef: { name: "C" } }, { secretRef: { name: "S" } }] },
    [
      "container.envFrom[0].configMapRef.name: Invalid value: \"C\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "container.envFrom[1].secretRef.name: Invalid value: \"S\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "all of a thing whose name ends in a dash",
    { envFrom: [{ configMapRef: { name: "ab-" } }, { secretRef: { name: "-" } }] },
    [
      "container.envFrom[1].secretRef.name: Invalid value: \"-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
];

describe("the environment of a container", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
