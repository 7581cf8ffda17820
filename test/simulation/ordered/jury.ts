/** All judges of a world, which see the reads, calls and writes of passes. */
import type { KubernetesObject } from "../../../shared/api/kubernetes.ts";
import type { StatefulSet } from "../../../shared/api/stateful-set.ts";
import {
  type Cluster,
  CONTROLLER_REVISIONS,
  type ObjectKey,
  type Patch,
  PODS,
  type Resource,
  STATEFUL_SETS,
} from "../../../shared/kube/port.ts";
import type { Write } from "../api-server.ts";
import { LandedJudge } from "./landed.ts";
import { type Facts, Looks, type SendingRule, type Sent } from "./looks.ts";
import { changedRevision, deletedRevision, madeClaim, madePod, madeRevision } from "./made.ts";
import { changedPod, deletedPod } from "./removed.ts";
import { writtenStatus } from "./status-rule.ts";

const RULES: Readonly<Record<string, SendingRule>> = {
  "CREATE pods": madePod,
  "CREATE persistentvolumeclaims": madeClaim,
  "CREATE controllerrevisions": madeRevision,
  "PATCH controllerrevisions": changedRevision,
  "DELETE controllerrevisions": deletedRevision,
  "DELETE pods": deletedPod,
  "PATCH pods": changedPod,
  "PATCH statefulsets/status": writtenStatus,
};

export class Jury {
  readonly #looks = new Looks();
  readonly #landed: LandedJudge;
  readonly #facts: Facts;
  readonly #report: (what: string) => void;

  constructor(facts: Facts, report: (what: string) => void) {
    this.#facts = facts;
    this.#report = report;
    this.#landed = new LandedJudge(facts);
  }

  see(write: Write): void {
    const { userAgent, verb, resource, subresource, name } = write;
    const what = `${userAgent}: ${verb} ${resource}${subresource ? `/${subresource}` : ""} ${name}`;
    for (const why of this.#landed.see(write)) this.#report(`${what} ${why}`);
  }

  /** Returns the cluster with a judge that sees every call. */
  watched(pass: string, cluster: Cluster): Cluster {
    return {
      ...cluster,
      get: async (resource, key) => {
        const object = await cluster.get<never>(resource, key);
        if (resource === STATEFUL_SETS) this.#looks.read(pass, object as StatefulSet);
        return object;
      },
      list: async (resource, options) => {
        const list = await cluster.list<never>(resource, options);
        if (resource === PODS || resource === CONTROLLER_REVISIONS)
          this.#looks.listed(pass, resource, list, options?.continue === undefined);
        return list;
      },
      create: (resource, object, options) => {
        this.#judge(pass, {
          verb: "CREATE",
          resource: resource.plural,
          name: object.metadata?.name ?? "",
          body: object,
        });
        return cluster.create(resource, object, options);
      },
      patch: (resource, key, patch, options) => {
        this.#judge(pass, { verb: "PATCH", ...patchOf(resource, key, patch, options?.subresource) });
        return cluster.patch(resource, key, patch, options);
      },
      delete: (resource, key, options) => {
        this.#judge(pass, { verb: "DELETE", resource: resource.plural, name: key.name, body: undefined });
        return cluster.delete(resource, key, options);
      },
    };
  }

  #judge(pass: string, sending: Omit<Sent, "pass" | "look">): void {
    const { verb, resource, name } = sending;
    const look = this.#looks.of(pass);
    const rule = RULES[`${verb} ${resource}`];
    if (!rule || !look) return;
    for (const why of rule({ ...sending, pass, look }, this.#facts))
      this.#report(`${pass}: ${verb} ${resource} ${name} ${why}`);
    if (resource.startsWith("pods")) look.touched.add(name);
  }
}

function patchOf({ plural }: Resource, { name }: ObjectKey, patch: Patch, subresource: string | undefined) {
  const body: unknown = patch.type === "json" ? {} : (patch.body as KubernetesObject);
  return { resource: subresource ? `${plural}/${subresource}` : plural, name, body };
}
