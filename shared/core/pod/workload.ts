/** The workload of a pod, and the command that recreates the workload's pods. */
import type { Pod } from "../../api/kubernetes.ts";
import { counted } from "../../go/counted.ts";
import { RESTARTED_KINDS, type Restarted } from "../actions.ts";
import { commandText, NO_COMMAND } from "./command-text.ts";

/** A controller with the name that kubectl uses. */
interface Workload {
  readonly namespace: string;
  /** kind and name, such as `deployment/web`; "" for a pod without a controller */
  readonly workload: string;
}

/** The recreation of one workload's pods. */
export interface Renewal extends Workload {
  readonly pods: number;
  /** command for a shell */
  readonly command: string;
}

/** The label of ReplicaSets that a Deployment created. */
export const POD_TEMPLATE_HASH_LABEL = "pod-template-hash";
const NAMED = 5;

/** The workload of a pod. A Deployment names its ReplicaSets after itself, with the hash of their template. */
export function workloadOf({ metadata }: Pod): Workload {
  const { namespace = "", ownerReferences = [], labels = {} } = metadata ?? {};
  const owner = ownerReferences.find(({ controller }) => controller === true);
  if (owner === undefined) return { namespace, workload: "" };
  const suffix = `-${labels[POD_TEMPLATE_HASH_LABEL] ?? ""}`;
  if (owner.kind === "ReplicaSet" && suffix !== "-" && owner.name.endsWith(suffix))
    return { namespace, workload: `deployment/${owner.name.slice(0, -suffix.length)}` };
  const [group = ""] = owner.apiVersion.split("/");
  const kind = owner.kind.toLowerCase();
  const isBuiltIn = ["apps", "batch", "v1"].includes(group);
  return { namespace, workload: `${isBuiltIn ? kind : `${kind}.${group}`}/${owner.name}` };
}

/** A workload that may have a restart, from one of its pods. Only its ReplicaSet shows whether it has. */
export interface RestartedWorkload extends Omit<Restarted, "uid"> {
  /** key that identifies the workload */
  readonly key: string;
  /** the pod's controller */
  readonly owner: { readonly name: string; readonly uid: string };
}

/** The workload to restart; undefined: a new template does not recreate its pods, or not in an order of its own. */
export function restartedWorkloadOf(pod: Pod): RestartedWorkload | undefined {
  const { namespace, workload: text } = workloadOf(pod);
  const [word = "", name = ""] = text.split("/");
  const workload = RESTARTED_KINDS.find((kind) => kind.toLowerCase() === word);
  const owner = pod.metadata?.ownerReferences?.find(({ controller }) => controller === true);
  return workload && owner && { key: keyOfWorkload({ workload, namespace, name }), workload, namespace, name, owner };
}

/** A key such as `Deployment shop/web`. */
export function keyOfWorkload({ workload, namespace, name }: Partial<Omit<Restarted, "uid">>): string {
  return `${workload} ${namespace}/${name}`;
}

/** The fields of a pod that say how it is recreated. */
export interface WorkloadPod extends Workload {
  readonly name: string;
}

/** The renewals by namespace and workload. Pods of a workload without a restart command are deleted. */
export function renewalsOf(pods: readonly Pod[]): readonly Renewal[] {
  return renewals(pods.map((pod) => ({ ...workloadOf(pod), name: pod.metadata?.name ?? "" })));
}

function renewals(pods: readonly WorkloadPod[]): readonly Renewal[] {
  const groups = Map.groupBy(pods, ({ namespace, workload }) => `${namespace}\0${workload}`);
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, those]) => {
      const [namespace = "", workload = ""] = key.split("\0");
      return { namespace, workload, pods: those.length, command: commandOf(namespace, workload, those) };
    });
}

function commandOf(namespace: string, workload: string, pods: readonly WorkloadPod[]): string {
  const [kind = ""] = workload.split("/");
  // Workloads that `kubectl rollout restart` knows.
  if (RESTARTED_KINDS.some((one) => one.toLowerCase() === kind))
    return commandText`kubectl -n ${namespace} rollout restart ${workload}`;
  // The pod is working, and its deletion counts as a failed attempt of the Job.
  if (kind === "job") return commandText`# ${namespace}: the next run of ${workload} gets it`;
  const names = pods.slice(0, NAMED).map(({ name }) => name);
  const command = commandText`kubectl -n ${namespace} delete pod ${names}`;
  return pods.length > NAMED && command !== NO_COMMAND ? `${command} # and ${pods.length - NAMED} more` : command;
}

/** The advice for pods that must be recreated. `pods`: with controllers and labels; empty if unknown. */
export function renewalHint(pods: readonly Pod[]): string {
  return renewalText(pods.map((pod) => ({ ...workloadOf(pod), name: pod.metadata?.name ?? "" })));
}

/** The text for pods with known workloads. */
export function renewalText(pods: readonly WorkloadPod[]): string {
  const all = renewals(pods);
  if (all.length === 0) return "recreate them: kubectl rollout restart of their workloads";
  const some = all.slice(0, 3).map(adviceOf);
  const more = all.length > some.length ? [`and ${counted(all.length - some.length, "more workload")}`] : [];
  const text = [...some, ...more].join("; ");
  const areJobs = all.every(({ workload }) => workload.startsWith("job/"));
  return areJobs ? text : `recreate ${pods.length === 1 ? "it" : "them"}: ${text}`;
}

function adviceOf({ workload, command }: Renewal): string {
  if (workload === "") return `${command} (${ALONE})`;
  return command.replace(/^# (\S+: )?/, "");
}

const ALONE = "it has no workload that creates another";

// Reads the set's name and the ordinal from a pod's name.

const NAME = /^(.*)-([0-9]+)$/s;
const INT32_MAX = 2 ** 31 - 1;

/**
 * The parts of a pod's name: "web-12" gives web and 12. Another name gives no parent and -1. An ordinal beyond 32 bits
 * gives the parent and -1. Compat: digits may begin with zeros (vector pod-names, name/web-007).
 */
export function parsePodName(name: string): { readonly parent: string; readonly ordinal: number } {
  const [, parent = "", digits] = NAME.exec(name) ?? [];
  const ordinal = Number(digits ?? -1);
  return { parent, ordinal: ordinal <= INT32_MAX ? ordinal : -1 };
}

export function ordinalOf({ metadata }: { readonly metadata?: { readonly name?: string } }): number {
  return parsePodName(metadata?.name ?? "").ordinal;
}
