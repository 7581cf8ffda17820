/** Obstacles to the writes of passes in worlds of some kinds: policies, a busy API server, a proxy. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { KubeError } from "../../shared/kube/error.ts";
import type { Chance } from "./chance.ts";
import { answeredWith } from "./failures.ts";
import type { KindFault } from "./faults.ts";

export type HindrancePlan =
  /** an admission policy or a webhook refuses calls: all, all about one namespace, or all about one object */
  | {
      readonly kind: "policy";
      readonly call: string;
      readonly code: 403 | 404 | 409 | 413 | 422 | 500;
      readonly namespace?: string;
      readonly name?: string;
      /** the cause of the refusal; absent: a policy */
      readonly by?: "webhook" | "size";
      /** milliseconds until the answer; absent: an immediate answer */
      readonly waitMs?: number;
    }
  /** a 429 answer, with the seconds to wait */
  | { readonly kind: "busy"; readonly rate: number; readonly seconds: number }
  /** an error page from a proxy between the client and the API server */
  | { readonly kind: "proxy"; readonly rate: number; readonly code: 404 | 502 };

export interface Hindrance {
  readonly fault: KindFault;
  /** true if only calls are refused that would otherwise succeed */
  readonly isAdmission: boolean;
  /** milliseconds until the answer is sent; absent: an immediate answer */
  readonly waitMs?: number | undefined;
  readonly error: (method: string) => KubeError;
}

/** A call that is about to arrive at the API server. */
interface Hindered {
  readonly call: string;
  readonly namespace: string | undefined;
  /** the object as "namespace/name" */
  readonly target: string;
}

/** Returns the obstacle; undefined: the call arrives. */
export type Hinder = (hindered: Hindered) => Hindrance | undefined;

export function hinderBy(plans: readonly HindrancePlan[], chance: Chance): Hinder {
  return (hindered) => {
    const plan = plans.find((one) => isHit(one, hindered, chance));
    return plan && hindranceOf(plan, hindered);
  };
}

function isHit(plan: HindrancePlan, { call, namespace, target }: Hindered, chance: Chance): boolean {
  if (plan.kind !== "policy") return chance.isLucky(plan.rate);
  if (plan.call !== call || (plan.namespace !== undefined && plan.namespace !== namespace)) return false;
  return plan.name === undefined || target === `${plan.namespace}/${plan.name}`;
}

/** Returns true if one of these obstacles refuses to change this pod. */
export function refusesPod(plans: readonly HindrancePlan[], { metadata }: Pod): boolean {
  const { namespace = "", name = "" } = metadata ?? {};
  const isOfPod = (plan: HindrancePlan) =>
    plan.kind === "policy" &&
    plan.call === "PATCH pods" &&
    [undefined, namespace].includes(plan.namespace) &&
    [undefined, name].includes(plan.name);
  return plans.some(isOfPod);
}

function hindranceOf(plan: HindrancePlan, { call }: Hindered): Hindrance {
  switch (plan.kind) {
    case "policy": {
      // A policy about pods may cover their status too. Only one of the two refusals is reported.
      const rule = call
        .replace("pods/status", "pods")
        .toLowerCase()
        .replaceAll(/[^a-z]+/g, "-");
      const message = wordsOf(plan, rule);
      const answer = JSON.stringify({ kind: "Status", code: plan.code, status: "Failure", message });
      const error = (method: string) => answeredWith(method, plan.code, answer);
      return { fault: "refused by a policy", isAdmission: true, waitMs: plan.waitMs, error };
    }
    case "busy": {
      const answer = JSON.stringify({ kind: "Status", code: 429, status: "Failure", message: "too many requests" });
      const error = (method: string) => answeredWith(method, 429, answer, String(plan.seconds));
      return { fault: "429 for many seconds", isAdmission: false, error };
    }
    case "proxy": {
      // In one world an API server in Go answers as if it lacked the API group.
      const isGo = plan.code === 404 && plan.rate === 0.1;
      const page = isGo
        ? "404 page not found\n"
        : `<html><head><title>${plan.code}</title></head><body>nginx</body></html>`;
      const error = (method: string) => answeredWith(method, plan.code, page);
      return { fault: "page of a proxy", isAdmission: false, error };
    }
    default:
      return plan satisfies never;
  }
}

/**
 * Returns the message of a real API server. Source: kube-apiserver 1.36, for a webhook, a policy, and objects near its
 * size limits.
 */
function wordsOf({ by, code }: Extract<HindrancePlan, { kind: "policy" }>, rule: string): string {
  if (by === "webhook" && code === 500)
    return `Internal error occurred: failed calling webhook "${rule}.greedy.example": context deadline exceeded`;
  if (by === "webhook") return `admission webhook "${rule}.greedy.example" denied the request: not in this world`;
  if (by === "size" && code === 500) return "etcdserver: request is too large";
  if (by === "size" && code === 413) return "Request entity too large: limit is 3145728";
  if (by === "size") return "metadata.annotations: Too long: may not be more than 262144 bytes";
  return `it is forbidden: policy ${rule} denied the request: not in this world`;
}
