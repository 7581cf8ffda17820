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

/** Four labels of up to 63 characters. */
function domain(length: number): string {
  return [63, 63, 63, length - 192].map(x).join(".");
}

describe("the longest that Kubernetes takes", () => {
  const volumes: readonly (readonly [sentence: string, longest: Fields, longer: Fields, error: string])[] = [
    [
      "tenant",
      quobyte(x(64)),
      quobyte(x(65)),
      "volume.quobyte.tenant: Required value: must be a UUID and may not exceed a length of 64 characters",
    ],
    ["driver", csi(x(63)), csi(x(64)), "volume.csi.driver: Too long: may not be more than 63 bytes"],
    [
      "domain of a signer",
      bundle(`${domain(253)}/a`),
      bundle(`${domain(254)}/a`),
      "volume.projected.sources[0].clusterTrustBundle.signerName: Too long: may not be more than 253 bytes",
    ],
    [
      "signer",
      bundle(`a.b/${domain(253)}.${domain(253)}.${x(59)}`),
      bundle(`a.b/${domain(253)}.${domain(253)}.${x(60)}`),
      "volume.projected.sources[0].clusterTrustBundle.signerName: Too long: may not be more than 571 bytes",
    ],
  ];
  it.each(volumes)("%s", (_sentence, longest, longer, error) => {
    expect(errorsOfVolume(longest)).toEqual([]);
    expect(errorsOfVolume(longer)).toEqual([error]);
  });

  const containers: readonly (readonly [sentence: string, longest: Fields, longer: Fields, error: string])[] = [
    [
      "AppArmor profile",
      appArmor(x(4095)),
      appArmor(x(4096)),
      "container.securityContext.appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes",
    ],
    [
      "domain of a Windows user",
      user(`${domain(255)}\\u`),
      user(`${domain(254)}.a\\u`),
      "runAsUserName's Domain length must be under 256 characters",
    ],
    ["Windows user", user(x(104)), user(x(105)), "runAsUserName's User length must not be longer than 104 characters"],
    [
      "Windows credentials",
      windows({ gmsaCredentialSpec: x(65536) }),
      windows({ gmsaCredentialSpec: x(65537) }),
      "gmsaCredentialSpec size must be under 64 KiB",
    ],
  ];
  it.each(containers)("%s", (_sentence, longest, longer, error) => {
    expect(errorsOfContainer(longest)).toEqual([]);
    const errors = errorsOfContainer(longer);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toContain(error);
  });
});

describe("the name of an object whose variables are all taken", () => {
  const refused = (name: string) => errorsOfContainer({ envFrom: [{ configMapRef: { name } }] }).length > 0;

  it.each([
    ["may end in a dash", "ab-", false],
    ["may end in a dash after anything", "a_-", false],
    ["may hold nothing else before it", "ab_c-", true],
    ["may not end in an underscore", "a_", true],
  ])("%s", (_sentence, name, isRefused) => {
    expect(refused(name)).toBe(isRefused);
  });
});

describe("a label", () => {
  it("has no capitals in its prefix, other than an annotation", () => {
    const reading = (fieldPath: string) =>
      errorsOfContainer({ env: [{ name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath } } }] });
    expect(reading("metadata.annotations['A.B/c']")).toEqual([]);
    expect(reading("metadata.labels['A.B/c']")).toHaveLength(1);
  });
});

describe("a pod", () => {
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
    ["of init containers alone", { initContainers: [I] }, []],
    [
      "of an init container called as the one that stands in",
      { initContainers: [{ ...I, name: "test" }] },
      ['spec.initContainers[0].name: Duplicate value: "test"'],
    ],
    [
      "of an init container called as a container",
      { containers: [C], initContainers: [{ ...I, name: "c" }] },
      ['spec.initContainers[0].name: Duplicate value: "c"'],
    ],
    [
      "of two init containers of one name",
      { initContainers: [I, I] },
      ['spec.initContainers[1].name: Duplicate value: "i"'],
    ],
    [
      "of two init containers without a name",
      { initContainers: [1, 2].map(() => ({ ...I, name: "" })) },
      ["spec.initContainers[0].name: Required value", "spec.initContainers[1].name: Required value"],
    ],
    [
      "of a container and an init container without a name",
      { containers: [{ ...C, name: "" }], initContainers: [{ ...I, name: "" }] },
      [
        "spec.containers[0].name: Required value",
        "spec.initContainers[0].name: Required value",
        'spec.initContainers[0].name: Duplicate value: ""',
      ],
    ],
    [
      "of init containers that want one port of the host",
      {
        initContainers: [
          { ...I, ...hostPort },
          { ...I, ...hostPort, name: "j" },
        ],
      },
      [],
    ],
    [
      "of an init container that wants one port of the host twice",
      { initContainers: [I, { ...I, name: "j", ports: [...hostPort.ports, ...hostPort.ports] }] },
      ['spec.initContainers[0].ports[1].hostPort: Duplicate value: "TCP//80"'],
    ],
    [
      "of an init container that may be resized",
      { initContainers: [{ ...I, resizePolicy: [{ resourceName: "cpu", restartPolicy: "NotRequired" }] }] },
      [
        'spec.initContainers[0].resizePolicy: Invalid value: [{"resourceName":"cpu","restartPolicy":"NotRequired"}]: must not be set for init containers',
      ],
    ],
    [
      "of an init container that restarts in another way",
      { initContainers: [{ ...I, restartPolicy: "Never" }] },
      ['spec.initContainers[0].restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ],
    [
      "of an init container whose image has a space",
      { initContainers: [{ ...I, image: "i " }] },
      ['spec.initContainers[0].image: Invalid value: "i ": must not have leading or trailing whitespace'],
    ],
    ["of host processes alone", { containers: [{ ...C, ...host }], initContainers: [{ ...I, ...host }] }, [NETWORK]],
    ["of a host process and another container", { containers: [C, { ...C, ...host, name: "d" }] }, [MIXED, NETWORK]],
    [
      "of a host process among init containers",
      { containers: [C], initContainers: [{ ...I, ...host }] },
      [MIXED, NETWORK],
    ],
    [
      "with the claim that another volume brings",
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
      "with a claim that is called like a volume",
      {
        volumes: [
          { name: "v", emptyDir: {} },
          { name: "w", persistentVolumeClaim: { claimName: "test-v" } },
        ],
      },
      [],
    ],
    [
      "with two volumes of one name",
      {
        volumes: [
          { name: "v", emptyDir: {} },
          { name: "v", emptyDir: {} },
        ],
      },
      ['spec.volumes[1].name: Duplicate value: "v"'],
    ],
    [
      "with a mount of a volume that is wrong",
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

  it("has nothing in the metadata of a claim but labels and annotations", () => {
    const template = { ...claim.volumeClaimTemplate, metadata: { finalizers: ["f"], generation: 1 } };
    expect(errorsOfVolume({ ephemeral: { volumeClaimTemplate: template } })).toEqual([
      "volume.ephemeral.volumeClaimTemplate.metadata.finalizers: Forbidden: cannot be set",
      "volume.ephemeral.volumeClaimTemplate.metadata.generation: Forbidden: cannot be set",
    ]);
  });
});
