/** Creates the world at its start: namespaces, SidecarSets, and running pods. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { NAMESPACES, PODS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import { KRUISE_NAMESPACE, runningStatus } from "./objects.ts";
import { namespacesOf, type Scenario } from "./scenario.ts";
import type { Users } from "./users.ts";
import type { Workloads } from "./workloads.ts";

interface Site {
  readonly workloads: Workloads;
  readonly server: ApiServer;
  readonly users: Users;
  readonly scenario: Scenario;
  readonly startMs: number;
}

export function furnish(site: Site): void {
  const { server, users, workloads, scenario } = site;
  const places = namespacesOf(scenario);
  for (const name of [KRUISE_NAMESPACE, "default"]) server.put("user", NAMESPACES, { metadata: { name } });
  for (const { name, labels } of places)
    server.put("user", NAMESPACES, { metadata: { name, ...(labels === undefined ? {} : { labels }) } });
  users.releases.createAll();
  if (scenario.restarts) return void workloads.furnishIn(scenario.restarts.furnishedMs ?? 0);
  for (let index = 0; index < scenario.pods; index++) furnishPod(site, index);
  for (let index = 0; index < (scenario.tenantPods ?? 0); index++) users.createPod("shop", `tenant-${index}`);
}

function furnishPod({ server, users, scenario, startMs }: Site, index: number): void {
  const places = namespacesOf(scenario);
  const namespace = places[index % places.length]?.name ?? "shop";
  const name = nameOf(scenario, index, places.length);
  const pod = users.createPod(namespace, name);
  const stored = server.peek<Pod>(PODS, { namespace, name }) ?? pod;
  server.put("kubelet", PODS, { ...stored, status: runningStatus(stored, startMs) } as Pod);
}

/** Names of workloads, which are the same in all namespaces. */
function nameOf({ workloads }: Scenario, index: number, namespaces: number): string {
  if (!workloads) return `web-${index}`;
  const ordinal = Math.floor(index / namespaces);
  return `${workloads[ordinal % workloads.length]}-${ordinal}`;
}
