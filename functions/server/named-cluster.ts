/** One of several clusters that a process asks. */
import type { Cluster } from "../../shared/kube/port.ts";
import type { Environment } from "../../shared/settings/config.ts";

export interface NamedCluster {
  readonly name: string;
  /** Rejects when there is no way to it. */
  readonly connect: () => Promise<Cluster>;
  /** its settings; absent: the process' own. @throws ConfigError for unusable settings */
  readonly env?: () => Environment;
}
