import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Cluster } from "../../../shared/kube/port.ts";
import {
  createSet,
  images,
  patchSpec,
  readPods,
  readSet,
  type SetCluster,
  settle,
  startSetCluster,
  template,
} from "./fixture.ts";

let stage: SetCluster;
let cluster: Cluster;
beforeAll(async () => {
  stage = await startSetCluster();
  cluster = stage.cluster;
});
afterAll(() => stage?.local.close());

describe("a following pass", () => {
  it("creates pods in order, updates them in reverse, and scales down from the top", async () => {
    await createSet(cluster, "db", { replicas: 3 });
    const report = await settle(cluster, "db");
    expect(report.stop).toBe("settled");
    expect((await readSet(cluster, "db")).status).toMatchObject({
      replicas: 3,
      readyReplicas: 3,
      observedGeneration: 1,
    });
    await patchSpec(cluster, "db", { template: template("db", "app:2") });
    await settle(cluster, "db");
    expect(images(await readPods(cluster, "db"))).toEqual(["app:2", "app:2", "app:2"]);
    await patchSpec(cluster, "db", { replicas: 1 });
    await settle(cluster, "db");
    expect(await readPods(cluster, "db")).toHaveLength(1);
    expect((await readSet(cluster, "db")).status).toMatchObject({
      replicas: 1,
      readyReplicas: 1,
      observedGeneration: 3,
    });
  });
});
