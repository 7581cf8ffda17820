/**
 * Judges whether a pod has exactly what its SidecarSets inject. Each SidecarSet may have any state between what the
 * creator knew and the answer.
 */
import { isDeepStrictEqual } from "node:util";
import type { ControllerRevision, Namespace, Pod } from "../../../shared/api/kubernetes.ts";
import {
  HASH_ANNOTATION,
  HASH_WITHOUT_IMAGE_ANNOTATION,
  INJECT_KEY,
  NAMESPACE_NAME_LABEL,
  WORKING_HOT_UPGRADE_ANNOTATION,
} from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import type { InjectionGates } from "../../../shared/core/injection/admit-pod.ts";
import { CONTROLLER_REVISIONS, NAMESPACES, SIDECARSETS } from "../../../shared/kube/port.ts";
import { type Chosen, chosenOf, inOrder } from "./expected-match.ts";
import { expectedPod, gated, SOME_TIME } from "./expected-pod.ts";
import type { ObjectStates, Told } from "./object-states.ts";
import { JSON_ANNOTATION } from "./sidecarset-plans.ts";

/** All gates of the injection. For a new gate the compiler demands a probability in pod-world.ts. */
export type Gates = Required<InjectionGates>;

/** A review of a pod. */
export interface Asked {
  readonly pod: Pod;
  readonly namespace: string;
  /** false: a review of an update or a subresource, into which nothing is injected */
  readonly isCreated: boolean;
  /** the states that the pod's creator knew before */
  readonly told: Told;
  /** start of the decision in milliseconds */
  readonly fromMs: number;
  readonly untilMs: number;
  /** true if the answer says that its facts are too old */
  readonly isStale: boolean;
}

interface Option {
  readonly as: Chosen;
  readonly is: SidecarSet | undefined;
}

/** The most combinations that are tried for one pod. */
const MOST_WAYS = 600;
const NOBODY: Told = new Map();
const NOTHING: Option = { as: undefined, is: undefined };

export class PodJudge {
  readonly #states: ObjectStates;
  readonly #gates: Gates;
  readonly #random: number;

  constructor(states: ObjectStates, gates: Gates, random: number) {
    this.#states = states;
    this.#gates = gates;
    this.#random = random;
  }

  /** Returns the problem of the answer; undefined: none. `answer` undefined: the pod was refused. */
  problemOf(asked: Asked, answer: Pod | undefined): string | undefined {
    const found = answer && plain(answer, asked);
    let first: Pod | undefined | "none" = "none";
    let ways = 0;
    for (const wanted of this.#wanted(asked)) {
      const expected = wanted && plain(wanted, asked);
      if (isDeepStrictEqual(expected, found)) return undefined;
      first = expected;
      if (++ways > MOST_WAYS) return undefined;
    }
    return differenceOf(first === "none" ? undefined : first, found);
  }

  /** Returns all allowed pods, the newest last; undefined stands for a refusal. */
  *#wanted(asked: Asked): Generator<Pod | undefined> {
    const { pod, isCreated } = asked;
    const base = isCreated ? gated(pod, this.#gates.KruisePodReadinessGate) : pod;
    if (!isCreated || this.#isLetBe(pod)) {
      yield base;
      return;
    }
    for (const namespace of this.#namespaces(asked))
      for (const options of waysOf(this.#options(asked, namespace))) yield this.#injected(base, options);
  }

  /** Ignores the phase in a new pod, because the API server resets it. */
  #isLetBe({ metadata }: Pod): boolean {
    const { labels = {}, annotations = {} } = metadata ?? {};
    const declines = labels[INJECT_KEY] === "false" || annotations[INJECT_KEY] === "false";
    return declines && this.#gates.PodOptOut;
  }

  #namespaces({ namespace, told, isStale }: Asked): readonly (Namespace | undefined)[] {
    const seen = this.#states.since(isStale ? NOBODY : told, { plural: NAMESPACES.plural, name: namespace });
    const all = seen.map(({ object }) => object as Namespace | undefined);
    // A selector of only the name works even if the namespace does not exist.
    const nameOnly: Namespace = { metadata: { name: namespace, labels: { [NAMESPACE_NAME_LABEL]: namespace } } };
    return all.includes(undefined) ? [nameOnly, ...all] : all;
  }

  /** Returns what each SidecarSet may contribute. */
  #options(asked: Asked, namespace: Namespace | undefined): readonly (readonly Option[])[] {
    const told = asked.isStale ? NOBODY : asked.told;
    const places = this.#states.places(SIDECARSETS.plural);
    const histories = this.#revisions(told);
    return places.map((place) => {
      const states = this.#states.since(told, place);
      return states.flatMap(({ object }): readonly Option[] => {
        const is = object as SidecarSet | undefined;
        if (!is) return [NOTHING];
        const around = (revisions: readonly ControllerRevision[]) => ({ namespace, revisions, random: this.#random });
        const isPinned = is.spec.injectionStrategy?.revision !== undefined;
        return (isPinned ? histories : [[]]).map((all) => ({ as: chosenOf(is, asked.pod, around(all)), is }));
      });
    });
  }

  /** Returns all lists of revisions that a pass may have found. */
  #revisions(told: Told): readonly (readonly ControllerRevision[])[] {
    const { plural } = CONTROLLER_REVISIONS;
    const places = this.#states.places(plural);
    const seen = places.map((place) => this.#states.since(told, place).map(({ version }) => version));
    const oldest = Math.max(0, ...seen.map(([version = 0]) => version));
    const versions = seen.flat().filter((version) => version >= oldest);
    return [...new Set([oldest, ...versions])].map(
      (version) => this.#states.list(plural, version) as readonly ControllerRevision[],
    );
  }

  #injected(pod: Pod, options: readonly Option[]): Pod | undefined {
    if (options.some(({ as }) => as === "refused")) return undefined;
    const chosen = options.flatMap(({ as, is }) => (as && as !== "refused" && is ? [{ as, is }] : []));
    return expectedPod(pod, inOrder(chosen), this.#gates.EnableSortSidecarContainerByName);
  }
}

/** Returns all combinations of one option of each SidecarSet. The last options come last. */
function* waysOf(all: readonly (readonly Option[])[]): Generator<readonly Option[]> {
  const [first, ...others] = all;
  if (!first) {
    yield [];
    return;
  }
  for (const option of first) for (const rest of waysOf(others)) yield [option, ...rest];
}

/**
 * Returns the pod in a form that can be compared: one text replaces all times within the request, and JSON texts have
 * one form.
 */
function plain(pod: Pod, { fromMs, untilMs }: Asked): Pod {
  if (!pod.metadata?.annotations) return pod;
  const annotations: Record<string, string> = { ...pod.metadata.annotations };
  const isNow = (text: string) => Date.parse(text) >= fromMs - 1_000 && Date.parse(text) <= untilMs;
  for (const key of [HASH_ANNOTATION, HASH_WITHOUT_IMAGE_ANNOTATION])
    if (annotations[key])
      annotations[key] = annotations[key].replace(/"updateTimestamp":"(\d{4}-[-\dT:]{14}Z)"/g, (all, text: string) =>
        isNow(text) ? `"updateTimestamp":"${SOME_TIME}"` : all,
      );
  for (const key of [JSON_ANNOTATION, WORKING_HOT_UPGRADE_ANNOTATION])
    if (annotations[key]?.startsWith("{")) annotations[key] = sortedText(annotations[key]);
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

function sortedText(text: string): string {
  return JSON.stringify(Object.entries(JSON.parse(text) as object).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** Describes the first difference between the two values. */
function differenceOf(wanted: unknown, found: unknown, path = "pod"): string {
  const isBoth = typeof wanted === "object" && typeof found === "object" && wanted !== null && found !== null;
  if (!isBoth) return `${path} is ${shown(found)} where it is to be ${shown(wanted)}`;
  const [one, other] = [wanted as Record<string, unknown>, found as Record<string, unknown>];
  const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  const key = keys.find((name) => !isDeepStrictEqual(one[name], other[name]));
  return key === undefined ? `${path} is another` : differenceOf(one[key], other[key], `${path}.${key}`);
}

const shown = (value: unknown) => JSON.stringify(value)?.slice(0, 300) ?? "absent";
