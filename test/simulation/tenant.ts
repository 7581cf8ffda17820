/** A tenant who uses its rights against all others: it forges the records of its own pods, again and again. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import { countFault, type FaultCounts } from "./faults.ts";
import type { Scheduler } from "./scheduler.ts";

export const TENANT_NAMESPACE = "greedy";
const WRITER = "tenant";

interface TenantOptions {
  readonly server: ApiServer;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly counts: FaultCounts;
  /** milliseconds between forgeries; absent: never */
  readonly everyMs?: number | undefined;
}

export class Tenant {
  readonly #options: TenantOptions;
  /** "name" → the pods' records before they were forged */
  readonly #honest = new Map<string, Readonly<Record<string, string>>>();
  #isStopped = false;

  constructor(options: TenantOptions) {
    this.#options = options;
    this.#goOn();
  }

  /** Gives the pods their true records back, and stops forging. */
  stop(): void {
    this.#isStopped = true;
    for (const pod of this.#pods()) this.#write(pod, this.#honest.get(pod.metadata?.uid ?? ""));
  }

  #goOn(): void {
    const { everyMs, scheduler } = this.#options;
    if (everyMs === undefined) return;
    scheduler.after(everyMs, () => {
      if (this.#isStopped) return;
      this.#forge();
      this.#goOn();
    });
  }

  #pods(): readonly Pod[] {
    const isOwn = ({ metadata }: Pod) =>
      metadata?.namespace === TENANT_NAMESPACE && metadata.deletionTimestamp === undefined;
    return this.#options.server.all<Pod>(PODS).filter(isOwn);
  }

  #forge(): void {
    const { chance, counts } = this.#options;
    const pods = this.#pods();
    if (pods.length === 0) return;
    const pod = chance.pick(pods);
    const uid = pod.metadata?.uid ?? "";
    if (!this.#honest.has(uid)) this.#honest.set(uid, recordsOf(pod));
    this.#write(pod, chance.pick([...this.#lies(), { ...recordsOf(pod), [HASH_ANNOTATION]: "[]" }]));
    countFault(counts, "records forged");
  }

  /** Returns forged records: the newest release, a release that does not exist, or another shape. */
  #lies(): readonly Readonly<Record<string, string>>[] {
    const sets = this.#options.server.all<SidecarSet>(SIDECARSETS);
    const records = (hashOf: (set: SidecarSet) => string, time: string) =>
      JSON.stringify(
        Object.fromEntries(
          sets.map((set) => [set.metadata?.name ?? "", { hash: hashOf(set), updateTimestamp: time, sidecarList: [] }]),
        ),
      );
    const newest = (key: string) => (set: SidecarSet) => set.metadata?.annotations?.[key] ?? "";
    const soon = "9999-01-01T00:00:00Z";
    return [
      { [HASH_ANNOTATION]: records(newest(HASH_ANNOTATION), soon) },
      { [HASH_ANNOTATION]: records(() => "no-release", soon) },
      { [HASH_WITHOUT_IMAGE_ANNOTATION]: records(() => "no-shape", soon) },
    ];
  }

  #write(pod: Pod, records: Readonly<Record<string, string>> | undefined): void {
    if (!records) return;
    const annotations = { ...pod.metadata?.annotations, ...records };
    this.#options.server.put(WRITER, PODS, { ...pod, metadata: { ...pod.metadata, annotations } } as Pod);
  }
}

function recordsOf({ metadata }: Pod): Readonly<Record<string, string>> {
  const keys = [HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION];
  return Object.fromEntries(keys.map((key) => [key, metadata?.annotations?.[key] ?? ""]));
}
