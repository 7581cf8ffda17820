/** `migrate`: the way from OpenKruise and back, as a plan made of what the cluster has. Writes nothing. */
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { SIDECARSET_GROUP } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { listAll } from "../../shared/controller/observe.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster, Resource } from "../../shared/kube/port.ts";
import { CliError } from "../cli-error.ts";
import type { Command } from "./command.ts";
import { requireValid, storedForm } from "./given-set.ts";
import { type Configuration, listSets, podWebhooks, readMutating } from "./read-set.ts";
import type { Screen } from "./screen.ts";
import type { Session } from "./session.ts";
import { wrap } from "./table.ts";

const BLOCKED = 3;

const COMMON = {
  group: "Install it",
  outputs: ["table", "json", "yaml"],
  exits: ["3 something has to be mended first"],
} as const;

export const FROM_KRUISE: Command = {
  ...COMMON,
  name: "migrate from-kruise",
  summary: "how to move from OpenKruise's manager to these functions: a plan, nothing is written",
  details: "No pod restarts. Every step can be taken back. docs/migration.md tells the why.",
  options: [{ flags: "--url <URL>", about: "where the webhooks answer" }],
  examples: ["sidecarset migrate from-kruise --url https://webhooks.example.com"],
  run: async (input, session) => {
    const cluster = await session.cluster();
    const url = input.text("url") ?? "URL";
    const scene = await readScene(cluster, session);
    return tell({ problems: problemsOf(scene), notes: notesOf(scene), steps: stepsFrom(scene, url) }, session);
  },
};

export const TO_KRUISE: Command = {
  ...COMMON,
  name: "migrate to-kruise",
  summary: "how to move back to OpenKruise's manager: a plan, nothing is written",
  details: "No pod restarts: hashes, annotations and revisions are OpenKruise's own. docs/migration.md tells the why.",
  examples: ["sidecarset migrate to-kruise"],
  run: async (_input, session) => {
    const scene = await readScene(await session.cluster(), session);
    return tell({ problems: [], notes: notesOf(scene), steps: stepsTo(scene) }, session);
  },
};

interface Deployment extends KubernetesObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number };
}

interface Scene {
  readonly namespace: string;
  readonly manager: Deployment | undefined;
  readonly configurations: readonly Configuration[];
  readonly sidecarSets: readonly SidecarSet[];
  /** OpenKruise's other kinds that have objects: plural → how many */
  readonly others: Readonly<Record<string, number>>;
}

/** What the functions don't serve, so that OpenKruise's manager is still needed where there are any. */
const OTHER_KINDS = [
  "clonesets",
  "daemonsets",
  "broadcastjobs",
  "uniteddeployments",
  "workloadspreads",
  "imagepulljobs",
  "advancedcronjobs",
  "podunavailablebudgets",
  "resourcedistributions",
  "nodeimages",
  "podprobemarkers",
  "persistentpodstates",
];
const MANAGER = "kruise-controller-manager";

async function readScene(cluster: Cluster, { kruiseNamespace: namespace }: Session): Promise<Scene> {
  const deployments: Resource = { group: "apps", version: "v1", plural: "deployments", namespaced: true };
  const manager = await unlessMissing(cluster.get<Deployment>(deployments, { namespace, name: MANAGER }));
  const counts: Record<string, number> = {};
  for (const plural of OTHER_KINDS) {
    const resource: Resource = { group: SIDECARSET_GROUP, version: "v1alpha1", plural, namespaced: true };
    const items = await unlessMissing(listAll<KubernetesObject, 1>(cluster, resource, {}, () => 1));
    if (items && items.items.length > 0) counts[plural] = items.items.length;
  }
  const configurations = (await readMutating(cluster)) ?? [];
  return { namespace, manager, configurations, sidecarSets: await listSets(cluster), others: counts };
}

/** What is not there, or may not be read, is taken for not there. */
async function unlessMissing<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof KubeError && [403, 404].includes(error.code)) return undefined;
    throw error;
  }
}

/** SidecarSets that our webhook would refuse, or hash in another way: neither can come of an installation in order. */
function problemsOf({ sidecarSets }: Scene): readonly string[] {
  return sidecarSets.flatMap((one) => {
    const name = one.metadata?.name ?? "";
    try {
      const place = `SidecarSet ${name}`;
      const stored = storedForm({ object: one, place });
      requireValid(stored, one, place, { sidecarSets, revisions: [] });
      const isSame =
        stored.metadata?.annotations?.["kruise.io/sidecarset-hash"] ===
        one.metadata?.annotations?.["kruise.io/sidecarset-hash"];
      return isSame
        ? []
        : [
            `${place} carries a hash that is not that of its content, so all of its pods would count as old: update it once while OpenKruise's webhook is there`,
          ];
    } catch (error) {
      if (error instanceof CliError) return [error.message];
      throw error;
    }
  });
}

function notesOf({ others, sidecarSets, manager }: Scene): readonly string[] {
  const kinds = Object.entries(others).map(([plural, count]) => `${count} ${plural}`);
  const needed = `OpenKruise's manager is still needed for ${kinds.join(", ")}: keep it running, and take its SidecarSet webhooks away only`;
  return [
    `${sidecarSets.length} SidecarSets were looked at`,
    ...(manager === undefined ? [`there is no deployment ${MANAGER}: OpenKruise's manager does not run here`] : []),
    ...(kinds.length > 0 ? [needed] : []),
  ];
}

interface MigrationStep {
  readonly what: string;
  readonly command?: string;
  /** how to take it back */
  readonly back?: string;
}

function stepsFrom({ namespace, manager, configurations, others }: Scene, url: string): readonly MigrationStep[] {
  const replicas = manager?.spec?.replicas ?? 2;
  const theirs = configurations.filter(({ metadata }) => metadata?.name?.startsWith("kruise-"));
  const hasOthers = Object.keys(others).length > 0;
  const injectors = podWebhooks(theirs).map(({ name }) => name);
  return [
    {
      what: "Install roles, definition and webhooks beside OpenKruise's; the functions must answer at the URL already.",
      command: `sidecarset install --url ${url} > sidecarset.yaml && kubectl apply --server-side --force-conflicts -f sidecarset.yaml`,
      back: "sidecarset uninstall | kubectl delete --ignore-not-found -f -",
    },
    {
      what: "See that everything is in place; findings about OpenKruise are expected until the end.",
      command: "sidecarset check",
    },
    {
      what: "Pause every rollout that is under way, if you want to see the first pass alone.",
      command: "sidecarset status",
    },
    hasOthers
      ? {
          what: "Have OpenKruise's manager leave SidecarSets alone: it stays for its other kinds.",
          command: `kubectl -n ${namespace} set env deployment/${MANAGER} CUSTOM_RESOURCE_ENABLE=${Object.keys(others).join(",")}`,
          back: `kubectl -n ${namespace} set env deployment/${MANAGER} CUSTOM_RESOURCE_ENABLE-`,
        }
      : {
          what: "Stop OpenKruise's manager.",
          command: `kubectl -n ${namespace} scale deployment/${MANAGER} --replicas=0`,
          back: `kubectl -n ${namespace} scale deployment/${MANAGER} --replicas=${replicas}`,
        },
    {
      what: `Take its webhooks away, so that pods are injected once${injectors.length > 0 ? ` (${injectors.join(", ")})` : ""}.`,
      command:
        "kubectl delete mutatingwebhookconfiguration kruise-mutating-webhook-configuration && kubectl delete validatingwebhookconfiguration kruise-validating-webhook-configuration",
      back: "OpenKruise's manager registers them again when it starts",
    },
    {
      what: "Look at what the first pass would do: nothing, where OpenKruise had finished.",
      command: "sidecarset tick --dry-run",
    },
    {
      what: "Turn the schedule of the rollout function on, or run serve with --tick, and look again.",
      command: "sidecarset check && sidecarset status",
    },
  ];
}

function stepsTo({ namespace, manager }: Scene): readonly MigrationStep[] {
  const replicas = Math.max(1, manager?.spec?.replicas ?? 2);
  return [
    {
      what: "Turn the schedule of the rollout function off, or stop serve. Wait until no pass runs: its Lease expires within 30 seconds.",
      command: `kubectl -n ${namespace} get lease sidecarset-rollout`,
    },
    {
      what: "Take our webhooks and roles away; SidecarSets and pods stay as they are.",
      command: "sidecarset uninstall | kubectl delete --ignore-not-found -f -",
    },
    manager === undefined
      ? {
          what: "Install OpenKruise; its definition of SidecarSets has its own conversion webhook.",
          command: "helm install kruise openkruise/kruise",
        }
      : {
          what: "Start OpenKruise's manager; it registers its webhooks again.",
          command: `kubectl -n ${namespace} scale deployment/${MANAGER} --replicas=${replicas}`,
        },
    {
      what: "Give the definition OpenKruise's conversion back, by applying its own.",
      command: "kubectl get crd sidecarsets.apps.kruise.io -o jsonpath='{.spec.conversion}'",
    },
    {
      what: "What is left of ours does no harm: delete the ledgers.",
      command: `kubectl -n ${namespace} get configmap -o name | grep sidecarset-ledger- | xargs -r kubectl -n ${namespace} delete`,
    },
  ];
}

interface Migration {
  readonly problems: readonly string[];
  readonly notes: readonly string[];
  readonly steps: readonly MigrationStep[];
}

function tell(migration: Migration, session: Session): number {
  session.print(migration, (screen) => show(migration, screen));
  return migration.problems.length > 0 ? BLOCKED : 0;
}

function show({ problems, notes, steps }: Migration, screen: Screen): void {
  for (const note of notes) screen.line({ text: note, color: "dim" });
  for (const problem of problems) screen.line({ text: `✗ mend first: ${problem}`, color: "red" });
  for (const [index, { what, command, back }] of steps.entries()) {
    const [first = "", ...rest] = wrap(what, screen.width, 3);
    screen.line(`${index + 1}. ${first}`);
    for (const line of rest) screen.line(line);
    if (command) screen.line({ text: `   ${command}`, color: "cyan" });
    if (back) screen.line({ text: `   back: ${back}`, color: "dim" });
  }
  screen.line({ text: "Nothing was written.", color: "dim" });
}
