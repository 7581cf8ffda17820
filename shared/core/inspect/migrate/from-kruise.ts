/**
 * The move from OpenKruise's manager to this project. Pods are always injected, and two rollouts never run together.
 */
import { counted } from "../../../go/counted.ts";
import { labelValueErrors, qualifiedNameErrors } from "../../../go/label-name.ts";
import { commandText, NO_COMMAND } from "../../pod/command-text.ts";
import { isRunning } from "../check/others.ts";
import {
  gatesOf,
  lackingKinds,
  type Migration,
  type MigrationFacts,
  type MigrationStep,
  OPTIONAL_ROLES,
  optionalKinds,
  protectedNamespaces,
  quoted,
  reservedPods,
  runningRollouts,
  SAME,
  versionOf,
  type Workload,
} from "./inventory.ts";

/** The plan of the move. `problems`: reasons why some SidecarSets are not accepted here unchanged. */
export function planFromKruise(facts: MigrationFacts, options: WebhookOptions, problems: readonly string[]): Migration {
  const blocks = [...problems, ...blocksOf(facts)];
  return {
    direction: "from-kruise",
    found: foundIn(facts),
    blocks,
    same: SAME,
    changes: changesOf(facts),
    risks: RISKS,
    steps: blocks.length > 0 ? [] : stepsOf(facts, options),
  };
}

const RISKS: readonly string[] = [
  "never `helm uninstall kruise`: its chart owns the definition of SidecarSets, so that every SidecarSet goes with it, and the namespace, so that every revision goes with it",
  "OpenKruise's manager must not be scaled down while its webhooks are registered: they have failurePolicy Fail, and no pod would be created",
  "never let both roll out at once: each has a budget of its own, and together they exceed maxUnavailable",
  "from the stop of its manager until the step after it, SidecarSets can't be read or written in the version that they are not stored in; pods are created and injected all the same",
];

function foundIn(facts: MigrationFacts): readonly string[] {
  const { managers, daemons, theirConfigurations, ourConfigurations, kinds, sidecarSets, pods, revisions } = facts;
  const present = kinds.filter(({ count = 0 }) => count > 0).map(({ kind, count }) => `${count} ${kind}`);
  const going = runningRollouts(facts);
  return [
    ...(managers.length === 0 ? ["OpenKruise's manager is not installed"] : managers.map(managerText)),
    ...daemons.map(({ metadata }) => `its DaemonSet ${metadata?.namespace}/${metadata?.name}`),
    theirConfigurations.length === 0
      ? "none of its webhooks is registered"
      : `its webhooks: ${theirConfigurations.join(", ")}`,
    ourConfigurations.length === 0 ? "none of ours is registered" : `ours: ${ourConfigurations.join(", ")}`,
    `${counted(sidecarSets.length, "SidecarSet")}, ${counted(revisions, "revision")} of ${sidecarSets.length === 1 ? "it" : "them"}, ${counted(pods, "pod")}`,
    ...(going.length > 0 ? [`rollouts under way: ${going.join(", ")}`] : []),
    ...(present.length > 0 ? [`objects of its kinds: ${present.join(", ")}`] : []),
    ...facts.unseen,
  ];
}

function managerText(manager: Workload): string {
  const { metadata, status } = manager;
  const version = versionOf(manager);
  const state = isRunning(manager) ? `${status?.readyReplicas ?? 0} ready` : "scaled to 0";
  const gates = gatesOf(manager);
  const extra = gates.length > 0 ? `, feature gates ${gates.join(",")}` : "";
  return `OpenKruise's manager ${metadata?.namespace}/${metadata?.name}${version ? ` ${version}` : ""}, ${state}${extra}`;
}

/** The reasons that block the move. The manager cannot ignore single SidecarSets, so it has to stop altogether. */
function blocksOf(facts: MigrationFacts): readonly string[] {
  const lacking = lackingKinds(facts).map(({ kind, count }) =>
    count === undefined ? `${kind} (not counted)` : `${count} ${kind}`,
  );
  return [
    ...(lacking.length > 0
      ? [
          `only OpenKruise's manager serves ${lacking.join(", ")}, and while it runs it rolls SidecarSets out too: move these to kinds of Kubernetes first, or keep OpenKruise`,
        ]
      : []),
    ...(facts.sidecarSets.length === 0 && facts.managers.length === 0
      ? ["there is neither OpenKruise nor a SidecarSet: nothing to move; sidecarset install --help"]
      : []),
  ];
}

function changesOf(facts: MigrationFacts): readonly string[] {
  const guarded = protectedNamespaces(facts);
  return [
    "while the webhook is down, pods are created without their sidecars (failurePolicy Ignore); OpenKruise has Fail, and sidecarset webhooks --failure-policy Fail has it too",
    "pods in kube-system and kube-node-lease get no sidecars; API servers wait 5 seconds for an answer, not 10",
    "rollouts go on in passes, each minute or each --tick, and follow each batch within a pass",
    ...(guarded.length > 0
      ? [
          `the label that protects from deletion has no effect any more, on namespaces ${guarded.join(", ")} and elsewhere`,
        ]
      : []),
    ...optionalKinds(facts).map(
      ({ kind, plural }) =>
        `${kind} is served here with a role of its own: infra/rbac/optional/${OPTIONAL_ROLES[plural]}.yaml`,
    ),
  ];
}

// The steps of the move, each with its commands and the commands that undo it.

/** Options of `sidecarset webhooks`. */
interface WebhookOptions {
  readonly url: string;
  /** path of the file with the certificate authority */
  readonly caBundle?: string;
  /** path of the file with the secrets of paths */
  readonly pathSecrets?: string;
}

const KEEP = "kruise-before.yaml";
const CONFIGURATIONS =
  "mutatingwebhookconfiguration/kruise-mutating-webhook-configuration validatingwebhookconfiguration/kruise-validating-webhook-configuration";

function stepsOf(facts: MigrationFacts, options: WebhookOptions): readonly MigrationStep[] {
  const given = optionsText(options);
  const hasTheirs = facts.theirConfigurations.length > 0;
  return [
    keepCopies(facts, hasTheirs),
    grantRights(facts),
    {
      what: "Start the webhooks without passes (serve --tick never, or deploy; without the binding that was taken away no pass can write), and register them beside OpenKruise's. Both inject the same, so that it does not matter who is first.",
      commands: [`sidecarset webhooks ${given} | kubectl apply -f -`],
      back: [`sidecarset webhooks ${given} | kubectl delete -f -`],
    },
    {
      what: "See that API servers are answered. OpenKruiseActive, InjectedTwice, ConversionElsewhere, RightMissing and findings about passes are expected until the end.",
      commands: ["sidecarset check"],
      back: [],
    },
    ...(hasTheirs
      ? [
          {
            what: "Take OpenKruise's webhooks away, before its manager: from here on only ours inject.",
            commands: [`kubectl delete ${CONFIGURATIONS}`],
            back: [`kubectl create -f ${KEEP}`],
          },
        ]
      : []),
    ...facts.managers.filter(isRunning).map(stopManager),
    convert(facts, options),
    ...(optionalKinds(facts).some(({ plural }) => plural === "statefulsets") ? [defineSets(facts)] : []),
    startPasses(),
    { what: "See that all is well.", commands: ["sidecarset check"], back: [] },
    cleanUp(facts),
  ];
}

function keepCopies({ kruiseNamespace }: MigrationFacts, hasTheirs: boolean): MigrationStep {
  return {
    what: "Keep copies.",
    commands: [
      "kubectl get sidecarsets.apps.kruise.io -o yaml > sidecarsets-before.yaml",
      commandText`kubectl -n ${kruiseNamespace} get controllerrevisions -o yaml > revisions-before.yaml`,
      ...(hasTheirs ? [`kubectl get ${CONFIGURATIONS} -o yaml > ${KEEP}`] : []),
    ],
    back: [],
  };
}

function grantRights(facts: MigrationFacts): MigrationStep {
  const optional = optionalKinds(facts).map(({ plural }) => `-f infra/rbac/optional/${OPTIONAL_ROLES[plural]}.yaml`);
  return {
    what: "Make our accounts, and take the right to roll out away from them again until OpenKruise's manager has stopped.",
    commands: [
      [
        "kubectl apply -f infra/rbac/namespace.yaml -f infra/rbac/access.yaml -f infra/rbac/fence.yaml",
        ...optional,
      ].join(" "),
      "kubectl delete clusterrolebinding sidecarset-reconciler",
    ],
    back: ["kubectl delete -f infra/rbac/fence.yaml -f infra/rbac/access.yaml"],
  };
}

function isLabel([key, value]: readonly [string, string]): boolean {
  return qualifiedNameErrors(key).length === 0 && labelValueErrors(value).length === 0;
}

function stopManager({ metadata, spec }: Workload): MigrationStep {
  const labels = Object.entries(spec?.selector?.matchLabels ?? {});
  const wait = commandText`kubectl -n ${metadata?.namespace} wait --for=delete pod`;
  const areValid = wait !== NO_COMMAND && labels.every(isLabel);
  const selector = labels.map(([key, value]) => `${key}=${value}`).join(",");
  const pods = labels.length > 0 ? [areValid ? `${wait} -l ${selector} --timeout=120s` : NO_COMMAND] : [];
  return {
    what: "Stop OpenKruise's manager, and wait until it has ended. Its DaemonSet may go on.",
    commands: [commandText`kubectl -n ${metadata?.namespace} scale deployment/${metadata?.name} --replicas=0`, ...pods],
    back: [
      commandText`kubectl -n ${metadata?.namespace} scale deployment/${metadata?.name} --replicas=${spec?.replicas ?? 1}`,
    ],
  };
}

function convert({ conversion }: MigrationFacts, options: WebhookOptions): MigrationStep {
  const install = `sidecarset install ${optionsText(options)} | kubectl apply -f -`;
  const secret =
    options.pathSecrets === undefined
      ? ""
      : `/s/'"$(sidecarset path-secrets --path-secrets ${quoted(options.pathSecrets)} /convert)"'`;
  const ca = options.caBundle === undefined ? "null" : `"'"$(base64 < ${quoted(options.caBundle)} | tr -d '\\n')"'"`;
  const url = `${options.url.replace(/\/+$/, "")}${secret}/convert`;
  const client = `{"service":null,"url":"${url}","caBundle":${ca}}`;
  // The commands use printf, a shell builtin, because every user can read the arguments of processes.
  const patch = `printf %s '{"spec":{"conversion":{"webhook":{"clientConfig":${client}}}}}' | kubectl patch crd sidecarsets.apps.kruise.io --type=merge --patch-file=/dev/stdin`;
  const { service } = conversion ?? {};
  const theirs = commandText`{"service":{"namespace":"${service?.namespace}","name":"${service?.name}","path":"/convert","port":443},"url":null}`;
  return {
    what: "Have SidecarSets converted by us, and take our definition, which adds conditions to their status. It also gives our account the right to roll out again.",
    // The API server refuses an address that names both a service and a URL.
    commands: [...(service === undefined ? [] : [patch]), install],
    back:
      service === undefined
        ? []
        : [
            theirs === NO_COMMAND
              ? NO_COMMAND
              : `kubectl patch crd sidecarsets.apps.kruise.io --type=merge -p '{"spec":{"conversion":{"webhook":{"clientConfig":${theirs}}}}}'`,
          ],
  };
}

/** The step for StatefulSets, whose CRD would still ask the stopped manager for conversions. */
function defineSets({ setConversion: { service } = {} }: MigrationFacts): MigrationStep {
  const patch = (conversion: string) =>
    `kubectl patch crd statefulsets.apps.kruise.io --type=merge -p '{"spec":{"conversion":${conversion}}}'`;
  const theirs = commandText`{"service":{"namespace":"${service?.namespace}","name":"${service?.name}","path":"/convert","port":443}}`;
  return {
    what: "Have StatefulSets converted by the API server itself, since their versions differ in nothing but the name, and take our definition. Then register their webhooks: infra/webhooks/stateful-sets.yaml with your address in it.",
    // The API server refuses an address with a strategy that needs none.
    commands: [
      ...(service === undefined ? [] : [patch('{"strategy":"None","webhook":null}')]),
      "kubectl apply -f infra/crd/statefulsets.yaml",
    ],
    back:
      service === undefined
        ? []
        : [
            theirs === NO_COMMAND
              ? NO_COMMAND
              : patch(
                  `{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1","v1beta1"],"clientConfig":${theirs}}}`,
                ),
          ],
  };
}

function startPasses(): MigrationStep {
  return {
    what: "Let passes run: turn the schedule on, or serve with --tick. A dry run tells what the next one does: nothing, where OpenKruise had finished.",
    commands: ["sidecarset tick --dry-run"],
    back: ["kubectl delete clusterrolebinding sidecarset-reconciler"],
  };
}

function cleanUp({ managers, daemons }: MigrationFacts): MigrationStep {
  const places = [
    ...managers.map(
      ({ metadata }) => commandText`kubectl -n ${metadata?.namespace} delete deployment/${metadata?.name}`,
    ),
    ...daemons.map(({ metadata }) => commandText`kubectl -n ${metadata?.namespace} delete daemonset/${metadata?.name}`),
  ];
  return {
    what: "When you are sure, days later: take away what is left of OpenKruise, and Helm's record of it, so that it is not uninstalled by mistake.",
    commands: [...places, "kubectl delete secrets -A -l owner=helm,name=kruise"],
    back: [],
  };
}

function optionsText({ url, caBundle, pathSecrets }: WebhookOptions): string {
  return [
    `--url ${quoted(url)}`,
    ...(caBundle === undefined ? [] : [`--ca-bundle ${quoted(caBundle)}`]),
    ...(pathSecrets === undefined ? [] : [`--path-secrets ${quoted(pathSecrets)}`]),
  ].join(" ");
}

// The move to OpenKruise. Passes end first, and OpenKruise's webhooks start before this project's webhooks are removed.

export function planToKruise(facts: MigrationFacts): Migration {
  return {
    direction: "to-kruise",
    found: [
      ...foundIn(facts),
      `${counted(facts.ledgers.length, "ledger")}, with ${counted(reservedPods(facts), "pod")} reserved`,
    ],
    blocks: [],
    same: SAME,
    changes: [
      "while OpenKruise's webhook is down, no pod that it is asked about is created (failurePolicy Fail); pods in kube-system are asked about too",
      "status.conditions, selection, ledgerNamespace and observedAnnotations of SidecarSets go away with our definition: OpenKruise's drops fields that it does not know, and nothing depends on them",
      "the annotations of automatic care have no effect any more",
      "no pod is drained any more, and pods that are drained now stay so: take the annotation sidecarset.kruise.io/drain away, and let a pass run first",
      "pods of SidecarSets with the annotation sidecarset.kruise.io/in-place get neither values nor images any more once their SidecarSet changes: recreate them; new pods get values as literals",
    ],
    risks: [
      "never let both roll out at once: each has a budget of its own, and together they exceed maxUnavailable",
      "`sidecarset uninstall --all` takes every SidecarSet with it: leave --all out",
      "until OpenKruise's manager is ready, SidecarSets can't be read or written in the version that they are not stored in",
    ],
    steps: stepsToKruise(facts),
  };
}

const SERVICE = `{"service":{"namespace":"kruise-system","name":"kruise-webhook-service","path":"/convert","port":443},"url":null,"caBundle":null}`;

function stepsToKruise(facts: MigrationFacts): readonly MigrationStep[] {
  const { kruiseNamespace: namespace, managers, ledgers } = facts;
  const there = managers.some(isRunning);
  const reserved = reservedPods(facts);
  return [
    {
      what: "Keep copies.",
      commands: [
        "kubectl get sidecarsets.apps.kruise.io -o yaml > sidecarsets-before.yaml",
        commandText`kubectl -n ${namespace} get controllerrevisions -o yaml > revisions-before.yaml`,
      ],
      back: [],
    },
    {
      what: "End our passes: turn the schedule off, or serve with --tick never, and take the right to roll out away. Wait a minute, so that a late pass has ended.",
      commands: ["kubectl delete clusterrolebinding sidecarset-reconciler", "sleep 60"],
      back: ["kubectl apply -f infra/rbac/access.yaml -f infra/rbac/fence.yaml"],
    },
    ...(facts.conversion?.url === undefined
      ? []
      : [
          {
            what: "Have SidecarSets converted by OpenKruise's Service; its manager writes its own authority beside it.",
            commands: [
              `kubectl patch crd sidecarsets.apps.kruise.io --type=merge -p '{"spec":{"conversion":{"webhook":{"clientConfig":${SERVICE}}}}}'`,
            ],
            back: ["sidecarset migrate from-kruise prints the line that takes it back"],
          },
        ]),
    ...(there
      ? []
      : [
          {
            what: "Install OpenKruise from its chart repository (Helm 3.17 or later) over what is there: the definition and the namespace become its own, its webhooks are registered beside ours.",
            commands: [
              "helm upgrade --install kruise openkruise/kruise --take-ownership",
              commandText`kubectl -n ${namespace} rollout status deployment/kruise-controller-manager --timeout=300s`,
            ],
            back: ["sidecarset migrate from-kruise tells the steps"],
          },
        ]),
    {
      what: "See that its webhooks are registered, with an authority: this prints a long line for each.",
      commands: [
        "kubectl get mutatingwebhookconfiguration kruise-mutating-webhook-configuration -o jsonpath='{.webhooks[*].clientConfig.caBundle}'",
      ],
      back: [],
    },
    {
      what: "Take our webhooks and roles away. The definition, the SidecarSets and the namespace stay.",
      commands: ["sidecarset uninstall | kubectl delete --ignore-not-found -f -"],
      back: ["sidecarset install --url URL | kubectl apply -f -"],
    },
    {
      what:
        reserved > 0
          ? `Delete what only we use, an hour from now: ${counted(reserved, "pod is", "pods are")} reserved still, and a late pass may hold on to them. Ledgers that stay do no harm, and go with their SidecarSets.`
          : "Delete what only we use. Ledgers that stay do no harm, and go with their SidecarSets.",
      commands: [
        ...ledgers.map(({ metadata }) => commandText`kubectl -n ${namespace} delete configmap/${metadata?.name}`),
        commandText`kubectl -n ${namespace} delete lease/sidecarset-rollout --ignore-not-found`,
      ],
      back: [],
    },
  ];
}
