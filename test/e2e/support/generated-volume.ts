/** Generates volumes of every source that people use, by name. */
import fc from "fast-check";
import { type Fields, pick } from "./generated-container.ts";

/** Names that a pod and a SidecarSet sometimes share. */
export const VOLUME_NAMES: readonly string[] = ["data", "cache", "conf", "logs"];
/** Names of claims that are mounted or used as block devices. */
export const CLAIM_NAMES: readonly string[] = ["disk", "archive"];

const SOURCES: readonly Fields[] = [
  { emptyDir: {} },
  { emptyDir: { medium: "Memory", sizeLimit: "64Mi" } },
  { configMap: { name: "settings", optional: true, items: [{ key: "config", path: "app.conf", mode: 256 }] } },
  { secret: { secretName: "login", defaultMode: 288 } },
  { hostPath: { path: "/var/log", type: "DirectoryOrCreate" } },
  { hostPath: { path: "/var/log" } },
  { nfs: { server: "10.0.0.1", path: "/share", readOnly: true } },
  { csi: { driver: "inline.example.com", volumeAttributes: { a: "b" } } },
  { downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] } },
  {
    projected: {
      sources: [
        { serviceAccountToken: { path: "token", audience: "mesh" } },
        { configMap: { name: "settings" } },
        { downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
      ],
    },
  },
  {
    ephemeral: {
      volumeClaimTemplate: {
        spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, volumeMode: "Filesystem" },
      },
    },
  },
  { image: { reference: "registry.example/models:1", pullPolicy: "IfNotPresent" } },
];

/** Generates a volume for each name. */
export function volumesNamed(names: readonly string[], claims: readonly string[]): fc.Arbitrary<readonly Fields[]> {
  const sourced = fc.tuple(...names.map((name) => pick(...SOURCES).map((source) => ({ name, ...source }))));
  return sourced.map((volumes) => [
    ...volumes,
    ...claims.map((name) => ({ name, persistentVolumeClaim: { claimName: `claim-${name}` } })),
  ]);
}
