/** Nodes that are always ready and have room for everything. */
import type { JsonObject } from "../storage/json.ts";

/** `index` counts from 1. */
export function nodeObject(index: number, now: string): JsonObject {
  const name = `node-${index}`;
  const resources = { cpu: "64", memory: "256Gi", pods: "1000", "ephemeral-storage": "1Ti" };
  const times = { lastHeartbeatTime: now, lastTransitionTime: now };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" },
    },
    spec: { podCIDR: `10.244.${index}.0/24` },
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [
        { type: "Ready", status: "True", reason: "KubeletReady", message: "kubelet is posting ready status", ...times },
      ],
      addresses: [
        { type: "InternalIP", address: `10.0.0.${index}` },
        { type: "Hostname", address: name },
      ],
      nodeInfo: {
        kubeletVersion: "v1.32.0",
        containerRuntimeVersion: "containerd://2.0.0",
        operatingSystem: "linux",
        architecture: "amd64",
        osImage: "local",
        kernelVersion: "6.1.0",
        machineID: name,
        systemUUID: name,
        bootID: name,
        kubeProxyVersion: "v1.32.0",
      },
    },
  };
}
