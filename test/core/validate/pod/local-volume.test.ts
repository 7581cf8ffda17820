import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  ["an empty directory of limited size", { emptyDir: { sizeLimit: "0" } }, []],
  [
    "an empty directory of less than nothing",
    { emptyDir: { sizeLimit: "-1" } },
    ["volume.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"],
  ],
  ["a directory of the host", { hostPath: { path: "/a", type: "DirectoryOrCreate" } }, []],
  ["a directory of the host without a path", { hostPath: { type: "x" } }, ["volume.hostPath.path: Required value"]],
  [
    "a directory of the host that leads upwards, of an unknown type",
    { hostPath: { path: "/a/..", type: "x" } },
    [
      "volume.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
      'volume.hostPath.type: Unsupported value: "x": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"',
    ],
  ],
  ["a file of the host whose name has two dots", { hostPath: { path: "/a../..b" } }, []],
  ["a repository", { gitRepo: { repository: "r", directory: "a/b" } }, []],
  [
    "a repository without an address, in an absolute directory",
    { gitRepo: { directory: "/a" } },
    [
      "volume.gitRepo.repository: Required value",
      'volume.gitRepo.directory: Invalid value: "/a": must be a relative path',
    ],
  ],
  [
    "a repository in a directory above",
    { gitRepo: { repository: "r", directory: "../a" } },
    ["volume.gitRepo.directory: Invalid value: \"../a\": must not contain '..'"],
  ],
  ["a secret without a name", { secret: {} }, ["volume.secret.secretName: Required value"]],
  [
    "a secret's file without key and path",
    { secret: { secretName: "s", items: [{}] } },
    ["volume.secret.items[0].key: Required value", "volume.secret.items[0].path: Required value"],
  ],
  [
    "a secret's file of a mode beyond 0777",
    { secret: { secretName: "s", items: [{ key: "k", path: "p", mode: 512 }] } },
    ["volume.secret.items[0].mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"],
  ],
  [
    "a secret's file of mode 0777",
    { secret: { secretName: "s", defaultMode: 0, items: [{ key: "k", path: "p", mode: 511 }] } },
    [],
  ],
  [
    "a secret's second file at an absolute path",
    {
      secret: {
        secretName: "s",
        items: [
          { key: "k", path: "p" },
          { key: "k", path: "/p" },
        ],
      },
    },
    ['volume.secret.items[1].path: Invalid value: "/p": must be a relative path'],
  ],
  [
    "a secret's file by a reserved name",
    { secret: { secretName: "s", items: [{ key: "k", path: "..p" }] } },
    ["volume.secret.items[0].path: Invalid value: \"..p\": must not start with '..'"],
  ],
  [
    "a ConfigMap without a name, of a mode below 0",
    { configMap: { defaultMode: -1 } },
    [
      "volume.configMap.name: Required value",
      "volume.configMap.defaultMode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive",
    ],
  ],
  [
    "a ConfigMap's file without a path",
    { configMap: { name: "c", items: [{ key: "k" }] } },
    ["volume.configMap.items[0].path: Required value"],
  ],
  [
    "a file of the pod's labels",
    { downwardAPI: { items: [{ path: "l", fieldRef: { apiVersion: "v1", fieldPath: "metadata.labels" } }] } },
    [],
  ],
  [
    "a file of each thing that can be had in a file",
    {
      downwardAPI: {
        items: [
          { path: "annotations", fieldRef: { apiVersion: "v1", fieldPath: "metadata.annotations" } },
          { path: "name", fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } },
          { path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } },
          { path: "uid", fieldRef: { apiVersion: "v1", fieldPath: "metadata.uid" } },
        ],
      },
    },
    [],
  ],
  [
    "a file of the node's name",
    { downwardAPI: { items: [{ path: "l", fieldRef: { apiVersion: "v1", fieldPath: "spec.nodeName" } }] } },
    [
      'volume.downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"',
    ],
  ],
  [
    "a file of nothing",
    { downwardAPI: { defaultMode: 512, items: [{}] } },
    [
      "volume.downwardAPI.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
      "volume.downwardAPI.path: Required value",
      "volume.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
    ],
  ],
  [
    "a file of two things",
    {
      downwardAPI: {
        items: [
          {
            path: "l",
            fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" },
            resourceFieldRef: { containerName: "c", resource: "limits.cpu" },
          },
        ],
      },
    },
    [
      'volume.downwardAPI: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified simultaneously',
    ],
  ],
  [
    "a file of a container's resource",
    {
      downwardAPI: {
        items: [{ path: "l", mode: 511, resourceFieldRef: { containerName: "c", resource: "limits.cpu" } }],
      },
    },
    [],
  ],
  [
    "a file of a resource of no container",
    { downwardAPI: { items: [{ path: "l", mode: 512, resourceFieldRef: { resource: "limits.cpu" } }] } },
    [
      "volume.downwardAPI.resourceFieldRef.containerName: Required value",
      "volume.downwardAPI.mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive",
    ],
  ],
  [
    "a file of the pod above its directory",
    { downwardAPI: { items: [{ path: "../l", fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } }] } },
    ["volume.downwardAPI.path: Invalid value: \"../l\": must not contain '..'"],
  ],
  [
    "a token for ten minutes",
    { projected: { defaultMode: 511, sources: [{ serviceAccountToken: { expirationSeconds: 600, path: "t" } }] } },
    [],
  ],
  [
    "a token for less than ten minutes",
    { projected: { sources: [{ serviceAccountToken: { expirationSeconds: 599, path: "t" } }] } },
    [
      "volume.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
    ],
  ],
  [
    "a token for no time",
    { projected: { sources: [{ serviceAccountToken: { path: "t" } }] } },
    [
      "volume.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 0: may not specify a duration less than 10 minutes",
    ],
  ],
  [
    "a token for 2^32 seconds",
    { projected: { sources: [{ serviceAccountToken: { expirationSeconds: 4294967296, path: "t" } }] } },
    [],
  ],
  [
    "a token for longer than 2^32 seconds",
    { projected: { sources: [{ serviceAccountToken: { expirationSeconds: 4294967297, path: "t" } }] } },
    [
      "volume.projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
    ],
  ],
  [
    "a token without a path",
    { projected: { sources: [{ serviceAccountToken: { expirationSeconds: 3600 } }] } },
    ["volume.projected.path: Required value"],
  ],
  [
    "a token at a reserved path",
    { projected: { sources: [{ serviceAccountToken: { expirationSeconds: 3600, path: "..t" } }] } },
    ["volume.projected.path: Invalid value: \"..t\": must not start with '..'"],
  ],
  [
    "a projection of everything, each by itself",
    {
      projected: {
        sources: [
          { secret: { name: "s", items: [{ key: "k", path: "a" }] } },
          { configMap: { name: "c", items: [{ key: "k", path: "b" }] } },
          { downwardAPI: { items: [{ path: "d", fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } }] } },
        ],
      },
    },
    [],
  ],
  [
    "a projection of a mode beyond 0777 and of objects without names",
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
    "a projection of two things in one source",
    { projected: { sources: [{ secret: { name: "s" }, configMap: { name: "c" } }] } },
    ["volume.projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"],
  ],
  [
    "a secret's file and a ConfigMap's in one place",
    {
      projected: {
        sources: [
          { secret: { name: "s", items: [{ key: "k", path: "a" }] } },
          { configMap: { name: "c", items: [{ key: "k", path: "a" }] } },
        ],
      },
    },
    ['volume.projected: Invalid value: "c": conflicting duplicate paths'],
  ],
  [
    "two files of the pod in one place",
    {
      projected: {
        sources: [
          {
            downwardAPI: {
              items: [
                { path: "d", fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } },
                { path: "d", fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } },
              ],
            },
          },
        ],
      },
    },
    ['volume.projected: Invalid value: "d": conflicting duplicate paths'],
  ],
  [
    "files of the pod without a path",
    {
      projected: {
        sources: [
          {
            downwardAPI: {
              items: [
                { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } },
                { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } },
              ],
            },
          },
        ],
      },
    },
    [
      "volume.projected.sources[0].downwardAPI.path: Required value",
      "volume.projected.sources[0].downwardAPI.path: Required value",
    ],
  ],
  ["an image without a reference and a policy", { image: {} }, ["volume.image.pullPolicy: Required value"]],
  [
    "an image by an unknown policy",
    { image: { reference: "r", pullPolicy: "Often" } },
    ['volume.image.pullPolicy: Unsupported value: "Often": supported values: "Always", "IfNotPresent", "Never"'],
  ],
];

describe("a volume of the node or of the cluster", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
