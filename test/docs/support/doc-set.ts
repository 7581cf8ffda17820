/** The StatefulSet of the pages, whose newer image is rolled out up to its partition. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { install, type Stage } from "../../../infra/demo/stage.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import { statefulSetInstallation } from "../../../shared/install/manifests.ts";
import { STATEFUL_SETS } from "../../../shared/kube/port.ts";
import { until } from "../../e2e/support/until.ts";

const [OLD, NEW] = ["postgres:18.1", "postgres:18.2"];

export async function createStatefulSet({ client, address }: Stage, root: string): Promise<void> {
  await install(client, statefulSetInstallation(address));
  const text = await readFile(join(root, "infra/demo/db.yaml"), "utf8");
  await client.create(STATEFUL_SETS, parse(text.replace(NEW, OLD)));
  const key = { namespace: "default", name: "db" };
  const untilUpdated = (count: number, revisions: number) =>
    until(`${count} pods of db are updated`, async () => {
      const { status, metadata } = await client.get<StatefulSet>(STATEFUL_SETS, key);
      const { updatedReadyReplicas = 0, readyReplicas = 0, observedGeneration = 0 } = status ?? {};
      const isSeen = observedGeneration >= (metadata?.generation ?? 0);
      const isSplit = status?.currentRevision !== status?.updateRevision;
      return isSeen && readyReplicas === 3 && updatedReadyReplicas === count && isSplit === (revisions === 2);
    });
  await untilUpdated(3, 1);
  const operations = [{ op: "replace", path: "/spec/template/spec/containers/0/image", value: NEW }] as const;
  await client.patch(STATEFUL_SETS, key, { type: "json", operations });
  await untilUpdated(1, 2);
}
