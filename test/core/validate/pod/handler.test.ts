import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  [
    "an httpGet probe with invalid header names is refused",
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
    "an httpGet probe with an invalid port name is refused",
    { livenessProbe: { successThreshold: 1, httpGet: { path: "/", port: "A_B", scheme: "HTTP" } } },
    [
      'container.livenessProbe.httpGet.port: Invalid value: "A_B": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'container.livenessProbe.httpGet.port: Invalid value: "A_B": must contain at least one letter (a-z)',
    ],
  ],
  [
    "an exec probe without a command is refused",
    { livenessProbe: { successThreshold: 1, exec: {} } },
    ["container.livenessProbe.exec.command: Required value"],
  ],
  [
    "a tcpSocket probe without a port is refused",
    { livenessProbe: { successThreshold: 1, tcpSocket: {} } },
    ["container.livenessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
  ],
  ["a grpc probe is accepted", { livenessProbe: { successThreshold: 1, grpc: { port: 65535 } } }, []],
  [
    "a grpc probe without a port is refused",
    { livenessProbe: { successThreshold: 1, grpc: {} } },
    ["container.livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive"],
  ],

  [
    "a probe with negative numbers is refused",
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
    "a liveness probe with a termination grace period of 0 seconds is refused",
    { livenessProbe: { successThreshold: 1, exec: { command: ["a"] }, terminationGracePeriodSeconds: 0 } },
    ["container.livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0"],
  ],
  [
    "a readiness probe with a termination grace period is refused",
    { readinessProbe: { exec: { command: ["a"] }, terminationGracePeriodSeconds: 1 } },
    ["container.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes"],
  ],
  [
    "a container with a postStart and a preStop hook is accepted",
    { lifecycle: { postStart: { exec: { command: ["a"] } }, preStop: { sleep: { seconds: 30 } } } },
    [],
  ],
  [
    "a hook may sleep for no seconds",
    { lifecycle: { preStop: { sleep: {} }, postStart: { sleep: { seconds: 0 } } } },
    [],
  ],
  [
    "a hook that sleeps for a negative time is refused",
    { lifecycle: { preStop: { sleep: { seconds: -1 } } } },
    [
      "container.lifecycle.preStop.sleep: Invalid value: -1: must be non-negative and less than terminationGracePeriodSeconds (30)",
    ],
  ],
];

describe("validation of probes and hooks:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
