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

function ofVolume(source: Fields): readonly string[] {
  return errorsOf({ volumes: [{ name: "v", ...source }] });
}

describe("validatePod of an invalid pod:", () => {
  const rows: readonly (readonly [string, () => readonly string[], readonly string[]])[] = [
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
      "a volume device whose volume is not a PersistentVolumeClaim",
      () => ofContainer({ volumeDevices: [{ name: "v", devicePath: "/d" }] }, [{ name: "v", emptyDir: {} }]),
      [
        'spec.containers[0].volumeDevices[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
      ],
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
  it.each(rows)("validatePod refuses %s", (_sentence, errors, expected) => {
    expect(errors()).toEqual(expected);
  });
});
