import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  [
    "a container with an invalid name is refused",
    { name: "A.b" },
    [
      "container.name: Invalid value: \"A.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "a container name with a dot is refused",
    { name: "a.b" },
    ['container.name: Invalid value: "a.b": must not contain dots'],
  ],
  [
    "a container with an unknown imagePullPolicy and an unknown terminationMessagePolicy is refused",
    { imagePullPolicy: "x", terminationMessagePolicy: "x" },
    [
      'container.terminationMessagePolicy: Unsupported value: "x": supported values: "File", "FallbackToLogsOnError"',
      'container.imagePullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"',
    ],
  ],

  [
    "an image name that begins with a space is refused",
    { image: " i" },
    ['container.image: Invalid value: " i": must not have leading or trailing whitespace'],
  ],

  [
    "an empty port is refused",
    { ports: [{}] },
    ["container.ports[0].containerPort: Required value", "container.ports[0].protocol: Required value"],
  ],
  [
    "a port with an unknown protocol is refused",
    { ports: [{ containerPort: 1, protocol: "HTTP" }] },
    ['container.ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"'],
  ],
  [
    "invalid host ports are refused",
    {
      ports: [
        { containerPort: 1, hostPort: 65536, protocol: "TCP" },
        { containerPort: -1, hostPort: -1, protocol: "TCP" },
      ],
    },
    [
      "container.ports[0].hostPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
      "container.ports[1].containerPort: Invalid value: -1: must be between 1 and 65535, inclusive",
      "container.ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
    ],
  ],

  [
    "two ports with the same invalid name get no error for a duplicate",
    {
      ports: [
        { name: "A", containerPort: 1, protocol: "TCP" },
        { name: "A", containerPort: 2, protocol: "TCP" },
      ],
    },
    [
      'container.ports[0].name: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'container.ports[0].name: Invalid value: "A": must contain at least one letter (a-z)',
      'container.ports[1].name: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'container.ports[1].name: Invalid value: "A": must contain at least one letter (a-z)',
    ],
  ],

  [
    "a resizePolicy with the same resource twice is refused",
    {
      resizePolicy: [
        { resourceName: "cpu", restartPolicy: "NotRequired" },
        { resourceName: "cpu", restartPolicy: "NotRequired" },
      ],
    },
    ['container.resizePolicy[1]: Duplicate value: "cpu"'],
  ],
  [
    "an empty resizePolicy item is refused",
    { resizePolicy: [{}] },
    ["container.resizePolicy: Required value", "container.resizePolicy: Required value"],
  ],
  [
    "a resizePolicy with an unknown resource and an unknown restartPolicy is refused",
    { resizePolicy: [{ resourceName: "disk", restartPolicy: "Always" }] },
    [
      'container.resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"',
      'container.resizePolicy: Unsupported value: "Always": supported values: "NotRequired", "RestartContainer"',
    ],
  ],
];

describe("validation of a container:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
