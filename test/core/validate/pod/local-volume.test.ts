import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

const field = (path: string, fieldPath: string): Fields => ({ path, fieldRef: { apiVersion: "v1", fieldPath } });
const downward = (...items: readonly Fields[]): Fields => ({ downwardAPI: { items } });
const projected = (...sources: readonly Fields[]): Fields => ({ projected: { sources } });
const token = (serviceAccountToken: Fields): Fields => projected({ serviceAccountToken });

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  ["an emptyDir with a sizeLimit of 0 is accepted", { emptyDir: { sizeLimit: "0" } }, []],
  [
    "an emptyDir with a negative sizeLimit is refused",
    { emptyDir: { sizeLimit: "-1" } },
    ["volume.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
  ],
  ["a hostPath of the type DirectoryOrCreate is accepted", { hostPath: { path: "/a", type: "DirectoryOrCreate" } }, []],
  ["a hostPath without a path is refused", { hostPath: { type: "x" } }, ["volume.hostPath.path: Required value"]],
  [
    "a hostPath with .. in its path and an unknown type is refused",
    { hostPath: { path: "/a/..", type: "x" } },
    [
      "volume.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
      'volume.hostPath.type: Unsupported value: "x": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
    ],
  ],
  ["a hostPath with two dots inside a name is accepted", { hostPath: { path: "/a../..b" } }, []],
  ["a gitRepo volume is accepted", { gitRepo: { repository: "r", directory: "a/b" } }, []],
  [
    "a gitRepo volume without a repository and with an absolute directory is refused",
    { gitRepo: { directory: "/a" } },
    [
      "volume.gitRepo.repository: Required value",
      'volume.gitRepo.directory: Invalid value: "/a": must be a relative path',
    ],
  ],
  ["a secret volume without a name is refused", { secret: {} }, ["volume.secret.secretName: Required value"]],

  [
    "a secret item with a mode above 0777 is refused",
    { secret: { secretName: "s", items: [{ key: "k", path: "p", mode: 512 }] } },
    ["volume.secret.items[0].mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"],
  ],
  [
    "a secret item with the mode 0777 is accepted",
    { secret: { secretName: "s", defaultMode: 0, items: [{ key: "k", path: "p", mode: 511 }] } },
    [],
  ],

  [
    "a secret item whose path begins with two dots is refused",
    { secret: { secretName: "s", items: [{ key: "k", path: "..p" }] } },
    ["volume.secret.items[0].path: Invalid value: \"..p\": must not start with '..'"],
  ],
  [
    "a ConfigMap volume without a name and with a negative defaultMode is refused",
    { configMap: { defaultMode: -1 } },
    [
      "volume.configMap.name: Required value",
      "volume.configMap.defaultMode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive",
    ],
  ],
  ["a downwardAPI item with the labels of the pod is accepted", downward(field("l", "metadata.labels")), []],
  [
    "a downwardAPI item for every other supported field is accepted",
    downward(
      field("annotations", "metadata.annotations"),
      field("name", "metadata.name"),
      field("namespace", "metadata.namespace"),
      field("uid", "metadata.uid"),
    ),
    [],
  ],
  [
    "a downwardAPI item with the node name is refused",
    downward(field("l", "spec.nodeName")),
    [
      'volume.downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"',
    ],
  ],
  [
    "a downwardAPI volume with an empty item and a defaultMode above 0777 is refused",
    { downwardAPI: { defaultMode: 512, items: [{}] } },
    [
      "volume.downwardAPI.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
      "volume.downwardAPI.path: Required value",
      "volume.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
    ],
  ],
  [
    "a downwardAPI item with both fieldRef and resourceFieldRef is refused",
    downward({
      path: "l",
      fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" },
      resourceFieldRef: { containerName: "c", resource: "limits.cpu" },
    }),
    [
      'volume.downwardAPI: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously',
    ],
  ],

  [
    "a downwardAPI item with a resource of no container and a mode above 0777 is refused",
    downward({ path: "l", mode: 512, resourceFieldRef: { resource: "limits.cpu" } }),
    [
      "volume.downwardAPI.resourceFieldRef.containerName: Required value",
      "volume.downwardAPI.mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
    ],
  ],
  [
    "a downwardAPI item with .. in its path is refused",
    downward(field("../l", "metadata.name")),
    ["volume.downwardAPI.path: Invalid value: \"../l\": must not contain '..'"],
  ],
  [
    "a service account token for 10 minutes is accepted",
    { projected: { defaultMode: 511, sources: [{ serviceAccountToken: { expirationSeconds: 600, path: "t" } }] } },
    [],
  ],

  ["a service account token for 2^32 seconds is accepted", token({ expirationSeconds: 4294967296, path: "t" }), []],
  [
    "a service account token for more than 2^32 seconds is refused",
    token({ expirationSeconds: 4294967297, path: "t" }),
    [
      "volume.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
    ],
  ],
  [
    "a service account token without a path is refused",
    token({ expirationSeconds: 3600 }),
    ["volume.projected.path: Required value"],
  ],
  [
    "a service account token whose path begins with two dots is refused",
    token({ expirationSeconds: 3600, path: "..t" }),
    ["volume.projected.path: Invalid value: \"..t\": must not start with '..'"],
  ],

  [
    "a projected volume with a defaultMode above 0777 and objects without names is refused",
    { projected: { defaultMode: 512, sources: [{ secret: {} }, { configMap: { items: [{}] } }] } },
    [
      "volume.projected.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
      "volume.projected.sources[0].secret.name: Required value",
      "volume.projected.sources[1].configMap.name: Required value",
      "volume.projected.sources[1].configMap.items[0].key: Required value",
      "volume.projected.sources[1].configMap.items[0].path: Required value",
    ],
  ],
  [
    "a projected volume with two objects in one source is refused",
    projected({ secret: { name: "s" }, configMap: { name: "c" } }),
    ["volume.projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"],
  ],
  [
    "a projected volume with a secret item and a ConfigMap item at the same path is refused",
    projected(
      { secret: { name: "s", items: [{ key: "k", path: "a" }] } },
      { configMap: { name: "c", items: [{ key: "k", path: "a" }] } },
    ),
    ['volume.projected: Invalid value: "c": conflicting duplicate paths'],
  ],
  [
    "a projected volume with two downwardAPI items at the same path is refused",
    projected(downward(field("d", "metadata.name"), field("d", "metadata.name"))),
    ['volume.projected: Invalid value: "d": conflicting duplicate paths'],
  ],
  [
    "two downwardAPI items without a path get no error for a duplicate",
    projected(
      downward(
        { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } },
        { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } },
      ),
    ),
    [
      "volume.projected.sources[0].downwardAPI.path: Required value",
      "volume.projected.sources[0].downwardAPI.path: Required value",
    ],
  ],
  [
    "an image volume without a reference and a pullPolicy is refused",
    { image: {} },
    ["volume.image.pullPolicy: Required value"],
  ],
  [
    "an image volume with an unknown pullPolicy is refused",
    { image: { reference: "r", pullPolicy: "Often" } },
    ['volume.image.pullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"'],
  ],
];

describe("validation of local and projected volumes:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
