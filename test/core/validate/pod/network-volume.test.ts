import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  ["a file server's share", { nfs: { server: "s", path: "/a" } }, []],
  [
    "a share without server and path",
    { nfs: {} },
    [
      "volume.nfs.server: Required value",
      "volume.nfs.path: Required value",
      'volume.nfs.path: Invalid value: "": must be an absolute path',
    ],
  ],
  [
    "a share by a relative path",
    { nfs: { server: "s", path: "a/" } },
    ['volume.nfs.path: Invalid value: "a/": must be an absolute path'],
  ],
  [
    "an iSCSI disk by its iqn",
    { iscsi: { targetPortal: "p", iqn: "iqn.2001-04.com.example:storage.disk1", lun: 255 } },
    [],
  ],
  ["an iSCSI disk by its eui", { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", lun: 0 } }, []],
  ["an iSCSI disk by its naa", { iscsi: { targetPortal: "p", iqn: "naa.0123456789abcdef0123456789abcdef" } }, []],
  [
    "an iSCSI disk that says nothing",
    { iscsi: {} },
    ["volume.iscsi.targetPortal: Required value", "volume.iscsi.iqn: Required value"],
  ],
  [
    "an iSCSI disk by a name of another kind",
    { iscsi: { targetPortal: "p", iqn: "abc.1" } },
    ['volume.iscsi.iqn: Invalid value: "abc.1": must be valid format starting with iqn, eui, or naa'],
  ],
  [
    "an iqn without a date",
    { iscsi: { targetPortal: "p", iqn: "iqn.com.example:disk" } },
    ['volume.iscsi.iqn: Invalid value: "iqn.com.example:disk": must be valid format'],
  ],
  [
    "an iqn without its last part",
    { iscsi: { targetPortal: "p", iqn: "iqn.2001-04.com.example" } },
    ['volume.iscsi.iqn: Invalid value: "iqn.2001-04.com.example": must be valid format'],
  ],
  [
    "an iqn with a comma",
    { iscsi: { targetPortal: "p", iqn: "iqn.2001-04.com.example:a,b" } },
    ['volume.iscsi.iqn: Invalid value: "iqn.2001-04.com.example:a,b": must be valid format'],
  ],
  [
    "an iqn of a year with three digits",
    { iscsi: { targetPortal: "p", iqn: "iqn.201-04.com.example:a" } },
    ['volume.iscsi.iqn: Invalid value: "iqn.201-04.com.example:a": must be valid format'],
  ],
  [
    "an iqn of a month with one digit",
    { iscsi: { targetPortal: "p", iqn: "iqn.2001-4.com.example:a" } },
    ['volume.iscsi.iqn: Invalid value: "iqn.2001-4.com.example:a": must be valid format'],
  ],
  [
    "an eui that is too short",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcde" } },
    ['volume.iscsi.iqn: Invalid value: "eui.0123456789abcde": must be valid format'],
  ],
  [
    "an eui that is too long",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef0" } },
    ['volume.iscsi.iqn: Invalid value: "eui.0123456789abcdef0": must be valid format'],
  ],
  [
    "an eui after something else",
    { iscsi: { targetPortal: "p", iqn: "eui.eui.0123456789abcdef" } },
    ['volume.iscsi.iqn: Invalid value: "eui.eui.0123456789abcdef": must be valid format'],
  ],
  [
    "a naa that is too short",
    { iscsi: { targetPortal: "p", iqn: "naa.0123456789abcdef0123456789abcde" } },
    ['volume.iscsi.iqn: Invalid value: "naa.0123456789abcdef0123456789abcde": must be valid format'],
  ],
  [
    "a naa that is too long",
    { iscsi: { targetPortal: "p", iqn: "naa.0123456789abcdef0123456789abcdef0" } },
    ['volume.iscsi.iqn: Invalid value: "naa.0123456789abcdef0123456789abcdef0": must be valid format'],
  ],
  [
    "a naa after something else",
    { iscsi: { targetPortal: "p", iqn: "naa.naa.0123456789abcdef0123456789abcdef" } },
    ['volume.iscsi.iqn: Invalid value: "naa.naa.0123456789abcdef0123456789abcdef": must be valid format'],
  ],
  [
    "a logical unit beyond 255",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", lun: 256 } },
    ["volume.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"],
  ],
  [
    "a logical unit below 0",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", lun: -1 } },
    ["volume.iscsi.lun: Invalid value: -1: must be between 0 and 255, inclusive"],
  ],
  [
    "iSCSI discovery without a secret",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", chapAuthDiscovery: true } },
    ["volume.iscsi.secretRef: Required value"],
  ],
  [
    "an iSCSI session without a secret",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", chapAuthSession: true } },
    ["volume.iscsi.secretRef: Required value"],
  ],
  [
    "an iSCSI session with a secret",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", chapAuthSession: true, secretRef: { name: "s" } } },
    [],
  ],
  [
    "an iSCSI initiator by a name that is none",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", initiatorName: "x" } },
    ['volume.iscsi.initiatorname: Invalid value: "x": must be valid format starting with iqn, eui, or naa'],
  ],
  [
    "an iSCSI initiator by its iqn",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", initiatorName: "iqn.2001-04.com.example:host" } },
    [],
  ],
  [
    "a Gluster volume without endpoints and path",
    { glusterfs: {} },
    ["volume.glusterfs.endpoints: Required value", "volume.glusterfs.path: Required value"],
  ],
  [
    "a Flocker dataset without a name",
    { flocker: {} },
    ["volume.flocker: Required value: one of datasetName and datasetUUID is required"],
  ],
  ["a Flocker dataset by name", { flocker: { datasetName: "d" } }, []],
  ["a Flocker dataset by id", { flocker: { datasetUUID: "d" } }, []],
  [
    "a Flocker dataset by both",
    { flocker: { datasetName: "d", datasetUUID: "u" } },
    ['volume.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously'],
  ],
  [
    "a Flocker dataset by a path",
    { flocker: { datasetName: "a/b" } },
    ["volume.flocker.datasetName: Invalid value: \"a/b\": must not contain '/'"],
  ],
  ["a Quobyte volume of several registries", { quobyte: { registry: "a:1,[::1]:2,:3", volume: "v" } }, []],
  [
    "a Quobyte volume without a registry",
    { quobyte: { volume: "v" } },
    ["volume.quobyte.registry: Required value: must be a host:port pair or multiple pairs separated by commas"],
  ],
  ["a Quobyte volume without a volume", { quobyte: { registry: "a:1" } }, ["volume.quobyte.volume: Required value"]],
  [
    "a Quobyte registry without a port, and one with two",
    { quobyte: { registry: "a,b:1:2,c:3", volume: "v" } },
    [
      'volume.quobyte.registry: Invalid value: "a,b:1:2,c:3": must be a host:port pair or multiple pairs separated by commas',
      'volume.quobyte.registry: Invalid value: "a,b:1:2,c:3": must be a host:port pair or multiple pairs separated by commas',
    ],
  ],
  [
    "a Quobyte registry with a bracket that is not closed",
    { quobyte: { registry: "[::1:2", volume: "v" } },
    [
      'volume.quobyte.registry: Invalid value: "[::1:2": must be a host:port pair or multiple pairs separated by commas',
    ],
  ],
  [
    "a Fibre Channel disk without targets",
    { fc: {} },
    ["volume.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"],
  ],
  ["a Fibre Channel disk by its id", { fc: { wwids: ["w"] } }, []],
  [
    "a Fibre Channel disk by both",
    { fc: { wwids: ["w"], targetWWNs: ["t"], lun: 1 } },
    ['volume.fc.targetWWNs: Invalid value: ["t"]: targetWWNs and wwids can not be specified simultaneously'],
  ],
  [
    "a Fibre Channel disk without a logical unit",
    { fc: { targetWWNs: ["t"] } },
    ["volume.fc.lun: Required value: lun is required if targetWWNs is specified"],
  ],
  [
    "a Fibre Channel disk with a logical unit beyond 255",
    { fc: { targetWWNs: ["t"], lun: 256 } },
    ["volume.fc.lun: Invalid value: 256: must be between 0 and 255, inclusive"],
  ],
  [
    "a flex volume without a driver",
    { flexVolume: { options: { a: "b" } } },
    ["volume.flexVolume.driver: Required value"],
  ],
  [
    "a flex volume with options that are reserved",
    {
      flexVolume: {
        driver: "d",
        options: { "kubernetes.io/a": "1", "x.K8S.io/a": "1", "my-k8s.io/a": "1", "k8s.io.example/a": "1" },
      },
    },
    [
      'volume.flexVolume.options[kubernetes.io/a]: Invalid value: "kubernetes.io/a": kubernetes.io and k8s.io namespaces are reserved',
      'volume.flexVolume.options[x.K8S.io/a]: Invalid value: "x.K8S.io/a": kubernetes.io and k8s.io namespaces are reserved',
    ],
  ],
  [
    "an Azure disk that says nothing",
    { azureDisk: {} },
    ["volume.azureDisk.diskName: Required value", "volume.azureDisk.diskURI: Required value"],
  ],
  [
    "a managed Azure disk",
    { azureDisk: { diskName: "d", diskURI: "/subscriptions/x", cachingMode: "ReadOnly", kind: "Managed" } },
    [],
  ],
  [
    "a managed Azure disk at a blob's address",
    { azureDisk: { diskName: "d", diskURI: "https://x", kind: "Managed" } },
    [
      'volume.azureDisk.diskURI: Unsupported value: "https://x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"',
    ],
  ],
  [
    "a dedicated Azure disk",
    { azureDisk: { diskName: "d", diskURI: "https://x", cachingMode: "None", kind: "Dedicated" } },
    [],
  ],
  [
    "a shared Azure disk at a managed address",
    { azureDisk: { diskName: "d", diskURI: "/subscriptions/x", kind: "Shared" } },
    [
      'volume.azureDisk.diskURI: Unsupported value: "/subscriptions/x": supported values: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"',
    ],
  ],
  [
    "an Azure disk of unknown kind and caching",
    { azureDisk: { diskName: "d", diskURI: "https://x", cachingMode: "Some", kind: "Some" } },
    [
      'volume.azureDisk.cachingMode: Unsupported value: "Some": supported values: "None", "ReadOnly", "ReadWrite"',
      'volume.azureDisk.kind: Unsupported value: "Some": supported values: "Dedicated", "Managed", "Shared"',
    ],
  ],
  ["a StorageOS volume", { storageos: { volumeName: "a", volumeNamespace: "b", secretRef: { name: "s" } } }, []],
  [
    "a StorageOS volume without a name, of a secret without one",
    { storageos: { secretRef: {} } },
    ["volume.storageos.volumeName: Required value", "volume.storageos.secretRef.name: Required value"],
  ],
  [
    "a StorageOS volume by names that are none",
    { storageos: { volumeName: "A", volumeNamespace: "B" } },
    [
      "volume.storageos.volumeName: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "volume.storageos.volumeNamespace: Invalid value: \"B\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  ["a CSI volume", { csi: { driver: "Csi.example.com", nodePublishSecretRef: { name: "s" } } }, []],
  [
    "a CSI volume without a driver, of a secret without a name",
    { csi: { nodePublishSecretRef: {} } },
    [
      "volume.csi.driver: Required value",
      "volume.csi.driver: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "volume.csi.nodePublishSecretRef.name: Required value",
    ],
  ],
  [
    "a CSI volume of a driver whose name is none",
    { csi: { driver: "a_b" } },
    [
      "volume.csi.driver: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a CSI volume of a secret whose name is none",
    { csi: { driver: "a", nodePublishSecretRef: { name: "S" } } },
    [
      "volume.csi.name: Invalid value: \"S\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
];

describe("a volume from elsewhere", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
