/** Sets up the queue's tests: ElasticMQ, an embedded cluster, and its kubeconfig in a file. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HttpsCluster, startHttpsCluster } from "../controller/fixture.ts";
import { startSqs } from "./elasticmq.ts";
import type { Sqs } from "./server.ts";

export interface QueueSite {
  readonly sqs: Sqs;
  readonly cluster: HttpsCluster;
  /** path of the file */
  readonly kubeconfig: string;
  readonly close: () => Promise<void>;
}

export async function openQueueSite(): Promise<QueueSite> {
  const [sqs, cluster] = await Promise.all([startSqs(), startHttpsCluster()]);
  const folder = await mkdtemp(join(tmpdir(), "queue-"));
  const kubeconfig = join(folder, "config");
  await writeFile(kubeconfig, cluster.kubeconfig);
  const close = async () => {
    await Promise.all([sqs.close(), cluster.close()]);
    await rm(folder, { recursive: true, force: true });
  };
  return { sqs, cluster, kubeconfig, close };
}
