/** The move from this project to OpenKruise's manager: passes end first, its webhooks come before these go. */

import { counted } from "../../../go/counted.ts";
import { commandText } from "../../pod/command-text.ts";
import { isRunning } from "../check/others.ts";
import { foundIn } from "./from-kruise.ts";
import { type Migration, type MigrationFacts, type MigrationStep, reservedPods, SAME } from "./inventory.ts";

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
    steps: stepsOf(facts),
  };
}

const SERVICE = `{"service":{"namespace":"kruise-system","name":"kruise-webhook-service","path":"/convert","port":443},"url":null,"caBundle":null}`;

function stepsOf(facts: MigrationFacts): readonly MigrationStep[] {
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
