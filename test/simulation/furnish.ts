/** What is in the world before anything happens: namespaces, SidecarSets, and pods that run. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { NAMESPACES, PODS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import { KRUISE_NAMESPACE, runningStatus } from "./objects.ts";
import { namespacesOf, type Scenario } from "./scenario.ts";
import type { Users } from "./users.ts";

interface Site {
  readonly server: ApiServer;
  readonly users: Users;
  readonly scenario: Scenario;
  readonly startMs: number;
}

export function furnish({ server, users, scenario, startMs }: Site): void {
  const places = namespacesOf(scenario);
  for (const name of [KRUISE_NAMESPACE, "default"]) server.put("user", NAMESPACES, { metadata: { name } });
  for (const { name, labels } of places)
    server.put("user", NAMESPACES, { metadata: { name, ...(labels === undefined ? {} : { labels }) } });
  users.releases.createAll();
  for (let index = 0; index < scenario.pods; index++) {
    const namespace = places[index % places.length]?.name ?? "shop";
    const pod = users.createPod(namespace, `web-${index}`);
    const stored = server.peek<Pod>(PODS, { namespace, name: `web-${index}` }) ?? pod;
    server.put("kubelet", PODS, { ...stored, status: runningStatus(stored, startMs) } as Pod);
  }
  for (let index = 0; index < (scenario.tenantPods ?? 0); index++) users.createPod("shop", `tenant-${index}`);
}
