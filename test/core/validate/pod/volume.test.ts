import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  ["a Google disk", { gcePersistentDisk: { pdName: "d", partition: 255 } }, []],
  ["a Google disk without a name", { gcePersistentDisk: {} }, ["volume.persistentDisk.pdName: Required value"]],
  [
    "a Google disk's partition beyond 255",
    { gcePersistentDisk: { pdName: "d", partition: 256 } },
    ["volume.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive"],
  ],
  [
    "a Google disk's partition below 0",
    { gcePersistentDisk: { pdName: "d", partition: -1 } },
    ["volume.persistentDisk.partition: Invalid value: -1: must be between 1 and 255, inclusive"],
  ],
  [
    "an Amazon disk without an id",
    { awsElasticBlockStore: {} },
    ["volume.awsElasticBlockStore.volumeID: Required value"],
  ],
  [
    "an Amazon disk's partition beyond 255",
    { awsElasticBlockStore: { volumeID: "d", partition: 256 } },
    ["volume.awsElasticBlockStore.partition: Invalid value: 256: must be between 1 and 255, inclusive"],
  ],
  ["a claim without a name", { persistentVolumeClaim: {} }, ["volume.persistentVolumeClaim.claimName: Required value"]],
  [
    "a Rados device that says nothing",
    { rbd: { monitors: [] } },
    ["volume.rbd.monitors: Required value", "volume.rbd.image: Required value"],
  ],
  [
    "a Cinder disk without an id, of a secret without a name",
    { cinder: { secretRef: {} } },
    ["volume.cinder.volumeID: Required value", "volume.cinder.secretRef.name: Required value"],
  ],
  ["a Cinder disk", { cinder: { volumeID: "d" } }, []],
  ["a Ceph volume without monitors", { cephfs: {} }, ["volume.cephfs.monitors: Required value"]],
  [
    "an Azure share that says nothing",
    { azureFile: {} },
    ["volume.azureFile.secretName: Required value", "volume.azureFile.shareName: Required value"],
  ],
  ["a vSphere disk without a path", { vsphereVolume: {} }, ["volume.vsphereVolume.volumePath: Required value"]],
  ["a Photon disk without an id", { photonPersistentDisk: {} }, ["volume.photonPersistentDisk.pdID: Required value"]],
  ["a Portworx volume without an id", { portworxVolume: {} }, ["volume.portworxVolume.volumeID: Required value"]],
  [
    "a ScaleIO volume that says nothing",
    { scaleIO: {} },
    [
      "volume.scaleIO.gateway: Required value",
      "volume.scaleIO.system: Required value",
      "volume.scaleIO.volumeName: Required value",
    ],
  ],
  [
    "every source at once",
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
  ["a volume without a name", { name: "", emptyDir: {} }, ["volume.name: Required value"]],
  [
    "a volume by a name that is none",
    { name: "A.b", emptyDir: {} },
    [
      "volume.name: Invalid value: \"A.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "an iSCSI disk with an initiator whose names are 64 characters long",
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
    "an iSCSI disk with an initiator whose names are longer than 64 characters",
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
    "an iSCSI disk without an initiator whose names are longer than 64 characters",
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

describe("a volume", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
