/** Parses every annotation that steers the rollout of a SidecarSet, once, into one value with all problems. */
import type { ObjectMeta } from "../../../api/kubernetes.ts";
import * as NAMES from "../../../api/names.ts";
import type { SidecarSet } from "../../../api/sidecarset.ts";
import {
  type Amount,
  ANNOTATIONS,
  type GivenUpRelease,
  type HaltOn,
  type Read,
  type Replace,
  type SteeringAnnotation,
  type Undone,
} from "./annotations.ts";
import type { MetricCheck } from "./metric-checks.ts";
import type { Wave } from "./waves.ts";

interface SteeringProblem {
  readonly annotation: string;
  /** the problem in one sentence */
  readonly text: string;
  /** true: the rollout stops; false: the annotation is ignored */
  readonly isStopping: boolean;
}

/** The parsed annotations. An annotation that cannot be read counts as absent, unless a field says otherwise. */
export interface Steering {
  readonly haltOn?: HaltOn | undefined;
  readonly undoesOnHalt: boolean;
  /** releases that were rolled back; undefined: the annotation cannot be read */
  readonly undone: readonly Undone[] | undefined;
  /** true: the release was restored after a failed one, and no other release followed */
  readonly isPutBack: boolean;
  readonly givenUp: readonly GivenUpRelease[];
  /** the address that passes ask before each batch */
  readonly gate?: URL | undefined;
  /** metric checks for this release's rollout */
  readonly checks: readonly MetricCheck[];
  readonly waves?: readonly Wave[] | undefined;
  /** the release skips the waves: on request, or because it was restored after a failed one */
  readonly areWavesSkipped: boolean;
  /** number of pods of one owner that may be down at once; it is 0 if the annotation cannot be read */
  readonly ownerBudget?: Amount | undefined;
  readonly followsOrdinals: boolean;
  readonly ignoresNeverReady: boolean;
  readonly replace: Replace;
  /** true: pods that missed their sidecars are evicted, by the annotation for such pods alone */
  readonly evictsMissed: boolean;
  /** seconds for which a pod is out of endpoints before its sidecars restart; undefined: no drain */
  readonly drainSeconds?: number | undefined;
  /** number of nodes that pull images before pods are updated; absent: no pre-pull */
  readonly prePull?: number | undefined;
  /** true: passes compare times that other machines recorded */
  readonly isTimed: boolean;
  /** problems; problems that stop the rollout come first */
  readonly problems: readonly SteeringProblem[];
}

const EMPTY: ObjectMeta = {};
/** Parsed annotations by metadata object, which never changes. Many callers read them once for each pod. */
const known = new WeakMap<ObjectMeta, Steering>();

export function steeringOf({ metadata = EMPTY }: SidecarSet): Steering {
  const before = known.get(metadata);
  if (before) return before;
  const steering = parse(metadata);
  known.set(metadata, steering);
  return steering;
}

/** Values of the annotations; absent: not set, or unreadable. */
type Values = {
  readonly [K in SteeringAnnotation]?: NonNullable<ReturnType<(typeof ANNOTATIONS)[K]["read"]>["value"]>;
};

function parse({ name = "", annotations = {} }: ObjectMeta): Steering {
  const written = Object.entries(ANNOTATIONS).flatMap(([annotation, row]) => {
    const text = annotations[annotation];
    if (text === undefined) return [];
    return [{ ...row, annotation, ...(row.read(text, name) as Read<unknown>) }];
  });
  const values: Values = Object.fromEntries(written.map(({ annotation, value }) => [annotation, value]));
  const {
    [NAMES.WAVES_ANNOTATION]: waves,
    [NAMES.METRICS_ANNOTATION]: checks = [],
    [NAMES.REPLACE_ANNOTATION]: replace,
  } = values;
  const areChecksKnown =
    annotations[NAMES.METRICS_ANNOTATION] === undefined || values[NAMES.METRICS_ANNOTATION] !== undefined;
  const unknown = areChecksKnown ? unknownChecks(waves, checks) : [];
  const problems = [...written, { annotation: NAMES.WAVES_ANNOTATION, isStopping: true, problems: unknown }].flatMap(
    ({ annotation, isStopping, problems: all }) =>
      all.map((one) => ({ annotation, text: `the annotation ${annotation} ${one}`, isStopping })),
  );
  const release = releaseOf(annotations, values);
  return {
    haltOn: values[NAMES.HALT_ON_ANNOTATION],
    gate: values[NAMES.GATE_ANNOTATION],
    ownerBudget:
      annotations[NAMES.OWNER_BUDGET_ANNOTATION] === undefined
        ? undefined
        : (values[NAMES.OWNER_BUDGET_ANNOTATION] ?? NO_PODS),
    ...release,
    // A rollback must not wait for the metric checks of the release that failed.
    checks: release.isPutBack ? [] : checks,
    waves,
    undoesOnHalt: values[NAMES.UNDO_ON_HALT_ANNOTATION] === true,
    ignoresNeverReady: values[NAMES.IGNORE_NEVER_READY_ANNOTATION] === true,
    followsOrdinals: values[NAMES.FOLLOW_ORDINALS_ANNOTATION] === true,
    replace: replace ?? NOTHING_REPLACED,
    evictsMissed: values[NAMES.EVICT_MISSED_ANNOTATION] === true,
    drainSeconds: values[NAMES.DRAIN_ANNOTATION],
    prePull: values[NAMES.PRE_PULL_ANNOTATION],
    isTimed: written.some((row) => (row as Timed).isTimed(row.value)),
    problems: problems.toSorted((a, b) => Number(b.isStopping) - Number(a.isStopping)),
  };
}

interface Timed {
  isTimed(value: unknown): boolean;
}

const NO_PODS: Amount = { amount: 0, isPercent: false };
const NOTHING_REPLACED: Replace = { words: new Set(), restarts: 0 };

/** The annotations that name releases by their hash. */
function releaseOf(annotations: Readonly<Record<string, string>>, values: Values) {
  const undone = annotations[NAMES.UNDONE_ANNOTATION] === undefined ? [] : values[NAMES.UNDONE_ANNOTATION];
  const {
    [NAMES.HASH_ANNOTATION]: hash,
    [NAMES.SKIP_WAVES_ANNOTATION]: skipping,
    [NAMES.GIVEN_UP_ANNOTATION]: givenUp = [],
  } = values;
  const last = undone?.at(-1);
  const isPutBack = last !== undefined && last.to === hash;
  const areWavesSkipped = isPutBack || Boolean(hash && skipping === hash);
  return { undone, isPutBack, areWavesSkipped, givenUp };
}

/** Returns a sentence for each check that a wave names and that does not exist. */
function unknownChecks(waves: readonly Wave[] | undefined, checks: readonly MetricCheck[]): readonly string[] {
  if (waves === undefined) return [];
  const names = checks.map(({ name }) => name);
  return waves.flatMap(({ name: wave, checks: asked = [] }) =>
    asked
      .filter((name) => !names.includes(name))
      .map(
        (name) =>
          `names the check ${name} in the wave ${wave}, and the annotation ${NAMES.METRICS_ANNOTATION} has none of that name`,
      ),
  );
}
