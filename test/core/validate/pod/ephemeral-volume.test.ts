import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  [
    "a claim that says no more than it must",
    {
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
      },
    },
    [],
  ],
  [
    "a claim that says everything",
    {
      ephemeral: {
        volumeClaimTemplate: {
          metadata: { labels: { a: "b" }, annotations: { a: "b" } },
          spec: {
            accessModes: ["ReadOnlyMany", "ReadWriteMany"],
            resources: { requests: { storage: "1Gi" } },
            selector: { matchLabels: { a: "b" } },
            storageClassName: "fast",
            volumeMode: "Block",
            dataSource: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" },
            dataSourceRef: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" },
          },
        },
      },
    },
    [],
  ],
  ["no claim", { ephemeral: {} }, ["volume.ephemeral.volumeClaimTemplate: Required value"]],
  [
    "a claim without a spec",
    { ephemeral: { volumeClaimTemplate: {} } },
    [
      "volume.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required",
      "volume.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
    ],
  ],
  [
    "a claim with a name",
    {
      ephemeral: {
        volumeClaimTemplate: {
          metadata: { name: "n", generateName: "", finalizers: [], generation: 0 },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        },
      },
    },
    ["volume.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"],
  ],
  [
    "a claim with a uid and no time to end in",
    {
      ephemeral: {
        volumeClaimTemplate: {
          metadata: { uid: "u", deletionGracePeriodSeconds: 0 },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        },
      },
    },
    [
      "volume.ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set",
      "volume.ephemeral.volumeClaimTemplate.metadata.deletionGracePeriodSeconds: Forbidden: cannot be set",
    ],
  ],
  [
    "a claim with labels and annotations that are none",
    {
      ephemeral: {
        volumeClaimTemplate: {
          metadata: { labels: { "a b": "c d" }, annotations: { "a b": "c d" } },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        },
      },
    },
    [
      "volume.ephemeral.volumeClaimTemplate.metadata.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "volume.ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "volume.ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  ],
  [
    "a claim without access modes",
    { ephemeral: { volumeClaimTemplate: { spec: { accessModes: [], resources: { requests: { storage: "1Gi" } } } } } },
    ["volume.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required"],
  ],
  [
    "a claim with an access mode that is none",
    {
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ["ReadOften"], resources: { requests: { storage: "1Gi" } } } },
      },
    },
    [
      'volume.ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "ReadOften": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
    ],
  ],
  [
    "a claim for one pod",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: { accessModes: ["ReadWriteOncePod"], resources: { requests: { storage: "1Gi" } } },
        },
      },
    },
    [],
  ],
  [
    "a claim for one pod and for many",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: { accessModes: ["ReadWriteOncePod", "ReadOnlyMany"], resources: { requests: { storage: "1Gi" } } },
        },
      },
    },
    [
      "volume.ephemeral.volumeClaimTemplate.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
    ],
  ],
  [
    "a claim for one pod and in a way that is none",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: { accessModes: ["ReadWriteOncePod", "x"], resources: { requests: { storage: "1Gi" } } },
        },
      },
    },
    [
      'volume.ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
    ],
  ],
  [
    "a claim by labels that are none",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            selector: { matchLabels: { "a b": "c" } },
          },
        },
      },
    },
    [
      "volume.ephemeral.volumeClaimTemplate.spec.selector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "a claim of no storage",
    { ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: {} } } } },
    ["volume.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"],
  ],
  [
    "a claim of less than nothing",
    {
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "-1" } } } },
      },
    },
    ['volume.ephemeral.volumeClaimTemplate.spec.resources[storage]: Invalid value: "-1": must be greater than zero'],
  ],
  [
    "a claim of a class that is none",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, storageClassName: "A" },
        },
      },
    },
    [
      "volume.ephemeral.volumeClaimTemplate.spec.storageClassName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a claim of the default class",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, storageClassName: "" },
        },
      },
    },
    [],
  ],
  [
    "a claim of a mode that is none",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, volumeMode: "Some" },
        },
      },
    },
    [
      'volume.ephemeral.volumeClaimTemplate.spec.volumeMode: Unsupported value: "Some": supported values: "Block", "Filesystem"',
    ],
  ],
  [
    "a claim made from nothing",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, dataSource: {} },
        },
      },
    },
    [
      "volume.ephemeral.volumeClaimTemplate.spec.dataSource.name: Required value",
      "volume.ephemeral.volumeClaimTemplate.spec.dataSource.kind: Required value",
      "volume.ephemeral.volumeClaimTemplate.spec.dataSource: Invalid value: \"\": must be 'PersistentVolumeClaim' when referencing the default apiGroup",
    ],
  ],
  [
    "a claim made from another claim",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            dataSource: { kind: "PersistentVolumeClaim", name: "c" },
          },
        },
      },
    },
    [],
  ],
  [
    "a claim made from an object of the core that is no claim",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            dataSourceRef: { kind: "Pod", name: "c" },
          },
        },
      },
    },
    [
      "volume.ephemeral.volumeClaimTemplate.spec.dataSourceRef: Invalid value: \"Pod\": must be 'PersistentVolumeClaim' when referencing the default apiGroup",
    ],
  ],
  [
    "a claim made from a group and a namespace that are none",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            dataSourceRef: { apiGroup: "A", kind: "K", name: "c", namespace: "B" },
          },
        },
      },
    },
    [
      "volume.ephemeral.volumeClaimTemplate.spec.dataSourceRef.apiGroup: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "volume.ephemeral.volumeClaimTemplate.spec.dataSourceRef.namespace: Invalid value: \"B\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "a claim made from two things of another group",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            dataSource: { apiGroup: "a", kind: "K", name: "c" },
            dataSourceRef: { apiGroup: "b", kind: "K", name: "c" },
          },
        },
      },
    },
    [
      'volume.ephemeral.volumeClaimTemplate.spec: Invalid value: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource": must match dataSourceRef',
    ],
  ],
  [
    "a claim made from two things of another kind",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            dataSource: { apiGroup: "a", kind: "K", name: "c" },
            dataSourceRef: { apiGroup: "a", kind: "L", name: "c" },
          },
        },
      },
    },
    [
      'volume.ephemeral.volumeClaimTemplate.spec: Invalid value: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource": must match dataSourceRef',
    ],
  ],
  [
    "a claim made from two things of another name",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            dataSource: { apiGroup: "a", kind: "K", name: "c" },
            dataSourceRef: { apiGroup: "a", kind: "K", name: "d" },
          },
        },
      },
    },
    [
      'volume.ephemeral.volumeClaimTemplate.spec: Invalid value: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource": must match dataSourceRef',
    ],
  ],
  [
    "a claim made from something of another namespace twice",
    {
      ephemeral: {
        volumeClaimTemplate: {
          spec: {
            accessModes: ["ReadWriteOnce"],
            resources: { requests: { storage: "1Gi" } },
            dataSource: { apiGroup: "a", kind: "K", name: "c" },
            dataSourceRef: { apiGroup: "a", kind: "K", name: "c", namespace: "n" },
          },
        },
      },
    },
    [
      'volume.ephemeral.volumeClaimTemplate.spec: Invalid value: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource": may not be specified when dataSourceRef.namespace is specified',
    ],
  ],
  [
    "a claim whose name is longer than a label",
    {
      name: "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv",
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
      },
    },
    [],
  ],
  [
    "a claim whose name is none",
    {
      name: "V",
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
      },
    },
    [
      "volume.name: Invalid value: \"V\": PVC name \"test-V\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "volume.name: Invalid value: \"V\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "a claim of a volume without a name",
    {
      name: "",
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
      },
    },
    ["volume.name: Required value"],
  ],
  [
    "a second source beside the claim",
    {
      name: "V",
      emptyDir: {},
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
      },
    },
    [
      "volume.ephemeral: Forbidden: may not specify more than 1 volume type",
      "volume.name: Invalid value: \"V\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
];

describe("a volume that brings its claim", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
