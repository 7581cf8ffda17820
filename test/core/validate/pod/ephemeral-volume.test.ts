import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** Returns an ephemeral volume whose claim template has the required fields, and `more`. */
const claim = (more: Fields = {}, metadata?: Fields): Fields => ({
  ephemeral: {
    volumeClaimTemplate: {
      ...(metadata && { metadata }),
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...more },
    },
  },
});

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  ["a claim template with only the required fields is accepted", claim(), []],
  [
    "a claim template with all optional fields is accepted",
    claim(
      {
        accessModes: ["ReadOnlyMany", "ReadWriteMany"],
        selector: { matchLabels: { a: "b" } },
        storageClassName: "fast",
        volumeMode: "Block",
        dataSource: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" },
        dataSourceRef: { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" },
      },
      { labels: { a: "b" }, annotations: { a: "b" } },
    ),
    [],
  ],
  [
    "an ephemeral volume without a claim template is refused",
    { ephemeral: {} },
    ["volume.ephemeral.volumeClaimTemplate: Required value"],
  ],
  [
    "a claim template without a spec is refused",
    { ephemeral: { volumeClaimTemplate: {} } },
    [
      "volume.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required",
      "volume.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
    ],
  ],
  [
    "a claim template with a name is refused",
    claim({}, { name: "n", generateName: "", finalizers: [], generation: 0 }),
    ["volume.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"],
  ],
  [
    "a claim template with a uid and a deletionGracePeriodSeconds of 0 is refused",
    claim({}, { uid: "u", deletionGracePeriodSeconds: 0 }),
    [
      "volume.ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set",
      "volume.ephemeral.volumeClaimTemplate.metadata.deletionGracePeriodSeconds: Forbidden: cannot be set",
    ],
  ],
  [
    "a claim template with invalid labels and annotations is refused",
    claim({}, { labels: { "a b": "c d" }, annotations: { "a b": "c d" } }),
    [
      "volume.ephemeral.volumeClaimTemplate.metadata.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "volume.ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "volume.ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  ],
  [
    "a claim template without access modes is refused",
    claim({ accessModes: [] }),
    ["volume.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required"],
  ],
  [
    "a claim template with an unknown access mode is refused",
    claim({ accessModes: ["ReadOften"] }),
    [
      'volume.ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "ReadOften": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
    ],
  ],
  ["a claim template with only ReadWriteOncePod is accepted", claim({ accessModes: ["ReadWriteOncePod"] }), []],
  [
    "a claim template with ReadWriteOncePod and another access mode is refused",
    claim({ accessModes: ["ReadWriteOncePod", "ReadOnlyMany"] }),
    [
      "volume.ephemeral.volumeClaimTemplate.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
    ],
  ],
  [
    "a claim template with ReadWriteOncePod and an unknown access mode is refused",
    claim({ accessModes: ["ReadWriteOncePod", "x"] }),
    [
      'volume.ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
    ],
  ],
  [
    "a claim template with an invalid selector is refused",
    claim({ selector: { matchLabels: { "a b": "c" } } }),
    [
      "volume.ephemeral.volumeClaimTemplate.spec.selector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "a claim template without a storage request is refused",
    claim({ resources: {} }),
    ["volume.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"],
  ],

  [
    "a claim template with an invalid storageClassName is refused",
    claim({ storageClassName: "A" }),
    [
      "volume.ephemeral.volumeClaimTemplate.spec.storageClassName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a claim template with an unknown volumeMode is refused",
    claim({ volumeMode: "Some" }),
    [
      'volume.ephemeral.volumeClaimTemplate.spec.volumeMode: Unsupported value: "Some": supported values: "Block", "Filesystem"',
    ],
  ],
  [
    "a claim template with an empty dataSource is refused",
    claim({ dataSource: {} }),
    [
      "volume.ephemeral.volumeClaimTemplate.spec.dataSource.name: Required value",
      "volume.ephemeral.volumeClaimTemplate.spec.dataSource.kind: Required value",
      "volume.ephemeral.volumeClaimTemplate.spec.dataSource: Invalid value: \"\": must be 'PersistentVolumeClaim' when referencing the default apiGroup",
    ],
  ],
  [
    "a claim template with a PersistentVolumeClaim as dataSource is accepted",
    claim({ dataSource: { kind: "PersistentVolumeClaim", name: "c" } }),
    [],
  ],

  [
    "a claim template with an invalid API group and namespace in dataSourceRef is refused",
    claim({ dataSourceRef: { apiGroup: "A", kind: "K", name: "c", namespace: "B" } }),
    [
      "volume.ephemeral.volumeClaimTemplate.spec.dataSourceRef.apiGroup: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "volume.ephemeral.volumeClaimTemplate.spec.dataSourceRef.namespace: Invalid value: \"B\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "dataSource and dataSourceRef with different API groups are refused",
    claim({
      dataSource: { apiGroup: "a", kind: "K", name: "c" },
      dataSourceRef: { apiGroup: "b", kind: "K", name: "c" },
    }),
    [
      'volume.ephemeral.volumeClaimTemplate.spec: Invalid value: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource": must match dataSourceRef',
    ],
  ],

  [
    "a dataSource next to a dataSourceRef with a namespace is refused",
    claim({
      dataSource: { apiGroup: "a", kind: "K", name: "c" },
      dataSourceRef: { apiGroup: "a", kind: "K", name: "c", namespace: "n" },
    }),
    [
      'volume.ephemeral.volumeClaimTemplate.spec: Invalid value: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.dataSource": may not be specified when dataSourceRef.namespace is specified',
    ],
  ],

  [
    "an ephemeral volume with an invalid name and claim name is refused",
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
    "an ephemeral volume without a name is refused",
    {
      name: "",
      ephemeral: {
        volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
      },
    },
    ["volume.name: Required value"],
  ],
  [
    "an ephemeral volume with a second source and an invalid name is refused",
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

describe("validation of an ephemeral volume:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
