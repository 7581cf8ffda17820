import { describe, expect, it } from "vitest";
import type { SidecarSetSpec } from "../../../../shared/api/sidecarset.ts";
import { validatePod } from "../../../../shared/core/pod/validate/pod.ts";
import { printFieldError } from "../../../../shared/go/field-error.ts";
import { errorsOfContainer, errorsOfVolume, type Fields } from "./fixture.ts";

const x = (length: number) => "x".repeat(length);
const csi = (driver: string) => ({ csi: { driver } });
const quobyte = (tenant: string) => ({ quobyte: { registry: "a:1", volume: "v", tenant } });
const bundle = (signerName: string) => ({
  projected: { sources: [{ clusterTrustBundle: { path: "a", signerName } }] },
});
const appArmor = (localhostProfile: string) => ({
  securityContext: { appArmorProfile: { type: "Localhost", localhostProfile } },
});
const windows = (windowsOptions: Fields) => ({ securityContext: { windowsOptions } });
const user = (runAsUserName: string) => windows({ runAsUserName });

/** Returns a name of four labels of up to 63 characters. */
function domain(length: number): string {
  return [63, 63, 63, length - 192].map(x).join(".");
}

describe("length limits of Kubernetes:", () => {
  const volumes: readonly (readonly [sentence: string, longest: Fields, longer: Fields, error: string])[] = [
    [
      "a Quobyte tenant",
      quobyte(x(64)),
      quobyte(x(65)),
      "volume.quobyte.tenant: Required value: must be a UUID and may not exceed a length of 64 characters",
    ],
    ["a CSI driver name", csi(x(63)), csi(x(64)), "volume.csi.driver: Too long: may not be more than 63 bytes"],
    [
      "a trust bundle signer's domain",
      bundle(`${domain(253)}/a`),
      bundle(`${domain(254)}/a`),
      "volume.projected.sources[0].clusterTrustBundle.signerName: Too long: may not be more than 253 bytes",
    ],
    [
      "a trust bundle signer's name",
      bundle(`a.b/${domain(253)}.${domain(253)}.${x(59)}`),
      bundle(`a.b/${domain(253)}.${domain(253)}.${x(60)}`),
      "volume.projected.sources[0].clusterTrustBundle.signerName: Too long: may not be more than 571 bytes",
    ],
  ];
  it.each(volumes)(
    "%s of the maximum length is accepted and a longer one is refused",
    (_sentence, longest, longer, error) => {
      expect(errorsOfVolume(longest)).toEqual([]);
      expect(errorsOfVolume(longer)).toEqual([error]);
    },
  );

  const containers: readonly (readonly [sentence: string, longest: Fields, longer: Fields, error: string])[] = [
    [
      "an AppArmor profile name",
      appArmor(x(4095)),
      appArmor(x(4096)),
      "container.securityContext.appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes",
    ],
    [
      "a Windows user's domain",
      user(`${domain(255)}\\u`),
      user(`${domain(254)}.a\\u`),
      "runAsUserName's Domain length must be under 256 characters",
    ],
    [
      "a Windows user's name",
      user(x(104)),
      user(x(105)),
      "runAsUserName's User length must not be longer than 104 characters",
    ],
    [
      "a gmsaCredentialSpec",
      windows({ gmsaCredentialSpec: x(65536) }),
      windows({ gmsaCredentialSpec: x(65537) }),
      "gmsaCredentialSpec size must be under 64 KiB",
    ],
  ];
  it.each(containers)(
    "%s of the maximum length is accepted and a longer one is refused",
    (_sentence, longest, longer, error) => {
      expect(errorsOfContainer(longest)).toEqual([]);
      const errors = errorsOfContainer(longer);
      expect(errors).toHaveLength(1);
      expect(errors[0]).toContain(error);
    },
  );
});

describe("validation of a ConfigMap name in envFrom:", () => {
  const refused = (name: string) => errorsOfContainer({ envFrom: [{ configMapRef: { name } }] }).length > 0;

  it.each([
    ["a name that ends in a dash is accepted", "ab-", false],
    ["a name that ends in an underscore and a dash is accepted", "a_-", false],
    ["a name that ends in a dash and has an underscore earlier is refused", "ab_c-", true],
    ["a name that ends in an underscore is refused", "a_", true],
  ])("%s", (_sentence, name, isRefused) => {
    expect(refused(name)).toBe(isRefused);
  });
});

describe("validation of a fieldRef:", () => {
  it("a key with a prefix in capitals is refused for a label, but not for an annotation", () => {
    const reading = (fieldPath: string) =>
      errorsOfContainer({ env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } } }] });
    expect(reading("metadata.annotations['A.B/c']")).toEqual([]);
    expect(reading("metadata.labels['A.B/c']")).toHaveLength(1);
  });
});

describe("validatePod:", () => {
  const C = { name: "c", image: "i", imagePullPolicy: "Always", terminationMessagePolicy: "File" };
  const I = { ...C, name: "i" };
  const claim = {
    volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1" } } } },
  };
  const host = { securityContext: { windowsOptions: { hostProcess: true } } };
  const hostPort = { ports: [{ containerPort: 80, hostPort: 80, protocol: "TCP" }] };
  const NETWORK =
    "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers";
  const MIXED =
    'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers';
  const rows: readonly (readonly [sentence: string, spec: Fields, errors: readonly string[]])[] = [
    [
      "an init container with the name of the placeholder container is refused",
      { initContainers: [{ ...I, name: "test" }] },
      ['spec.initContainers[0].name: Duplicate value: "test"'],
    ],

    [
      "two init containers without a name get no error for a duplicate",
      { initContainers: [1, 2].map(() => ({ ...I, name: "" })) },
      ["spec.initContainers[0].name: Required value", "spec.initContainers[1].name: Required value"],
    ],
    [
      "a container and an init container without a name get an error for a duplicate",
      { containers: [{ ...C, name: "" }], initContainers: [{ ...I, name: "" }] },
      [
        "spec.containers[0].name: Required value",
        "spec.initContainers[0].name: Required value",
        'spec.initContainers[0].name: Duplicate value: ""',
      ],
    ],

    [
      "an init container with the same host port twice is refused",
      { initContainers: [I, { ...I, name: "j", ports: [...hostPort.ports, ...hostPort.ports] }] },
      ['spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//80"'],
    ],
    [
      "an init container with a resizePolicy is refused",
      { initContainers: [{ ...I, resizePolicy: [{ resourceName: "cpu", restartPolicy: "NotRequired" }] }] },
      [
        'spec.initContainers[0].resizePolicy: Invalid value: [{"resourceName":"cpu","restartPolicy":"NotRequired"}]: must not be set for init containers',
      ],
    ],

    [
      "an init container whose image name ends in a space is refused",
      { initContainers: [{ ...I, image: "i " }] },
      ['spec.initContainers[0].image: Invalid value: "i ": must not have leading or trailing whitespace'],
    ],
    [
      "a pod with only host processes gets an error for the missing host network",
      { containers: [{ ...C, ...host }], initContainers: [{ ...I, ...host }] },
      [NETWORK],
    ],
    [
      "a pod with a host process and an ordinary container is refused",
      { containers: [C, { ...C, ...host, name: "d" }] },
      [MIXED, NETWORK],
    ],
    [
      "a persistentVolumeClaim that an ephemeral volume of the pod creates is refused",
      {
        volumes: [
          { name: "v", ephemeral: claim },
          { name: "w", persistentVolumeClaim: { claimName: "test-v" } },
        ],
      },
      [
        'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "test-v": must not reference a PVC that gets created for an ephemeral volume',
      ],
    ],
    [
      "a persistentVolumeClaim whose name contains the name of an emptyDir volume is accepted",
      {
        volumes: [
          { name: "v", emptyDir: {} },
          { name: "w", persistentVolumeClaim: { claimName: "test-v" } },
        ],
      },
      [],
    ],

    [
      "a mount of an invalid volume is refused",
      { volumes: [{ name: "v" }], containers: [{ ...C, volumeMounts: [{ name: "v", mountPath: "/a" }] }] },
      [
        "spec.volumes[0]: Required value: must specify a volume type",
        'spec.containers[0].volumeMounts[0].name: Not found: "v"',
      ],
    ],
  ];
  it.each(rows)("%s", (_sentence, spec, errors) => {
    expect(validatePod(spec as unknown as SidecarSetSpec).map(printFieldError)).toEqual(errors);
  });

  it("a volume claim template with finalizers and a generation is refused", () => {
    const template = { ...claim.volumeClaimTemplate, metadata: { finalizers: ["f"], generation: 1 } };
    expect(errorsOfVolume({ ephemeral: { volumeClaimTemplate: template } })).toEqual([
      "volume.ephemeral.volumeClaimTemplate.metadata.finalizers: Forbidden: cannot be set",
      "volume.ephemeral.volumeClaimTemplate.metadata.generation: Forbidden: cannot be set",
    ]);
  });
});
