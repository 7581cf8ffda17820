/** One of several clusters that a process connects to. */
import type { Cluster } from "../../shared/kube/port.ts";
import type { Environment } from "../../shared/settings/config.ts";

export interface NamedCluster {
  readonly name: string;
  /** Connects to the cluster; rejects if there is no connection. */
  readonly connect: () => Promise<Cluster>;
  /** settings of the cluster; absent: the process's own. @throws ConfigError for unusable settings */
  readonly env?: () => Environment;
}
