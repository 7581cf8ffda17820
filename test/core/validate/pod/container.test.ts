import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  [
    "one that says nothing",
    { name: "", image: "", imagePullPolicy: "", terminationMessagePolicy: "" },
    [
      "container.name: Required value",
      "container.image: Required value",
      "container.terminationMessagePolicy: Required value",
      "container.imagePullPolicy: Required value",
    ],
  ],
  [
    "one by a name that is none",
    { name: "A.b" },
    [
      "container.name: Invalid value: \"A.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  ["one by a name with a dot", { name: "a.b" }, ['container.name: Invalid value: "a.b": must not contain dots']],
  [
    "one of unknown policies",
    { imagePullPolicy: "x", terminationMessagePolicy: "x" },
    [
      'container.terminationMessagePolicy: Unsupported value: "x": supported values: "File", "FallbackToLogsOnError"',
      'container.imagePullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"',
    ],
  ],
  [
    "one whose message falls back to its log",
    { imagePullPolicy: "Never", terminationMessagePolicy: "FallbackToLogsOnError" },
    [],
  ],
  [
    "an image with a space",
    { image: " i" },
    ['container.image: Invalid value: " i": must not have leading or trailing whitespace'],
  ],
  [
    "one with a restart policy",
    { restartPolicy: "Always" },
    ["container.restartPolicy: Forbidden: may not be set for non-init containers"],
  ],
  [
    "ports by number and name",
    {
      ports: [
        { name: "http", containerPort: 1, protocol: "TCP" },
        { name: "dns", containerPort: 65535, hostPort: 65535, protocol: "UDP" },
        { containerPort: 3, protocol: "SCTP" },
      ],
    },
    [],
  ],
  [
    "a port that says nothing",
    { ports: [{}] },
    ["container.ports[0].containerPort: Required value", "container.ports[0].protocol: Required value"],
  ],
  [
    "a port of an unknown protocol",
    { ports: [{ containerPort: 1, protocol: "HTTP" }] },
    ['container.ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"'],
  ],
  [
    "ports of the host that are none",
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
    "two ports by one name",
    {
      ports: [
        { name: "a", containerPort: 1, protocol: "TCP" },
        { name: "a", containerPort: 2, protocol: "TCP" },
      ],
    },
    ['container.ports[1].name: Duplicate value: "a"'],
  ],
  [
    "two ports by one name that is none",
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
    "two ports without a name",
    {
      ports: [
        { containerPort: 1, protocol: "TCP" },
        { containerPort: 2, protocol: "TCP" },
      ],
    },
    [],
  ],
  [
    "a port of the host twice, by protocol and by address",
    {
      ports: [
        { containerPort: 1, hostPort: 1, protocol: "TCP", hostIP: "::1" },
        { containerPort: 1, hostPort: 1, protocol: "UDP", hostIP: "::1" },
        { containerPort: 1, hostPort: 1, protocol: "TCP", hostIP: "::2" },
        { containerPort: 1, hostPort: 1, protocol: "TCP", hostIP: "::1" },
      ],
    },
    ['container.ports[3].hostPort: Duplicate value: "TCP/::1/1"'],
  ],
  [
    "resizing of cpu and memory",
    {
      resizePolicy: [
        { resourceName: "cpu", restartPolicy: "NotRequired" },
        { resourceName: "memory", restartPolicy: "RestartContainer" },
      ],
    },
    [],
  ],
  [
    "resizing of the same twice",
    {
      resizePolicy: [
        { resourceName: "cpu", restartPolicy: "NotRequired" },
        { resourceName: "cpu", restartPolicy: "NotRequired" },
      ],
    },
    ['container.resizePolicy[1]: Duplicate value: "cpu"'],
  ],
  [
    "resizing of nothing",
    { resizePolicy: [{}] },
    ["container.resizePolicy: Required value", "container.resizePolicy: Required value"],
  ],
  [
    "resizing of something else in another way",
    { resizePolicy: [{ resourceName: "disk", restartPolicy: "Always" }] },
    [
      'container.resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"',
      'container.resizePolicy: Unsupported value: "Always": supported values: "NotRequired", "RestartContainer"',
    ],
  ],
];

describe("a container", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
