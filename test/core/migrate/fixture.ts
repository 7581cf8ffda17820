/** Facts of a cluster that OpenKruise manages, without anything that only OpenKruise serves. */
import type { CountedKind, MigrationFacts, Workload } from "../../../shared/core/inspect/migrate/inventory.ts";
import { SET } from "../check/fixture.ts";

const MANAGER: Workload = {
  metadata: { namespace: "kruise-system", name: "kruise-controller-manager" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { "control-plane": "controller-manager" } },
    template: {
      spec: {
        containers: [
          {
            image: "registry.example.com:5000/kruise-manager:v1.8.0",
            args: ["--feature-gates=SidecarTerminator=true"],
          },
        ],
      },
    },
  },
  status: { readyReplicas: 2 },
};
const SERVICE = { service: { namespace: "kruise-system", name: "kruise-webhook-service" } };

export const kind = (plural: string, name: string, count: number | undefined): CountedKind => ({
  group: "apps.kruise.io",
  kind: name,
  plural,
  count,
});

export const FACTS: MigrationFacts = {
  kruiseNamespace: "kruise-system",
  managers: [MANAGER],
  daemons: [{ metadata: { namespace: "kruise-system", name: "kruise-daemon" } }],
  theirConfigurations: ["kruise-mutating-webhook-configuration", "kruise-validating-webhook-configuration"],
  ourConfigurations: [],
  kinds: [kind("sidecarsets", "SidecarSet", 1), kind("nodeimages", "NodeImage", 3), kind("clonesets", "CloneSet", 0)],
  sidecarSets: [SET],
  pods: 20,
  revisions: 2,
  namespaces: [],
  ledgers: [],
  conversion: SERVICE,
  unseen: [],
};
export const URL = "https://webhooks.example.com";
