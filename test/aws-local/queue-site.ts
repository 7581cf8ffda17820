/** What every test of the queue needs: ElasticMQ, an embedded cluster, and its kubeconfig in a file. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestCluster, type TestCluster } from "../controller/fixture.ts";
import { startSqs } from "./elasticmq.ts";
import type { Sqs } from "./server.ts";

export interface QueueSite {
  readonly sqs: Sqs;
  readonly cluster: TestCluster;
  /** path of the file */
  readonly kubeconfig: string;
  readonly close: () => Promise<void>;
}

export async function openQueueSite(): Promise<QueueSite> {
  const [sqs, cluster] = await Promise.all([startSqs(), startTestCluster()]);
  const folder = await mkdtemp(join(tmpdir(), "queue-"));
  const kubeconfig = join(folder, "config");
  await writeFile(kubeconfig, cluster.kubeconfig);
  const close = async () => {
    await Promise.all([sqs.close(), cluster.close()]);
    await rm(folder, { recursive: true, force: true });
  };
  return { sqs, cluster, kubeconfig, close };
}
