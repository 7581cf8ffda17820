import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  ["an NFS volume is accepted", { nfs: { server: "s", path: "/a" } }, []],
  [
    "an NFS volume without a server and a path is refused",
    { nfs: {} },
    [
      "volume.nfs.server: Required value",
      "volume.nfs.path: Required value",
      'volume.nfs.path: Invalid value: "": must be an absolute path',
    ],
  ],
  [
    "an iSCSI volume with an iqn name is accepted",
    { iscsi: { targetPortal: "p", iqn: "iqn.2001-04.com.example:storage.disk1", lun: 255 } },
    [],
  ],
  [
    "an iSCSI volume with an eui name is accepted",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", lun: 0 } },
    [],
  ],
  [
    "an iSCSI volume with a naa name is accepted",
    { iscsi: { targetPortal: "p", iqn: "naa.0123456789abcdef0123456789abcdef" } },
    [],
  ],
  [
    "an empty iSCSI volume is refused",
    { iscsi: {} },
    ["volume.iscsi.targetPortal: Required value", "volume.iscsi.iqn: Required value"],
  ],
  [
    "an iSCSI volume with a name that is not iqn, eui or naa is refused",
    { iscsi: { targetPortal: "p", iqn: "abc.1" } },
    ['volume.iscsi.iqn: Invalid value: "abc.1": must be valid format starting with iqn, eui, or naa'],
  ],
  [
    "an iSCSI lun above 255 is refused",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", lun: 256 } },
    ["volume.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"],
  ],
  [
    "an iSCSI lun below 0 is refused",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", lun: -1 } },
    ["volume.iscsi.lun: Invalid value: -1: must be between 0 and 255, inclusive"],
  ],
  [
    "an iSCSI volume with chapAuthDiscovery and no secret is refused",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", chapAuthDiscovery: true } },
    ["volume.iscsi.secretRef: Required value"],
  ],
  [
    "an iSCSI volume with chapAuthSession and no secret is refused",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", chapAuthSession: true } },
    ["volume.iscsi.secretRef: Required value"],
  ],
  [
    "an iSCSI volume with chapAuthSession and a secret is accepted",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", chapAuthSession: true, secretRef: { name: "s" } } },
    [],
  ],
  [
    "an iSCSI volume with an invalid initiatorName is refused",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", initiatorName: "x" } },
    ['volume.iscsi.initiatorname: Invalid value: "x": must be valid format starting with iqn, eui, or naa'],
  ],
  [
    "an iSCSI volume with an iqn as initiatorName is accepted",
    { iscsi: { targetPortal: "p", iqn: "eui.0123456789abcdef", initiatorName: "iqn.2001-04.com.example:host" } },
    [],
  ],
  [
    "a GlusterFS volume without endpoints and a path is refused",
    { glusterfs: {} },
    ["volume.glusterfs.endpoints: Required value", "volume.glusterfs.path: Required value"],
  ],
  [
    "a Flocker volume without a dataset is refused",
    { flocker: {} },
    ["volume.flocker: Required value: one of datasetName and datasetUUID is required"],
  ],
  ["a Flocker volume with a datasetName is accepted", { flocker: { datasetName: "d" } }, []],
  ["a Flocker volume with a datasetUUID is accepted", { flocker: { datasetUUID: "d" } }, []],
  [
    "a Flocker volume with both datasetName and datasetUUID is refused",
    { flocker: { datasetName: "d", datasetUUID: "u" } },
    ['volume.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously'],
  ],
  [
    "a Flocker datasetName with a slash is refused",
    { flocker: { datasetName: "a/b" } },
    ["volume.flocker.datasetName: Invalid value: \"a/b\": must not contain '/'"],
  ],
  [
    "a Quobyte volume with several registries is accepted",
    { quobyte: { registry: "a:1,[::1]:2,:3", volume: "v" } },
    [],
  ],
  [
    "a Quobyte volume without a registry is refused",
    { quobyte: { volume: "v" } },
    ["volume.quobyte.registry: Required value: must be a host:port pair or multiple pairs separated by commas"],
  ],
  [
    "a Quobyte volume without a volume name is refused",
    { quobyte: { registry: "a:1" } },
    ["volume.quobyte.volume: Required value"],
  ],
  [
    "a Quobyte registry without a port and one with two ports get one error each",
    { quobyte: { registry: "a,b:1:2,c:3", volume: "v" } },
    [
      'volume.quobyte.registry: Invalid value: "a,b:1:2,c:3": must be a host:port pair or multiple pairs separated by commas',
      'volume.quobyte.registry: Invalid value: "a,b:1:2,c:3": must be a host:port pair or multiple pairs separated by commas',
    ],
  ],
  [
    "a Fibre Channel volume without targets is refused",
    { fc: {} },
    ["volume.fc.targetWWNs: Required value: must specify either targetWWNs or wwids, but not both"],
  ],
  ["a Fibre Channel volume with wwids is accepted", { fc: { wwids: ["w"] } }, []],
  [
    "a Fibre Channel volume with both wwids and targetWWNs is refused",
    { fc: { wwids: ["w"], targetWWNs: ["t"], lun: 1 } },
    ['volume.fc.targetWWNs: Invalid value: ["t"]: targetWWNs and wwids can not be specified simultaneously'],
  ],
  [
    "a Fibre Channel volume with targetWWNs and no lun is refused",
    { fc: { targetWWNs: ["t"] } },
    ["volume.fc.lun: Required value: lun is required if targetWWNs is specified"],
  ],
  [
    "a flexVolume without a driver is refused",
    { flexVolume: { options: { a: "b" } } },
    ["volume.flexVolume.driver: Required value"],
  ],
  [
    "flexVolume options in reserved domains are refused",
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
    "an empty azureDisk is refused",
    { azureDisk: {} },
    ["volume.azureDisk.diskName: Required value", "volume.azureDisk.diskURI: Required value"],
  ],
  [
    "a managed Azure disk is accepted",
    { azureDisk: { diskName: "d", diskURI: "/subscriptions/x", cachingMode: "ReadOnly", kind: "Managed" } },
    [],
  ],
  [
    "a managed Azure disk with the URI of a blob is refused",
    { azureDisk: { diskName: "d", diskURI: "https://x", kind: "Managed" } },
    [
      'volume.azureDisk.diskURI: Unsupported value: "https://x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"',
    ],
  ],
  [
    "a dedicated Azure disk is accepted",
    { azureDisk: { diskName: "d", diskURI: "https://x", cachingMode: "None", kind: "Dedicated" } },
    [],
  ],
  [
    "a shared Azure disk with the URI of a managed disk is refused",
    { azureDisk: { diskName: "d", diskURI: "/subscriptions/x", kind: "Shared" } },
    [
      'volume.azureDisk.diskURI: Unsupported value: "/subscriptions/x": supported values: "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"',
    ],
  ],
  [
    "an Azure disk with an unknown kind and an unknown cachingMode is refused",
    { azureDisk: { diskName: "d", diskURI: "https://x", cachingMode: "Some", kind: "Some" } },
    [
      'volume.azureDisk.cachingMode: Unsupported value: "Some": supported values: "None", "ReadOnly", "ReadWrite"',
      'volume.azureDisk.kind: Unsupported value: "Some": supported values: "Dedicated", "Managed", "Shared"',
    ],
  ],
  [
    "a StorageOS volume is accepted",
    { storageos: { volumeName: "a", volumeNamespace: "b", secretRef: { name: "s" } } },
    [],
  ],
  [
    "a StorageOS volume without a name and with a secret without a name is refused",
    { storageos: { secretRef: {} } },
    ["volume.storageos.volumeName: Required value", "volume.storageos.secretRef.name: Required value"],
  ],
  [
    "a StorageOS volume with an invalid name and an invalid namespace is refused",
    { storageos: { volumeName: "A", volumeNamespace: "B" } },
    [
      "volume.storageos.volumeName: Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "volume.storageos.volumeNamespace: Invalid value: \"B\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  ["a CSI volume is accepted", { csi: { driver: "Csi.example.com", nodePublishSecretRef: { name: "s" } } }, []],
  [
    "a CSI volume without a driver and with a secret without a name is refused",
    { csi: { nodePublishSecretRef: {} } },
    [
      "volume.csi.driver: Required value",
      "volume.csi.driver: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "volume.csi.nodePublishSecretRef.name: Required value",
    ],
  ],
  [
    "a CSI volume with an invalid driver name is refused",
    { csi: { driver: "a_b" } },
    [
      "volume.csi.driver: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a CSI volume with an invalid secret name is refused",
    { csi: { driver: "a", nodePublishSecretRef: { name: "S" } } },
    [
      "volume.csi.name: Invalid value: \"S\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
];

const invalidIqns: readonly (readonly [sentence: string, iqn: string])[] = [
  ["an iSCSI iqn without a date is refused", "iqn.com.example:disk"],
  ["an iSCSI iqn without its last part is refused", "iqn.2001-04.com.example"],
  ["an iSCSI iqn with a comma is refused", "iqn.2001-04.com.example:a,b"],
  ["an iSCSI iqn with a year of three digits is refused", "iqn.201-04.com.example:a"],
  ["an iSCSI iqn with a month of one digit is refused", "iqn.2001-4.com.example:a"],
  ["an iSCSI eui that is too short is refused", "eui.0123456789abcde"],
  ["an iSCSI eui that is too long is refused", "eui.0123456789abcdef0"],
  ["an iSCSI eui with a second prefix is refused", "eui.eui.0123456789abcdef"],
  ["an iSCSI naa that is too short is refused", "naa.0123456789abcdef0123456789abcde"],
  ["an iSCSI naa that is too long is refused", "naa.0123456789abcdef0123456789abcdef0"],
  ["an iSCSI naa with a second prefix is refused", "naa.naa.0123456789abcdef0123456789abcdef"],
];

describe("validation of network volumes:", () => {
  it.each(invalidIqns)("%s", (_sentence, iqn) => {
    const error = `volume.iscsi.iqn: Invalid value: "${iqn}": must be valid format`;
    expect(errorsOfVolume({ iscsi: { targetPortal: "p", iqn } })).toEqual([error]);
  });

  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
