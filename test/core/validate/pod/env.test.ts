import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  ["a variable without a name is refused", { env: [{ value: "x" }] }, ["container.env[0].name: Required value"]],
  [
    "a variable may have every name that Kubernetes 1.32 takes",
    { env: [{ name: "A B" }, { name: "1A" }, { name: ".." }] },
    [],
  ],
  [
    "a prefix may be every name that Kubernetes 1.32 takes",
    { envFrom: [{ prefix: "1-", configMapRef: { name: "c" } }] },
    [],
  ],
  [
    "a variable with an equals sign, or with a letter beyond ASCII, is refused with OpenKruise's message",
    { env: [{ name: "A=B" }, { name: "Ä" }] },
    ["A=B", "Ä"].map(
      (name, index) =>
        `container.env[${index}].name: Invalid value: "${name}": a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')`,
    ),
  ],
  [
    "a variable with an empty valueFrom is refused",
    { env: [{ name: "A", valueFrom: {} }] },
    [
      'container.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`',
    ],
  ],
  [
    "a variable with two sources is refused",
    {
      env: [
        { name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" }, configMapKeyRef: { name: "c", key: "k" } } },
      ],
    },
    ['container.env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time'],
  ],

  [
    "a variable from a secret without a name and a key is refused",
    { env: [{ name: "A", valueFrom: { secretKeyRef: {} } }] },
    [
      "container.env[0].valueFrom.secretKeyRef.name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "container.env[0].valueFrom.secretKeyRef.key: Required value",
    ],
  ],
  [
    "a variable from a ConfigMap with an invalid name and an invalid key is refused",
    { env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "C", key: "a b" } } }] },
    [
      "container.env[0].valueFrom.configMapKeyRef.name: Invalid value: \"C\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "container.env[0].valueFrom.configMapKeyRef.key: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    ],
  ],
  [
    "every supported field of the pod is accepted",
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
    "the old field spec.host is accepted",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.host" } } }] },
    [],
  ],
  [
    "a fieldRef to a label and one to an annotation are accepted",
    {
      env: [
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['a']" } } },
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['A']" } } },
      ],
    },
    [],
  ],
  [
    "a fieldRef without an apiVersion is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "", fieldPath: "metadata.name" } } }] },
    ["container.env[0].valueFrom.fieldRef.apiVersion: Required value"],
  ],
  [
    "a fieldRef with an unsupported apiVersion is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v2", fieldPath: "metadata.name" } } }] },
    [
      'container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2',
    ],
  ],
  [
    "a fieldRef without a fieldPath is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "" } } }] },
    ["container.env[0].valueFrom.fieldRef.fieldPath: Required value"],
  ],
  [
    "a fieldRef to a field that does not exist is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.generation" } } }] },
    [
      'container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.generation": error converting fieldPath: field label not supported: metadata.generation',
    ],
  ],
  [
    "a fieldRef to a field that is not available to containers is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "spec.restartPolicy" } } }] },
    [
      'container.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.restartPolicy": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"',
    ],
  ],
  [
    "a fieldRef with a key of metadata.name is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name['a']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']",
    ],
  ],
  [
    "a fieldRef to an annotation with an invalid key is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations['A B']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "a fieldRef without the closing bracket of its key is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['a'" } } }] },
    [
      "container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels['a'\": error converting fieldPath: field label not supported: metadata.labels['a'",
    ],
  ],
  [
    "a fieldRef that is only a key is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "['a']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"['a']\": error converting fieldPath: field label not supported: ['a']",
    ],
  ],
  [
    "a fieldRef to a label with an empty key is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels['']" } } }] },
    [
      'container.env[0].valueFrom.fieldRef: Invalid value: "": name part must be non-empty',
      "container.env[0].valueFrom.fieldRef: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "a fieldRef with only one quote in its brackets is refused",
    { env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels[']" } } }] },
    [
      "container.env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels[']\": error converting fieldPath: field label not supported: metadata.labels[']",
    ],
  ],
  [
    "every supported resource of a container is accepted",
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
    "a resourceFieldRef without a resource is refused",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: {} } }] },
    ["container.env[0].valueFrom.resourceFieldRef.resource: Required value"],
  ],
  [
    "an unsupported resource is refused",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.gpu", divisor: "7" } } }] },
    [
      'container.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
    ],
  ],
  [
    "a cpu divisor of 1m or 1 is accepted",
    {
      env: [
        { name: "A", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } } },
        { name: "B", valueFrom: { resourceFieldRef: { resource: "requests.cpu", divisor: "1" } } },
      ],
    },
    [],
  ],
  [
    "an unsupported memory divisor is refused",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "2Mi" } } }] },
    [
      'container.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.memory": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource',
    ],
  ],
  [
    "every supported memory divisor is accepted",
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
    "an unsupported divisor for ephemeral storage is refused",
    {
      env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "requests.ephemeral-storage", divisor: "1m" } } }],
    },
    [
      'container.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "requests.ephemeral-storage": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the local ephemeral storage resource',
    ],
  ],
  [
    "an unsupported divisor for huge pages is refused",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.hugepages-2Mi", divisor: "1m" } } }] },
    [
      'container.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.hugepages-2Mi": only divisor\'s values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages resource',
    ],
  ],
  [
    "a resource other.cpu with an unsupported divisor gets an error only for the resource",
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "other.cpu", divisor: "7" } } }] },
    [
      'container.env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "other.cpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
    ],
  ],

  [
    "an empty envFrom item is refused",
    { envFrom: [{}] },
    ['container.envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'],
  ],
  [
    "an envFrom item with both a ConfigMap and a secret is refused",
    { envFrom: [{ configMapRef: { name: "c" }, secretRef: { name: "s" } }] },
    ['container.envFrom: Invalid value: "": may not have more than one field specified at a time'],
  ],
  [
    "an envFrom with objects without names and an invalid prefix is refused",
    { envFrom: [{ prefix: "=", configMapRef: {} }, { secretRef: {} }] },
    [
      "container.envFrom[0].prefix: Invalid value: \"=\": a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')",
      "container.envFrom[0].configMapRef.name: Required value",
      "container.envFrom[1].secretRef.name: Required value",
    ],
  ],
  [
    "an envFrom with objects with invalid names is refused",
    { envFrom: [{ configMapRef: { name: "C" } }, { secretRef: { name: "S" } }] },
    [
      "container.envFrom[0].configMapRef.name: Invalid value: \"C\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "container.envFrom[1].secretRef.name: Invalid value: \"S\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "in envFrom, a name that ends in a dash is accepted, but a name that is only a dash is refused",
    { envFrom: [{ configMapRef: { name: "ab-" } }, { secretRef: { name: "-" } }] },
    [
      "container.envFrom[1].secretRef.name: Invalid value: \"-\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
];

describe("validation of container variables:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
