/** A cluster in memory for whole reconciles: `decide` reads it, and its actions are carried out there. */

import { isDeepStrictEqual } from "node:util";
import type {
  ControllerRevision,
  KubernetesObject,
  LabelSelector,
  Namespace,
  Pod,
  PodStatus,
} from "../../../shared/api/kubernetes.ts";
import { CUSTOM_VERSION_LABEL, SIDECARSET_NAME_LABEL } from "../../../shared/api/names.ts";
import type { SidecarSet, SidecarSetStatus } from "../../../shared/api/sidecarset.ts";
import type { Action } from "../../../shared/core/actions.ts";
import { type DecideContext, type Decision, decide, type Observation } from "../../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { projectPod } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { compareUtf8 } from "../../../shared/go/json/go-json.ts";
import { selectorMatches } from "../../../shared/go/label-selector.ts";
import { UNTOUCHED } from "../../support/rollout-fixture.ts";
import { withCondition, withPlan } from "./pod-update.ts";

export interface RecordedEvent {
  readonly kind: string;
  readonly object: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

/** Checks that the kernel without rules decides as the reference does, and with rules decides the same. */
function decideAlike(observation: Observation, context: DecideContext): Decision {
  const decision = decide(observation, context);
  if (!isDeepStrictEqual(decide(observation, { ...context, rules: [] }), decision))
    throw new Error("without rules the decision is another one");
  return decision;
}

interface When {
  readonly now: string;
  readonly kruiseNamespace: string;
  /** the assumed resourceVersion of the SidecarSet */
  readonly resourceVersion?: string;
}

export function keyOf({ metadata }: KubernetesObject): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

/** Returns a sort key: the namespace if namespaces are selected, otherwise the pod's own key. */
function placeOf(pod: Pod, namespaceSelector: LabelSelector | undefined): string {
  return namespaceSelector ? `${pod.metadata?.namespace}\0${pod.metadata?.name}` : keyOf(pod);
}

export class ReconcileCluster {
  readonly sidecarSets = new Map<string, SidecarSet>();
  readonly pods = new Map<string, Pod>();
  readonly revisions = new Map<string, ControllerRevision>();
  readonly namespaces: Namespace[] = [];
  events: RecordedEvent[] = [];

  add(object: KubernetesObject): void {
    if (object.kind === "SidecarSet") this.sidecarSets.set(object.metadata?.name ?? "", object as SidecarSet);
    else if (object.kind === "Pod") this.pods.set(keyOf(object), object as Pod);
    else if (object.kind === "ControllerRevision") this.revisions.set(keyOf(object), object as ControllerRevision);
    else if (object.kind === "Namespace") this.namespaces.push(object);
    else throw new Error(`unknown kind ${object.kind}`);
  }

  /** Updates everything except the status. */
  updateSidecarSet({ status: _, ...object }: SidecarSet): void {
    const name = object.metadata?.name ?? "";
    const status = this.sidecarSets.get(name)?.status;
    this.sidecarSets.set(name, status === undefined ? object : { ...object, status });
  }

  updatePod(key: string, change: (pod: Pod) => Pod): void {
    const pod = this.pods.get(key);
    if (pod) this.pods.set(key, change(pod));
  }

  setPodStatus(key: string, status: PodStatus): void {
    this.updatePod(key, (pod) => ({ ...pod, status }));
  }

  /** Runs a reconcile: a decision, another one if a name was taken, and all its actions. */
  reconcile(name: string, when: When): Decision | undefined {
    this.events = [];
    const stored = this.sidecarSets.get(name);
    if (!stored) return undefined;
    // The observation of pods refuses such a selector too.
    const { selector, namespaceSelector } = stored.spec;
    if ([selector, namespaceSelector].some((one) => typeof selectorMatches(one, {}) === "object")) return undefined;
    const { resourceVersion = stored.metadata?.resourceVersion ?? "" } = when;
    const sidecarSet = { ...stored, metadata: { ...stored.metadata, resourceVersion } };
    const taken: ControllerRevision[] = [];
    for (let attempt = 0; attempt < 20; attempt++) {
      const pods = this.observePods(sidecarSet);
      const decision = decideAlike(
        { sidecarSet, pods, revisions: this.list(name, when), ...UNTOUCHED, taken },
        { ...when, settings: DEFAULT_ROLLOUT_SETTINGS, areConditionsLeft: true },
      );
      const inTheWay = this.findInTheWay(decision);
      if (!inTheWay) {
        for (const action of decision.actions) this.carryOut(action);
        return decision;
      }
      taken.push(inTheWay);
    }
    throw new Error("no free name for a ControllerRevision");
  }

  private list(name: string, { kruiseNamespace }: When): readonly ControllerRevision[] {
    return [...this.revisions.values()].filter(
      ({ metadata }) => metadata?.namespace === kruiseNamespace && metadata.labels?.[SIDECARSET_NAME_LABEL] === name,
    );
  }

  private findInTheWay({ actions }: Decision): ControllerRevision | undefined {
    const create = actions.find(({ kind }) => kind === "CreateRevision");
    return create?.kind === "CreateRevision" ? this.revisions.get(keyOf(create.revision)) : undefined;
  }

  private observePods(sidecarSet: SidecarSet): readonly Pod[] {
    const { selector, namespaceSelector } = sidecarSet.spec;
    const inNamespaces = [...this.pods.values()].filter(
      ({ metadata }) => !namespaceSelector || this.isSelected(metadata?.namespace ?? "", namespaceSelector),
    );
    return inNamespaces
      .filter(({ metadata }) => selectorMatches(selector, metadata?.labels) === true)
      .sort((a, b) => compareUtf8(placeOf(a, namespaceSelector), placeOf(b, namespaceSelector)))
      .map((pod) => projectPod(pod, sidecarSet));
  }

  private isSelected(namespace: string, selector: LabelSelector): boolean {
    return this.namespaces.some(
      ({ metadata }) => metadata?.name === namespace && selectorMatches(selector, metadata.labels) === true,
    );
  }

  private carryOut(action: Action): void {
    switch (action.kind) {
      case "CreateRevision":
        this.revisions.set(keyOf(action.revision), action.revision);
        break;
      case "RenumberRevision":
        this.updateRevision(action, ({ revision: _, ...rest }) => ({ ...rest, revision: action.revision }));
        break;
      case "LabelRevision":
        this.updateRevision(action, (revision) => {
          const labels = { ...revision.metadata?.labels, [CUSTOM_VERSION_LABEL]: action.customVersion };
          return { ...revision, metadata: { ...revision.metadata, labels } };
        });
        break;
      case "DeleteRevision":
        this.revisions.delete(`${action.namespace}/${action.name}`);
        break;
      case "PatchStatus":
        this.setStatus(action.sidecarSet, action.status);
        break;
      case "PatchPod":
        this.updatePod(`${action.pod.namespace}/${action.pod.name}`, (pod) =>
          withPlan(pod, { kind: "planned", images: action.images, annotations: action.annotations }),
        );
        break;
      case "CreatePullPod":
      case "DeletePullPod":
      case "EvictPod":
      case "RestartWorkload":
        throw new Error("no vector has pods that are replaced");
      case "PatchPodCondition":
        this.updatePod(`${action.pod.namespace}/${action.pod.name}`, (pod) => withCondition(pod, action.condition));
        break;
      case "RecordEvent": {
        const { regarding, kind: _, ...event } = action;
        const object = regarding.namespace ? `${regarding.namespace}/${regarding.name}` : regarding.name;
        this.events.push({ kind: regarding.kind, object, ...event });
        break;
      }
      default:
        action satisfies never;
    }
  }

  private updateRevision(
    { namespace, name }: { readonly namespace: string; readonly name: string },
    change: (revision: ControllerRevision) => ControllerRevision,
  ): void {
    const key = `${namespace}/${name}`;
    const revision = this.revisions.get(key);
    if (!revision) throw new Error(`there is no ControllerRevision ${key}`);
    this.revisions.set(key, change(revision));
  }

  private setStatus(name: string, status: SidecarSetStatus): void {
    const sidecarSet = this.sidecarSets.get(name);
    if (sidecarSet) this.sidecarSets.set(name, { ...sidecarSet, status });
  }
}
