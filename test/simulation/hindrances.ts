/** Obstacles to the writes of passes, in worlds of some kinds: policies, a busy API server, a proxy. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { KubeError } from "../../shared/kube/error.ts";
import type { Chance } from "./chance.ts";
import { answeredWith } from "./failures.ts";
import type { KindFault } from "./faults.ts";

export type HindrancePlan =
  /** an admission policy, or a webhook, refuses these calls: all of them, those about one namespace, or about one object of it */
  | {
      readonly kind: "policy";
      readonly call: string;
      readonly code: 403 | 404 | 409 | 413 | 422 | 500;
      readonly namespace?: string;
      readonly name?: string;
      /** the kind of refusal; absent: a policy */
      readonly by?: "webhook" | "size";
      /** milliseconds until the answer; absent: none */
      readonly waitMs?: number;
    }
  /** 429, and how long to wait */
  | { readonly kind: "busy"; readonly rate: number; readonly seconds: number }
  /** an error page of a proxy before the API server */
  | { readonly kind: "proxy"; readonly rate: number; readonly code: 404 | 502 };

export interface Hindrance {
  readonly fault: KindFault;
  /** only calls that would succeed otherwise are refused */
  readonly isAdmission: boolean;
  /** milliseconds until the answer is sent; absent: none */
  readonly waitMs?: number | undefined;
  readonly error: (method: string) => KubeError;
}

/** A call on its way. */
interface Hindered {
  readonly call: string;
  readonly namespace: string | undefined;
  /** "namespace/name" */
  readonly target: string;
}

/** undefined: nothing hinders the call. */
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

/** Returns whether one of these refuses to change this pod. */
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
      // A policy about pods may be about their status too; only one of the two refusals is reported.
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
      // One server, written in Go, answers like an API server without the group.
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

/** Returns the words of a real API server. Source: kube-apiserver 1.36, for a webhook, a policy, and objects near its limits. */
function wordsOf({ by, code }: Extract<HindrancePlan, { kind: "policy" }>, rule: string): string {
  if (by === "webhook" && code === 500)
    return `Internal error occurred: failed calling webhook "${rule}.greedy.example": context deadline exceeded`;
  if (by === "webhook") return `admission webhook "${rule}.greedy.example" denied the request: not in this world`;
  if (by === "size" && code === 500) return "etcdserver: request is too large";
  if (by === "size" && code === 413) return "Request entity too large: limit is 3145728";
  if (by === "size") return "metadata.annotations: Too long: may not be more than 262144 bytes";
  return `it is forbidden: policy ${rule} denied the request: not in this world`;
}
