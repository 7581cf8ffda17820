/** Numbers of a pass in a log line, from which CloudWatch makes metrics (Embedded Metric Format). */
import type { PassReport, SidecarSetReport } from "../controller/rollout/report.ts";
import type { LogFields } from "../log.ts";
import { PASS_METRICS, SIDECARSET_METRICS } from "./catalogue.ts";

/** In CloudWatch. */
export const NAMESPACE = "SidecarSet";

type Values = readonly (readonly [name: string, unit: string, value: number | undefined])[];

/** The dimensions of the numbers beside SidecarSets. */
export interface MetricsOf {
  /** of the deployment */
  readonly stage?: string | undefined;
  /** of several */
  readonly cluster?: string | undefined;
}

/** The fields of one line for the pass, and of one for each SidecarSet. `at`: epoch milliseconds. */
export function embeddedMetrics(report: PassReport, at: number, of: MetricsOf = {}): readonly LogFields[] {
  const { stage, cluster } = of;
  const ofAll = {
    ...(stage === undefined ? {} : { Stage: stage }),
    ...(cluster === undefined ? {} : { Cluster: cluster }),
  };
  const ofPass = PASS_METRICS.map(({ name, unit, of }) => [name, unit, of(report)] as const);
  const ofSets = report.sidecarSets.map((one) =>
    fields(
      { ...ofAll, SidecarSet: one.name, ...wordsOf(one) },
      SIDECARSET_METRICS.map(({ name, unit, of }) => [name, unit, of(one)] as const),
      at,
    ),
  );
  return [fields(ofAll, ofPass, at), ...ofSets];
}

function wordsOf({ state, cause }: SidecarSetReport): Readonly<Record<string, string>> {
  return { ...(state === undefined ? {} : { State: state }), ...(cause === undefined ? {} : { Cause: cause }) };
}

/** Words to search the log for, not dimensions: CloudWatch charges for each value of a dimension. */
const WORDS: ReadonlySet<string> = new Set(["State", "Cause"]);

function fields(words: Readonly<Record<string, string>>, values: Values, at: number): LogFields {
  const known = values.flatMap(([name, unit, value]) => (value === undefined ? [] : [{ name, unit, value }]));
  const directive = {
    Namespace: NAMESPACE,
    Dimensions: [Object.keys(words).filter((name) => !WORDS.has(name))],
    Metrics: known.map(({ name: Name, unit: Unit }) => ({ Name, Unit })),
  };
  return {
    _aws: { Timestamp: at, CloudWatchMetrics: [directive] },
    ...words,
    ...Object.fromEntries(known.map(({ name, value }) => [name, value])),
  };
}
