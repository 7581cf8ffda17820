import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

const VOLUMES: readonly Fields[] = [
  { name: "v", emptyDir: {} },
  { name: "claim", persistentVolumeClaim: { claimName: "c" } },
  { name: "img", image: { reference: "r", pullPolicy: "Always" } },
  {
    name: "eph",
    ephemeral: {
      volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
    },
  },
];

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  [
    "mounts and devices",
    {
      volumeMounts: [{ name: "v", mountPath: "/a", subPath: "b", mountPropagation: "HostToContainer" }],
      volumeDevices: [
        { name: "claim", devicePath: "/d" },
        { name: "eph", devicePath: "/e" },
      ],
    },
    [],
  ],
  [
    "a mount that says nothing",
    { volumeMounts: [{}] },
    [
      "container.volumeMounts[0].name: Required value",
      'container.volumeMounts[0].name: Not found: ""',
      "container.volumeMounts[0].mountPath: Required value",
    ],
  ],
  [
    "a mount of a volume that is not there",
    { volumeMounts: [{ name: "w", mountPath: "/a" }] },
    ['container.volumeMounts[0].name: Not found: "w"'],
  ],
  [
    "two mounts without a path",
    { volumeMounts: [{ name: "v" }, { name: "v" }] },
    [
      "container.volumeMounts[0].mountPath: Required value",
      "container.volumeMounts[1].mountPath: Required value",
      'container.volumeMounts[1].mountPath: Invalid value: "": must be unique',
    ],
  ],
  [
    "a mount that is a device as well",
    { volumeMounts: [{ name: "claim", mountPath: "/d" }], volumeDevices: [{ name: "claim", devicePath: "/d" }] },
    [
      'container.volumeMounts[0].name: Invalid value: "claim": must not already exist in volumeDevices',
      'container.volumeMounts[0].mountPath: Invalid value: "/d": must not already exist as a path in volumeDevices',
      'container.volumeDevices[0].name: Invalid value: "claim": must not already exist in volumeMounts',
      'container.volumeDevices[0].devicePath: Invalid value: "/d": must not already exist as a path in volumeMounts',
    ],
  ],
  [
    "a mount at the path of a device",
    { volumeMounts: [{ name: "v", mountPath: "/d" }], volumeDevices: [{ name: "claim", devicePath: "/d" }] },
    [
      'container.volumeMounts[0].mountPath: Invalid value: "/d": must not already exist as a path in volumeDevices',
      'container.volumeDevices[0].devicePath: Invalid value: "/d": must not already exist as a path in volumeMounts',
    ],
  ],
  [
    "a part of a volume at a path that leads upwards",
    { volumeMounts: [{ name: "v", mountPath: "/a", subPath: "../b" }] },
    ["container.volumeMounts.subPath: Invalid value: \"../b\": must not contain '..'"],
  ],
  [
    "a part of a volume at an absolute path",
    { volumeMounts: [{ name: "v", mountPath: "/a", subPathExpr: "/$(A)" }] },
    ['container.volumeMounts.subPathExpr: Invalid value: "/$(A)": must be a relative path'],
  ],
  [
    "a part of a volume in two ways",
    { volumeMounts: [{ name: "v", mountPath: "/a", subPath: "a", subPathExpr: "$(A)" }] },
    ['container.volumeMounts[0].subPathExpr: Invalid value: "$(A)": subPathExpr and subPath are mutually exclusive'],
  ],
  [
    "a part of an image",
    {
      volumeMounts: [
        { name: "img", mountPath: "/a", subPath: "a" },
        { name: "img", mountPath: "/b", subPathExpr: "$(A)" },
      ],
    },
    [
      'container.volumeMounts[0].subPath: Invalid value: "a": not allowed in image volume sources',
      'container.volumeMounts[1].subPathExpr: Invalid value: "$(A)": not allowed in image volume sources',
    ],
  ],
  ["the whole of an image", { volumeMounts: [{ name: "img", mountPath: "/a" }] }, []],
  [
    "propagation of an unknown kind",
    { volumeMounts: [{ name: "v", mountPath: "/a", mountPropagation: "Some" }] },
    [
      'container.volumeMounts.mountPropagation: Unsupported value: "Some": supported values: "Bidirectional", "HostToContainer", "None"',
    ],
  ],
  [
    "propagation both ways without the right to it",
    { volumeMounts: [{ name: "v", mountPath: "/a", mountPropagation: "Bidirectional" }] },
    [
      "container.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
    ],
  ],
  [
    "propagation both ways",
    {
      volumeMounts: [{ name: "v", mountPath: "/a", mountPropagation: "Bidirectional" }],
      securityContext: { privileged: true },
    },
    [],
  ],
  [
    "no propagation, read-only all the way",
    {
      volumeMounts: [
        { name: "v", mountPath: "/a", readOnly: true, mountPropagation: "None", recursiveReadOnly: "Enabled" },
        { name: "v", mountPath: "/b", readOnly: true, recursiveReadOnly: "IfPossible" },
      ],
    },
    [],
  ],
  [
    "read-only all the way, but not read-only",
    { volumeMounts: [{ name: "v", mountPath: "/a", recursiveReadOnly: "Enabled" }] },
    ["container.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"],
  ],
  [
    "read-only all the way with propagation",
    {
      volumeMounts: [
        {
          name: "v",
          mountPath: "/a",
          readOnly: true,
          mountPropagation: "HostToContainer",
          recursiveReadOnly: "Enabled",
        },
      ],
    },
    [
      "container.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified",
    ],
  ],
  ["not read-only all the way", { volumeMounts: [{ name: "v", mountPath: "/a", recursiveReadOnly: "Disabled" }] }, []],
  [
    "read-only in an unknown way",
    { volumeMounts: [{ name: "v", mountPath: "/a", recursiveReadOnly: "Some" }] },
    [
      'container.volumeMounts.recursiveReadOnly: Unsupported value: "Some": supported values: "Disabled", "Enabled", "IfPossible"',
    ],
  ],
  [
    "a device that says nothing",
    { volumeDevices: [{}] },
    [
      "container.volumeDevices[0].name: Required value",
      'container.volumeDevices[0].name: Not found: ""',
      "container.volumeDevices[0].devicePath: Required value",
    ],
  ],
  [
    "two devices that say nothing",
    { volumeDevices: [{}, {}] },
    [
      "container.volumeDevices[0].name: Required value",
      'container.volumeDevices[0].name: Not found: ""',
      "container.volumeDevices[0].devicePath: Required value",
      "container.volumeDevices[1].name: Required value",
      'container.volumeDevices[1].name: Not found: ""',
      "container.volumeDevices[1].devicePath: Required value",
      'container.volumeDevices[1].devicePath: Invalid value: "": must be unique',
    ],
  ],
  [
    "a device of a volume that is not there",
    { volumeDevices: [{ name: "w", devicePath: "/d" }] },
    ['container.volumeDevices[0].name: Not found: "w"'],
  ],
  [
    "a device twice",
    {
      volumeDevices: [
        { name: "claim", devicePath: "/d" },
        { name: "claim", devicePath: "/d" },
      ],
    },
    [
      'container.volumeDevices[1].name: Invalid value: "claim": must be unique',
      'container.volumeDevices[1].devicePath: Invalid value: "/d": must be unique',
    ],
  ],
  [
    "a device at a path that leads upwards, twice",
    {
      volumeDevices: [
        { name: "claim", devicePath: "/../d" },
        { name: "eph", devicePath: "/../d" },
      ],
    },
    [
      "container.volumeDevices[0].devicePath: Invalid value: \"/../d\": can not contain backsteps ('..')",
      "container.volumeDevices[1].devicePath: Invalid value: \"/../d\": can not contain backsteps ('..')",
    ],
  ],
];

describe("the mounts of a container", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given, VOLUMES)).toEqual(errors);
  });
});
