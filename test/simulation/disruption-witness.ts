/**
 * Judges writes of passes to disruption budgets and to the pods under them. A pass restarts a ready pod only after each
 * of its budgets counts it. Each counted pod uses one allowed disruption.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { DISRUPTION_BUDGETS, PODS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import { type Budget, coversPod, FORGOTTEN_MS } from "./disruptions.ts";
import { isPodReady, isWorking } from "./objects.ts";

export interface DisruptionWitnessOptions {
  readonly server: ApiServer;
  readonly nowMs: () => number;
  readonly violated: (what: string) => void;
}

export class DisruptionWitness {
  readonly #options: DisruptionWitnessOptions;

  constructor(options: DisruptionWitnessOptions) {
    this.#options = options;
  }

  see(write: Write): void {
    if (!write.userAgent.startsWith("pass")) return;
    if (write.resource === DISRUPTION_BUDGETS.plural) this.#seeBudget(write);
    if (write.resource === PODS.plural && write.subresource === "" && write.verb === "patch") this.#seePod(write);
  }

  #seePod(write: Write): void {
    const [before, pod] = [write.previous as unknown as Pod | undefined, write.object as unknown as Pod];
    if (!before || imagesOf(before) === imagesOf(pod) || !isPodReady(before)) return;
    const { server, nowMs } = this.#options;
    const { name = "" } = pod.metadata ?? {};
    for (const budget of server.all<Budget>(DISRUPTION_BUDGETS).filter((one) => coversPod(one, before))) {
      const at = budget.status.disruptedPods[name];
      if (at === undefined) this.#report(write, `restarts a ready pod that ${budget.metadata?.name} does not count`);
      else if (nowMs() - Date.parse(at) > FORGOTTEN_MS) this.#report(write, "was counted more than two minutes ago");
    }
  }

  #seeBudget(write: Write): void {
    const [before, after] = [write.previous as unknown as Budget, write.object as unknown as Budget];
    if (write.verb !== "patch" || write.subresource !== "status")
      this.#report(write, "is more than a patch of a budget's status");
    const [then, now] = [before.status, after.status];
    const added = Object.keys(now.disruptedPods).filter((name) => !(name in then.disruptedPods));
    const removed = Object.keys(then.disruptedPods).filter((name) => !(name in now.disruptedPods));
    if (now.disruptionsAllowed !== then.disruptionsAllowed - added.length)
      this.#report(
        write,
        `counts ${added.length} more, and allows ${now.disruptionsAllowed} of ${then.disruptionsAllowed}`,
      );
    if (now.disruptionsAllowed < 0) this.#report(write, "allows fewer than none");
    if (added.length > 0 && then.observedGeneration !== before.metadata?.generation)
      this.#report(write, "counts by a status that is not of the newest spec");
    for (const name of removed) this.#seeForgotten(write, name);
  }

  /** A pass may release a pod from a budget only if the pod is ready or deleted. */
  #seeForgotten(write: Write, name: string): void {
    const { namespace = "" } = write.object.metadata;
    const pod = this.#options.server.peek<Pod>(PODS, { namespace, name });
    if (pod && isPodReady(pod) && !isWorking(pod)) this.#report(write, `forgets ${name}, which is on its way down`);
  }

  #report({ userAgent, verb, resource, name }: Write, why: string): void {
    this.#options.violated(`${userAgent}: ${verb} ${resource} ${name} ${why}`);
  }
}

function imagesOf({ spec }: Pod): string {
  return spec.containers.map(({ image }) => image).join();
}
