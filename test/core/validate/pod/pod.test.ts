import { describe, expect, it } from "vitest";
import type { SidecarSetSpec } from "../../../../shared/api/sidecarset.ts";
import { validatePod } from "../../../../shared/core/pod/validate/pod.ts";
import { printFieldError } from "../../../../shared/go/field-error.ts";

type Fields = Readonly<Record<string, unknown>>;

const CONTAINER = { name: "c", image: "i", imagePullPolicy: "Always", terminationMessagePolicy: "File" };

function errorsOf(spec: Fields): readonly string[] {
  return validatePod(spec as unknown as SidecarSetSpec).map(printFieldError);
}

function ofContainer(changes: Fields, volumes: readonly Fields[] = []): readonly string[] {
  return errorsOf({ containers: [{ ...CONTAINER, ...changes }], volumes });
}

function ofInitContainer(changes: Fields): readonly string[] {
  return errorsOf({ initContainers: [{ ...CONTAINER, ...changes }] });
}

function ofVolume(source: Fields): readonly string[] {
  return errorsOf({ volumes: [{ name: "v", ...source }] });
}

describe("validatePod of a valid pod:", () => {
  const rows: readonly (readonly [string, () => readonly string[]])[] = [
    [
      "a complete liveness probe",
      () =>
        ofContainer({ livenessProbe: { httpGet: { path: "/", port: "http", scheme: "HTTP" }, successThreshold: 1 } }),
    ],
    [
      "a native sidecar with a startup probe",
      () =>
        ofInitContainer({ restartPolicy: "Always", startupProbe: { exec: { command: ["a"] }, successThreshold: 1 } }),
    ],
  ];
  it.each(rows)("%s", (_sentence, errors) => {
    expect(errors()).toEqual([]);
  });
});

describe("validatePod of an invalid pod:", () => {
  const rows: readonly (readonly [string, () => readonly string[], readonly string[]])[] = [
    [
      "a container port above 65535",
      () => ofContainer({ ports: [{ containerPort: 70000, protocol: "TCP" }] }),
      ["spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
    ],
    [
      "a variable with both value and valueFrom",
      () => ofContainer({ env: [{ name: "A", value: "x", valueFrom: { secretKeyRef: { name: "s", key: "k" } } }] }),
      ['spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
    ],
    [
      "a variable with an unsupported divisor for cpu",
      () =>
        ofContainer({
          env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1Mi" } } }],
        }),
      [
        'spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor\'s values 1m and 1 are supported with the cpu resource',
      ],
    ],
    [
      "a container with two mounts at the same path",
      () =>
        ofContainer({ volumeMounts: [1, 2].map(() => ({ name: "v", mountPath: "/a" })) }, [
          { name: "v", emptyDir: {} },
        ]),
      ['spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique'],
    ],
    [
      "a volume device whose volume is not a PersistentVolumeClaim",
      () => ofContainer({ volumeDevices: [{ name: "v", devicePath: "/d" }] }, [{ name: "v", emptyDir: {} }]),
      [
        'spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
      ],
    ],
    [
      "a cpu request above the limit",
      () => ofContainer({ resources: { limits: { cpu: "1" }, requests: { cpu: "1500m" } } }),
      ['spec.containers[0].resources.requests: Invalid value: "1500m": must be less than or equal to cpu limit of 1'],
    ],
    [
      "a startup probe with a successThreshold of 0",
      () => ofContainer({ startupProbe: { tcpSocket: { port: 80 } } }),
      ["spec.containers[0].startupProbe.successThreshold: Invalid value: 0: must be 1"],
    ],
    [
      "a probe with two handlers",
      () => ofContainer({ readinessProbe: { exec: { command: ["a"] }, grpc: { port: 1 } } }),
      ["spec.containers[0].readinessProbe.grpc: Forbidden: may not specify more than 1 handler type"],
    ],
    [
      "a preStop sleep longer than the termination grace period",
      () => ofContainer({ lifecycle: { preStop: { sleep: { seconds: 31 } } } }),
      [
        "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
      ],
    ],
    [
      "a liveness probe of an ordinary init container",
      () => ofInitContainer({ livenessProbe: {} }),
      [
        "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
      ],
    ],
    [
      "a privileged container with allowPrivilegeEscalation false",
      () => ofContainer({ securityContext: { allowPrivilegeEscalation: false, privileged: true } }),
      [
        'spec.containers[0].securityContext: Invalid value: {"allowPrivilegeEscalation":false,"privileged":true}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
      ],
    ],
    [
      "a Localhost seccomp profile without a file",
      () => ofContainer({ securityContext: { seccompProfile: { type: "Localhost" } } }),
      [
        "spec.containers[0].securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
      ],
    ],
    [
      "a defaultMode above 0777",
      () => ofVolume({ secret: { secretName: "s", defaultMode: 512 } }),
      [
        "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
      ],
    ],
    [
      "a volume claim template with a storage request of 0",
      () =>
        ofVolume({
          ephemeral: {
            volumeClaimTemplate: {
              spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "0" } } },
            },
          },
        }),
      [
        'spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Invalid value: "0": must be greater than zero',
      ],
    ],
  ];
  it.each(rows)("%s", (_sentence, errors, expected) => {
    expect(errors()).toEqual(expected);
  });
});
