/** The request that deletes a ContainerRecreateRequest that is over. */
import { expect, it } from "vitest";
import type { ContainerRecreateRequest } from "../../shared/api/container-recreate-request.ts";
import { actOnRequest } from "../../shared/controller/container-recreate/recreate-containers.ts";
import { CONTAINER_RECREATE_REQUESTS } from "../../shared/kube/port.ts";
import { bareCluster } from "./bare-cluster.ts";
import { NAMESPACE } from "./fixture.ts";
import { steppedClock } from "./stepped-clock.ts";

it.each([
  ["an ended request is deleted when its uid matches", "uid", []],
  ["a newer request of the same name is not deleted", "of another", ["request"]],
])("%s", async (_, stored, left) => {
  const { cluster, server } = bareCluster(steppedClock());
  const metadata = { namespace: NAMESPACE, name: "request", uid: "uid" };
  const request = { metadata, spec: { podName: "pod", containers: [] } } as ContainerRecreateRequest;
  server.put("test", CONTAINER_RECREATE_REQUESTS, { ...request, metadata: { ...metadata, uid: stored } });
  const deleting = actOnRequest(cluster, { request, pod: undefined }, { kind: "DeleteRequest" });
  if (stored === metadata.uid) expect(await deleting).toBeUndefined();
  else await expect(deleting).rejects.toMatchObject({ code: 409 });
  expect(server.all(CONTAINER_RECREATE_REQUESTS).map((one) => one.metadata?.name)).toEqual(left);
});
