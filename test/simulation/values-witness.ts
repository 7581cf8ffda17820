/**
 * Knows the values of every running container, and reports a container with values of another release than its pod's.
 */
import type { Pod } from "../../shared/api/kubernetes.ts";
import { HASH_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import type { ApiServer, Write } from "./api-server.ts";
import type { Chance } from "./chance.ts";
import {
  FORGED,
  hashOfPod,
  imageOf,
  isSidecarOf,
  isWorking,
  plainImage,
  sidecarOf,
  VALUES_SET,
  valuesIn,
  valuesOf,
} from "./objects.ts";

export interface ValuesWitnessOptions {
  readonly server: ApiServer;
  readonly chance: Chance;
  readonly violated: (what: string) => void;
}

export class ValuesWitness {
  readonly #options: ValuesWitnessOptions;
  /** container's id → the version that it runs */
  readonly #running = new Map<string, string>();
  /** "uid version" of each version that a container of the pod has started with */
  readonly #ran = new Set<string>();

  constructor(options: ValuesWitnessOptions) {
    this.#options = options;
  }

  /** Checks that all values of a container, and its image, belong to one release. */
  started(pod: Pod, containerID: string): void {
    const values = valuesIn(pod);
    const [version = ""] = values;
    this.#running.set(containerID, version);
    this.#ran.add(`${pod.metadata?.uid} ${version}`);
    const image = plainImage(pod.spec.containers.find(({ name }) => name === sidecarOf(VALUES_SET))?.image ?? "");
    const isWhole = new Set(values).size === 1 && image === imageOf(VALUES_SET, Number(version));
    if (!isWhole && !values.includes(FORGED))
      this.#options.violated(`${containerID} starts with the values ${values} and ${image}`);
  }

  /**
   * Judges a status. Every pod that it counts as updated and ready must have run the release's values at least once.
   */
  see({ resource, name, object, previous, userAgent }: Write): void {
    if (resource === "pods" && !previous) this.#bear(object as unknown as Pod);
    if (resource !== "sidecarsets" || name !== VALUES_SET || !userAgent.startsWith("pass")) return;
    const { metadata, status } = object as unknown as SidecarSet;
    if (status?.observedGeneration !== metadata?.generation) return;
    const version = versionIn(metadata?.annotations?.[HASH_ANNOTATION]);
    const ever = [...this.#ran].filter((one) => one.endsWith(` ${version}`)).length;
    const counted = status?.updatedReadyPods ?? 0;
    if (counted > ever)
      this.#options.violated(`${counted} pods count as ready with release ${version}, ${ever} have ever run it`);
  }

  /** A new pod first runs the values that it was injected with. */
  #bear(pod: Pod): void {
    this.#ran.add(`${pod.metadata?.uid} ${valuesIn(pod)[0]}`);
  }

  /** Changes values of a pod, as a tenant with this right can. Returns false if there is no pod. */
  forge(): boolean {
    const { server, chance } = this.#options;
    const pods = server
      .all<Pod>(PODS)
      .filter((pod) => !pod.metadata?.deletionTimestamp && valuesIn(pod)[0] !== undefined);
    if (pods.length === 0) return false;
    const pod = chance.pick(pods);
    const annotations = { ...pod.metadata?.annotations, ...valuesOf(FORGED) };
    server.put("tenant", PODS, { ...pod, metadata: { ...pod.metadata, annotations } } as Pod);
    return true;
  }

  /** Reports updated and working pods that do not run the values of their release at the end. */
  problems(): readonly string[] {
    const { server } = this.#options;
    const hash = server.peek<SidecarSet>(SIDECARSETS, { name: VALUES_SET })?.metadata?.annotations?.[HASH_ANNOTATION];
    const version = versionIn(hash);
    return server.all<Pod>(PODS).flatMap((pod) => {
      if (hashOfPod(pod, VALUES_SET) !== hash || !isWorking(pod) || pod.metadata?.deletionTimestamp) return [];
      const id = pod.status?.containerStatuses?.find((one) => isSidecarOf(VALUES_SET, one))?.containerID ?? "";
      const runs = this.#running.get(id) ?? valuesIn(pod)[0];
      const has = valuesIn(pod);
      if (runs === version && has.every((value) => value === version)) return [];
      return [
        `${pod.metadata?.name} is updated to release ${version}, runs values of ${runs} and would start with ${has}`,
      ];
    });
  }
}

const versionIn = (hash: string | undefined) => hash?.split("-")[1] ?? "";
