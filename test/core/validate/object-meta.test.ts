import { describe, expect, it } from "vitest";
import { errorsOf, sidecarSet } from "./fixture.ts";

type Metadata = Readonly<Record<string, unknown>>;

const rows: readonly (readonly [sentence: string, given: Metadata, errors: readonly string[]])[] = [
  [
    "a SidecarSet with two controllers as owners is refused",
    {
      ownerReferences: [
        { apiVersion: "apps/v1", kind: "Deployment", name: "d", uid: "u" },
        { apiVersion: "apps/v1", kind: "Deployment", name: "d", uid: "u", controller: true },
        { apiVersion: "apps/v1", kind: "Job", name: "j", uid: "u", controller: true },
      ],
    },
    [
      'metadata.ownerReferences: Invalid value: [{"apiVersion":"apps/v1","kind":"Deployment","name":"d","uid":"u"},{"apiVersion":"apps/v1","kind":"Deployment","name":"d","uid":"u","controller":true},{"apiVersion":"apps/v1","kind":"Job","name":"j","uid":"u","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for Deployment/d and Job/j',
    ],
  ],
  [
    "an empty owner reference is refused",
    { ownerReferences: [{}] },
    [
      'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
      'metadata.ownerReferences.kind: Invalid value: "": kind must not be empty',
      'metadata.ownerReferences.name: Invalid value: "": name must not be empty',
      'metadata.ownerReferences.uid: Invalid value: "": uid must not be empty',
    ],
  ],
  [
    "an owner reference with two slashes in its apiVersion is refused",
    { ownerReferences: [{ apiVersion: "a/b/c", kind: "Deployment", name: "d", uid: "u" }] },
    ['metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty'],
  ],
  [
    "an owner reference to an object of the core API group is accepted",
    { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "d", uid: "u" }] },
    [],
  ],
  [
    "an owner reference to an Event of the core API group is refused",
    { ownerReferences: [{ apiVersion: "v1", kind: "Event", name: "d", uid: "u" }] },
    [
      'metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"d","uid":"u"}: /v1, Kind=Event is disallowed from being an owner',
    ],
  ],
  [
    "an owner reference to an Event of another API group is accepted",
    { ownerReferences: [{ apiVersion: "events.k8s.io/v1", kind: "Event", name: "d", uid: "u" }] },
    [],
  ],
  [
    "a SidecarSet with the finalizer orphan and one of another domain is accepted",
    { finalizers: ["orphan", "example.com/a"] },
    [],
  ],
  ["a SidecarSet with the finalizer foregroundDeletion is accepted", { finalizers: ["foregroundDeletion"] }, []],
  [
    "a SidecarSet with the finalizers orphan and foregroundDeletion is refused",
    { finalizers: ["orphan", "foregroundDeletion"] },
    [
      'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set',
    ],
  ],
  [
    "managedFields with valid operations are accepted",
    {
      managedFields: [
        { manager: "kubectl", operation: "Apply", fieldsType: "FieldsV1", subresource: "status" },
        { operation: "Update" },
      ],
    },
    [],
  ],
  [
    "managedFields without an operation are refused",
    { managedFields: [{}] },
    ['metadata.managedFields[0].operation: Invalid value: "": must be `Apply` or `Update`'],
  ],
  [
    "managedFields with an unknown operation and an unknown fieldsType are refused",
    { managedFields: [{ operation: "Apply" }, { operation: "Read", fieldsType: "FieldsV2" }] },
    [
      'metadata.managedFields[1].operation: Invalid value: "Read": must be `Apply` or `Update`',
      'metadata.managedFields[1].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`',
    ],
  ],
  [
    "a SidecarSet with an invalid generateName is refused",
    { generateName: "logs." },
    [
      "metadata.generateName: Invalid value: \"logs.\": sidecarset name must consist of alphanumeric characters or '-' (e.g. 'example-com', regex used for validation is '^[a-zA-Z0-9\\-]+$')",
    ],
  ],
  [
    "a generation below 0 is refused",
    { generation: -1 },
    ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
  ],
  [
    "invalid labels and annotations are refused",
    { labels: { "a b": "c d" }, annotations: { "A B": "c d" } },
    [
      "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "metadata.labels: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      "metadata.annotations: Invalid value: \"A B\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  ["an annotation key in capitals is accepted", { annotations: { "Example.COM/A": "free text" } }, []],
  [
    "a name with a dot is refused",
    { name: "a.b" },
    [
      "metadata.name: Invalid value: \"a.b\": sidecarset name must consist of alphanumeric characters or '-' (e.g. 'example-com', regex used for validation is '^[a-zA-Z0-9\\-]+$')",
    ],
  ],
  ["a name in capitals is accepted", { name: "A-1" }, []],
];

describe("validation of the metadata of a SidecarSet:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOf(sidecarSet({}, given))).toEqual(errors);
  });
});

describe("the metadata of a SidecarSet:", () => {
  const size = 256 * 1024;
  const sizes: readonly (readonly [sentence: string, metadata: Metadata, errors: readonly string[]])[] = [
    ["annotations of 256 KiB are accepted", { annotations: { a: "x".repeat(size - 1) } }, []],
    [
      "annotations that exceed 256 KiB by one byte with their keys are refused",
      { annotations: { a: "x".repeat(size - 3), b: "é" } },
      ["metadata.annotations: Too long: may not be more than 262144 bytes"],
    ],
    [
      "a manager of 128 bytes and a subresource of 256 bytes are accepted",
      { managedFields: [{ operation: "Apply", manager: "m".repeat(128), subresource: "s".repeat(256) }] },
      [],
    ],
    [
      "a manager of 129 bytes and a subresource of 257 bytes are refused",
      { managedFields: [{ operation: "Apply", manager: "m".repeat(129), subresource: "s".repeat(257) }] },
      [
        "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
        "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
      ],
    ],
    ["a name of 63 characters is accepted", { name: "a".repeat(63) }, []],
    [
      "a name of 64 characters is refused",
      { name: "a".repeat(64) },
      [`metadata.name: Invalid value: "${"a".repeat(64)}": must be no more than 63 characters`],
    ],
  ];
  it.each(sizes)("%s", (_sentence, given, errors) => {
    expect(errorsOf(sidecarSet({}, given))).toEqual(errors);
  });
});
