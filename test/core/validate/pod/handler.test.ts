import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  ["a request", { livenessProbe: { successThreshold: 1, httpGet: { path: "/", port: 80, scheme: "HTTP" } } }, []],
  [
    "a request over TLS with a header",
    {
      livenessProbe: {
        successThreshold: 1,
        httpGet: { path: "/", port: "https", scheme: "HTTPS", httpHeaders: [{ name: "X-A", value: "b" }] },
      },
    },
    [],
  ],
  [
    "a request that says nothing",
    { livenessProbe: { successThreshold: 1, httpGet: {} } },
    [
      "container.livenessProbe.httpGet.path: Required value",
      "container.livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
      'container.livenessProbe.httpGet.scheme: Unsupported value: "": supported values: "HTTP", "HTTPS"',
    ],
  ],
  [
    "a request by an unknown scheme to a port that is none",
    { livenessProbe: { successThreshold: 1, httpGet: { path: "/", port: 65536, scheme: "http" } } },
    [
      "container.livenessProbe.httpGet.port: Invalid value: 65536: must be between 1 and 65535, inclusive",
      'container.livenessProbe.httpGet.scheme: Unsupported value: "http": supported values: "HTTP", "HTTPS"',
    ],
  ],
  [
    "a request with headers that are none",
    {
      livenessProbe: {
        successThreshold: 1,
        httpGet: { path: "/", port: 80, scheme: "HTTP", httpHeaders: [{ name: "a b" }, {}] },
      },
    },
    [
      "container.livenessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
      "container.livenessProbe.httpGet.httpHeaders: Invalid value: \"\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
    ],
  ],
  [
    "a request to a port by a name that is none",
    { livenessProbe: { successThreshold: 1, httpGet: { path: "/", port: "A_B", scheme: "HTTP" } } },
    [
      'container.livenessProbe.httpGet.port: Invalid value: "A_B": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'container.livenessProbe.httpGet.port: Invalid value: "A_B": must contain at least one letter (a-z)',
    ],
  ],
  [
    "a command that says nothing",
    { livenessProbe: { successThreshold: 1, exec: {} } },
    ["container.livenessProbe.exec.command: Required value"],
  ],
  [
    "an empty command",
    { livenessProbe: { successThreshold: 1, exec: { command: [] } } },
    ["container.livenessProbe.exec.command: Required value"],
  ],
  ["a connection", { livenessProbe: { successThreshold: 1, tcpSocket: { port: 1 } } }, []],
  [
    "a connection to no port",
    { livenessProbe: { successThreshold: 1, tcpSocket: {} } },
    ["container.livenessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
  ],
  ["a call", { livenessProbe: { successThreshold: 1, grpc: { port: 65535 } } }, []],
  [
    "a call to no port",
    { livenessProbe: { successThreshold: 1, grpc: {} } },
    ["container.livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
  ],
  [
    "a probe of everything",
    { livenessProbe: { successThreshold: 1, exec: {}, httpGet: {}, tcpSocket: {}, grpc: {} } },
    [
      "container.livenessProbe.exec.command: Required value",
      "container.livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
      "container.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
      "container.livenessProbe.grpc: Forbidden: may not specify more than 1 handler type",
    ],
  ],
  [
    "a probe of nothing",
    { livenessProbe: { successThreshold: 1 } },
    ["container.livenessProbe: Required value: must specify a handler type"],
  ],
  [
    "a sleep in a probe",
    { livenessProbe: { successThreshold: 1, sleep: { seconds: 1 } } },
    ["container.livenessProbe: Required value: must specify a handler type"],
  ],
  [
    "counts below 0",
    {
      livenessProbe: {
        successThreshold: 1,
        exec: { command: ["a"] },
        initialDelaySeconds: -1,
        timeoutSeconds: -1,
        periodSeconds: -1,
        failureThreshold: -1,
      },
    },
    [
      "container.livenessProbe.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0",
      "container.livenessProbe.timeoutSeconds: Invalid value: -1: must be greater than or equal to 0",
      "container.livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
      "container.livenessProbe.failureThreshold: Invalid value: -1: must be greater than or equal to 0",
    ],
  ],
  [
    "a liveness probe that must succeed twice",
    { livenessProbe: { successThreshold: 2, exec: { command: ["a"] } } },
    ["container.livenessProbe.successThreshold: Invalid value: 2: must be 1"],
  ],
  [
    "a startup probe that must succeed below 0 times",
    { startupProbe: { exec: { command: ["a"] }, successThreshold: -1 } },
    [
      "container.startupProbe.successThreshold: Invalid value: -1: must be greater than or equal to 0",
      "container.startupProbe.successThreshold: Invalid value: -1: must be 1",
    ],
  ],
  [
    "a readiness probe that must succeed twice",
    { readinessProbe: { exec: { command: ["a"] }, successThreshold: 2 } },
    [],
  ],
  [
    "a readiness probe that must succeed below 0 times",
    { readinessProbe: { exec: { command: ["a"] }, successThreshold: -1 } },
    ["container.readinessProbe.successThreshold: Invalid value: -1: must be greater than or equal to 0"],
  ],
  [
    "a probe with a grace period",
    { livenessProbe: { successThreshold: 1, exec: { command: ["a"] }, terminationGracePeriodSeconds: 1 } },
    [],
  ],
  [
    "a probe with no grace period",
    { livenessProbe: { successThreshold: 1, exec: { command: ["a"] }, terminationGracePeriodSeconds: 0 } },
    ["container.livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"],
  ],
  [
    "a readiness probe with a grace period",
    { readinessProbe: { exec: { command: ["a"] }, terminationGracePeriodSeconds: 1 } },
    ["container.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes"],
  ],
  ["hooks", { lifecycle: { postStart: { exec: { command: ["a"] } }, preStop: { sleep: { seconds: 30 } } } }, []],
  [
    "hooks of nothing",
    { lifecycle: { postStart: {}, preStop: { grpc: { port: 1 } } } },
    [
      "container.lifecycle.postStart: Required value: must specify a handler type",
      "container.lifecycle.preStop: Required value: must specify a handler type",
    ],
  ],
  [
    "hooks of two things",
    {
      lifecycle: {
        postStart: { exec: { command: ["a"] }, sleep: { seconds: 1 } },
        preStop: { tcpSocket: { port: 1 }, httpGet: { path: "/", port: 1, scheme: "HTTP" } },
      },
    },
    [
      "container.lifecycle.postStart.sleep: Forbidden: may not specify more than 1 handler type",
      "container.lifecycle.preStop.tcpSocket: Forbidden: may not specify more than 1 handler type",
    ],
  ],
  [
    "a sleep of no time",
    { lifecycle: { preStop: { sleep: {} } } },
    [
      "container.lifecycle.preStop.sleep: Invalid value: 0: must be greater than 0 and less than terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.",
    ],
  ],
  ["a sleep of a second", { lifecycle: { preStop: { sleep: { seconds: 1 } } } }, []],
  ["no hooks", { lifecycle: {} }, []],
];

describe("probes and hooks", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
