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

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  [
    "a container with a mount and two devices is accepted",
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
    "an empty mount is refused",
    { volumeMounts: [{}] },
    [
      "container.volumeMounts[0].name: Required value",
      'container.volumeMounts[0].name: Not found: ""',
      "container.volumeMounts[0].mountPath: Required value",
    ],
  ],
  [
    "two mounts without a path are refused",
    { volumeMounts: [{ name: "v" }, { name: "v" }] },
    [
      "container.volumeMounts[0].mountPath: Required value",
      "container.volumeMounts[1].mountPath: Required value",
      'container.volumeMounts[1].mountPath: Invalid value: "": must be unique',
    ],
  ],
  [
    "a volume that is both mounted and used as a device is refused",
    { volumeMounts: [{ name: "claim", mountPath: "/d" }], volumeDevices: [{ name: "claim", devicePath: "/d" }] },
    [
      'container.volumeMounts[0].name: Invalid value: "claim": must not already exist in volumeDevices',
      'container.volumeMounts[0].mountPath: Invalid value: "/d": must not already exist as a path in volumeDevices',
      'container.volumeDevices[0].name: Invalid value: "claim": must not already exist in volumeMounts',
      'container.volumeDevices[0].devicePath: Invalid value: "/d": must not already exist as a path in volumeMounts',
    ],
  ],
  [
    "a subPath that leaves its volume is refused",
    { volumeMounts: [{ name: "v", mountPath: "/a", subPath: "../b" }] },
    ["container.volumeMounts.subPath: Invalid value: \"../b\": must not contain '..'"],
  ],
  [
    "an absolute subPathExpr is refused",
    { volumeMounts: [{ name: "v", mountPath: "/a", subPathExpr: "/$(A)" }] },
    ['container.volumeMounts.subPathExpr: Invalid value: "/$(A)": must be a relative path'],
  ],
  [
    "a mount with both subPath and subPathExpr is refused",
    { volumeMounts: [{ name: "v", mountPath: "/a", subPath: "a", subPathExpr: "$(A)" }] },
    ['container.volumeMounts[0].subPathExpr: Invalid value: "$(A)": subPathExpr and subPath are mutually exclusive'],
  ],
  [
    "subPath and subPathExpr of an image volume are refused",
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
  [
    "an unknown mountPropagation is refused",
    { volumeMounts: [{ name: "v", mountPath: "/a", mountPropagation: "Some" }] },
    [
      'container.volumeMounts.mountPropagation: Unsupported value: "Some": supported values: "Bidirectional", "HostToContainer", "None"',
    ],
  ],
  [
    "Bidirectional propagation in an unprivileged container is refused",
    { volumeMounts: [{ name: "v", mountPath: "/a", mountPropagation: "Bidirectional" }] },
    [
      "container.volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
    ],
  ],
  [
    "Bidirectional propagation in a privileged container is accepted",
    {
      volumeMounts: [{ name: "v", mountPath: "/a", mountPropagation: "Bidirectional" }],
      securityContext: { privileged: true },
    },
    [],
  ],
  [
    "a recursive read-only mount without propagation is accepted",
    {
      volumeMounts: [
        { name: "v", mountPath: "/a", readOnly: true, mountPropagation: "None", recursiveReadOnly: "Enabled" },
        { name: "v", mountPath: "/b", readOnly: true, recursiveReadOnly: "IfPossible" },
      ],
    },
    [],
  ],
  [
    "recursiveReadOnly without readOnly is refused",
    { volumeMounts: [{ name: "v", mountPath: "/a", recursiveReadOnly: "Enabled" }] },
    ["container.volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"],
  ],
  [
    "recursiveReadOnly with propagation is refused",
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
  [
    "recursiveReadOnly with the value Disabled is accepted",
    { volumeMounts: [{ name: "v", mountPath: "/a", recursiveReadOnly: "Disabled" }] },
    [],
  ],
  [
    "recursiveReadOnly with an unknown value is refused",
    { volumeMounts: [{ name: "v", mountPath: "/a", recursiveReadOnly: "Some" }] },
    [
      'container.volumeMounts.recursiveReadOnly: Unsupported value: "Some": supported values: "Disabled", "Enabled", "IfPossible"',
    ],
  ],

  [
    "two empty devices are refused",
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
    "the same device twice is refused",
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
    "two devices at the same path with .. get an error for .. and none for the duplicate",
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

describe("validation of mounts and devices:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given, VOLUMES)).toEqual(errors);
  });
});
