/** The files that containerd, the registry and the kubelet of a node read. */
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { stringify } from "yaml";
import { NODE_GRACE_SECONDS } from "../support/settings.ts";

export interface NodePorts {
  readonly registry: number;
  readonly kubelet: number;
  readonly healthz: number;
}

const PAUSE = "registry.local/pause:1";

/** Returns containerd's settings: `//server/path` of the mirror that answers for every registry. */
function containerd(folder: string): string {
  const at = (name: string) => JSON.stringify(join(folder, name));
  return `version = 3
root = ${at("containerd")}
state = ${at("state")}
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]

[grpc]
address = ${at("containerd.sock")}

[ttrpc]
address = ${at("containerd.sock.ttrpc")}

[plugins."io.containerd.nri.v1.nri"]
disable = true

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "${PAUSE}"

[plugins."io.containerd.cri.v1.images".registry]
config_path = ${at("registries")}

[plugins."io.containerd.cri.v1.runtime"]
# Without CAP_SYS_RESOURCE no process may be made harder to kill.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
disable_apparmor = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]
conf_dir = ${at("cni")}

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
Root = ${at("runc")}
`;
}

/**
 * Returns the network's settings. Only this machine reaches the pods, which probes need. No iptables rule is written.
 */
function network(folder: string): object {
  const ipam = {
    type: "host-local",
    subnet: "10.213.0.0/16",
    dataDir: join(folder, "addresses"),
    routes: [{ dst: "0.0.0.0/0" }],
  };
  return {
    cniVersion: "1.0.0",
    name: basename(folder),
    plugins: [{ type: "ptp", ipMasq: false, mtu: 1500, ipam }],
  };
}

function kubelet(folder: string, { kubelet: port, healthz }: NodePorts): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: "127.0.0.1",
    port,
    healthzPort: healthz,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true } },
    authorization: { mode: "AlwaysAllow" },
    containerRuntimeEndpoint: `unix://${join(folder, "containerd.sock")}`,
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${basename(folder)}`,
    // These machines have cgroups of version 1.
    failCgroupV1: false,
    failSwapOn: false,
    enforceNodeAllocatable: [],
    makeIPTablesUtilChains: false,
    resolvConf: join(folder, "resolv.conf"),
    serializeImagePulls: false,
    maxPods: 250,
    // A soak restarts containers more often than a real kubelet's back-off allows.
    ...(process.env["VALUES_RESTARTS"] ? { crashLoopBackOff: { maxContainerRestartPeriod: "1s" } } : {}),
    // Evictions for a full disk are off, because the tests are not about them.
    evictionHard: {
      "memory.available": "0%",
      "nodefs.available": "0%",
      "imagefs.available": "0%",
      "nodefs.inodesFree": "0%",
      "imagefs.inodesFree": "0%",
    },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    volumePluginDir: join(folder, "volume-plugins"),
    podLogsDir: join(folder, "logs"),
    kubeAPIQPS: 200,
    kubeAPIBurst: 400,
    registryPullQPS: 0,
    eventRecordQPS: 0,
    // Some tests write another version into the node's status. The kubelet overwrites it only after this time.
    nodeStatusUpdateFrequency: "5m",
    // The lease is renewed five times before it would expire.
    nodeLeaseDurationSeconds: (NODE_GRACE_SECONDS / 5) * 4,
    shutdownGracePeriod: "0s",
  };
}

export async function writeNodeSettings(folder: string, ports: NodePorts): Promise<void> {
  for (const name of ["cni", "registries/_default", "logs", "kubelet"])
    await mkdir(join(folder, name), { recursive: true });
  const files = {
    "containerd.toml": containerd(folder),
    "cni/10-pods.conflist": JSON.stringify(network(folder)),
    "kubelet.yaml": stringify(kubelet(folder, ports)),
    "resolv.conf": "",
    "registry.yaml": stringify({
      version: "0.1",
      log: { level: "error" },
      storage: { filesystem: { rootdirectory: join(folder, "registry") }, delete: { enabled: true } },
      http: { addr: `127.0.0.1:${ports.registry}` },
    }),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
}

/** Makes containerd ask this address for every registry. */
export function writeMirror(folder: string, url: string): Promise<void> {
  const text = `[host."${url}"]\ncapabilities = ["pull", "resolve"]\n`;
  return writeFile(join(folder, "registries/_default/hosts.toml"), text);
}
