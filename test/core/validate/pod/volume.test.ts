import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  ["a gcePersistentDisk volume is accepted", { gcePersistentDisk: { pdName: "d", partition: 255 } }, []],
  [
    "a gcePersistentDisk without a name is refused",
    { gcePersistentDisk: {} },
    ["volume.persistentDisk.pdName: Required value"],
  ],
  [
    "a gcePersistentDisk with a partition above 255 is refused",
    { gcePersistentDisk: { pdName: "d", partition: 256 } },
    ["volume.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive"],
  ],
  [
    "a gcePersistentDisk with a partition below 0 is refused",
    { gcePersistentDisk: { pdName: "d", partition: -1 } },
    ["volume.persistentDisk.partition: Invalid value: -1: must be between 1 and 255, inclusive"],
  ],
  [
    "an awsElasticBlockStore without an id is refused",
    { awsElasticBlockStore: {} },
    ["volume.awsElasticBlockStore.volumeID: Required value"],
  ],
  [
    "a persistentVolumeClaim without a name is refused",
    { persistentVolumeClaim: {} },
    ["volume.persistentVolumeClaim.claimName: Required value"],
  ],
  [
    "an rbd volume without monitors and an image is refused",
    { rbd: { monitors: [] } },
    ["volume.rbd.monitors: Required value", "volume.rbd.image: Required value"],
  ],
  [
    "a Cinder volume without an id and with a secret without a name is refused",
    { cinder: { secretRef: {} } },
    ["volume.cinder.volumeID: Required value", "volume.cinder.secretRef.name: Required value"],
  ],
  ["a Cinder volume is accepted", { cinder: { volumeID: "d" } }, []],
  ["a CephFS volume without monitors is refused", { cephfs: {} }, ["volume.cephfs.monitors: Required value"]],
  [
    "an empty azureFile is refused",
    { azureFile: {} },
    ["volume.azureFile.secretName: Required value", "volume.azureFile.shareName: Required value"],
  ],
  [
    "a vSphere volume without a path is refused",
    { vsphereVolume: {} },
    ["volume.vsphereVolume.volumePath: Required value"],
  ],
  [
    "a photonPersistentDisk without an id is refused",
    { photonPersistentDisk: {} },
    ["volume.photonPersistentDisk.pdID: Required value"],
  ],
  [
    "a Portworx volume without an id is refused",
    { portworxVolume: {} },
    ["volume.portworxVolume.volumeID: Required value"],
  ],
  [
    "an empty ScaleIO volume is refused",
    { scaleIO: {} },
    [
      "volume.scaleIO.gateway: Required value",
      "volume.scaleIO.system: Required value",
      "volume.scaleIO.volumeName: Required value",
    ],
  ],
  [
    "a volume with every source gets an error for each source after the first",
    {
      emptyDir: {},
      hostPath: {},
      gitRepo: {},
      gcePersistentDisk: {},
      awsElasticBlockStore: {},
      secret: {},
      nfs: {},
      iscsi: {},
      glusterfs: {},
      flocker: {},
      persistentVolumeClaim: {},
      rbd: {},
      cinder: {},
      cephfs: {},
      quobyte: {},
      downwardAPI: {},
      fc: {},
      flexVolume: {},
      configMap: {},
      azureFile: {},
      vsphereVolume: {},
      photonPersistentDisk: {},
      portworxVolume: {},
      azureDisk: {},
      storageos: {},
      projected: {},
      scaleIO: {},
      csi: {},
      ephemeral: {},
      image: {},
    },
    [
      "volume.hostPath: Forbidden: may not specify more than 1 volume type",
      "volume.gitRepo: Forbidden: may not specify more than 1 volume type",
      "volume.gcePersistentDisk: Forbidden: may not specify more than 1 volume type",
      "volume.awsElasticBlockStore: Forbidden: may not specify more than 1 volume type",
      "volume.secret: Forbidden: may not specify more than 1 volume type",
      "volume.nfs: Forbidden: may not specify more than 1 volume type",
      "volume.iscsi: Forbidden: may not specify more than 1 volume type",
      "volume.glusterfs: Forbidden: may not specify more than 1 volume type",
      "volume.flocker: Forbidden: may not specify more than 1 volume type",
      "volume.persistentVolumeClaim: Forbidden: may not specify more than 1 volume type",
      "volume.rbd: Forbidden: may not specify more than 1 volume type",
      "volume.cinder: Forbidden: may not specify more than 1 volume type",
      "volume.cephFS: Forbidden: may not specify more than 1 volume type",
      "volume.quobyte: Forbidden: may not specify more than 1 volume type",
      "volume.downwarAPI: Forbidden: may not specify more than 1 volume type",
      "volume.fc: Forbidden: may not specify more than 1 volume type",
      "volume.flexVolume: Forbidden: may not specify more than 1 volume type",
      "volume.configMap: Forbidden: may not specify more than 1 volume type",
      "volume.azureFile: Forbidden: may not specify more than 1 volume type",
      "volume.vsphereVolume: Forbidden: may not specify more than 1 volume type",
      "volume.photonPersistentDisk: Forbidden: may not specify more than 1 volume type",
      "volume.portworxVolume: Forbidden: may not specify more than 1 volume type",
      "volume.azureDisk: Forbidden: may not specify more than 1 volume type",
      "volume.storageos: Forbidden: may not specify more than 1 volume type",
      "volume.projected: Forbidden: may not specify more than 1 volume type",
      "volume.scaleIO: Forbidden: may not specify more than 1 volume type",
      "volume.csi: Forbidden: may not specify more than 1 volume type",
      "volume.ephemeral: Forbidden: may not specify more than 1 volume type",
      "volume.image: Forbidden: may not specify more than 1 volume type",
    ],
  ],
  ["a volume without a name is refused", { name: "", emptyDir: {} }, ["volume.name: Required value"]],
  [
    "a volume with an invalid name is refused",
    { name: "A.b", emptyDir: {} },
    [
      "volume.name: Invalid value: \"A.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "an iSCSI volume with an initiatorName is accepted with a volume name and a portal of 64 characters together",
    {
      name: "volume",
      iscsi: {
        targetPortal: "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppp",
        iqn: "eui.0123456789abcdef",
        initiatorName: "eui.0123456789abcdef",
      },
    },
    [],
  ],
  [
    "an iSCSI volume with an initiatorName is refused with a volume name and a portal of 65 characters together",
    {
      name: "volume",
      iscsi: {
        targetPortal: "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppp",
        iqn: "eui.0123456789abcdef",
        initiatorName: "eui.0123456789abcdef",
      },
    },
    [
      'volume.name: Invalid value: "volume": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.',
    ],
  ],
  [
    "an iSCSI volume without an initiatorName is accepted with a volume name and a portal of 65 characters together",
    {
      name: "volume",
      iscsi: {
        targetPortal: "pppppppppppppppppppppppppppppppppppppppppppppppppppppppppp",
        iqn: "eui.0123456789abcdef",
      },
    },
    [],
  ],
];

describe("validation of a volume:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
