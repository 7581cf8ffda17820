/**
 * Computes AWS' metrics from calls of functions. From the metrics of each minute it computes the alarms of the
 * template.
 */
import { alarms } from "../../infra/aws/alarms.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { logGroupId } from "../../infra/aws/names.ts";
import type { AwsSettings } from "../../infra/aws/settings.ts";
import { pointsOf } from "../support/metric-filter.ts";

/** `Namespace MetricName [Dimension=Value]` → its values in one minute. A missing metric has no data. */
export type Moved = Readonly<Record<string, readonly number[]>>;

interface Called {
  readonly name: string;
  /** the function's error, or its answer */
  readonly answer: unknown;
  /** lines of the function's log */
  readonly lines: readonly object[];
}

/**
 * Returns the metrics of a call and of the lines in its log. Source: Lambda, function URL metrics: errors and timeouts
 * are 5xx.
 */
export function movedBy({ name, answer, lines }: Called, settings: AwsSettings): Moved {
  const { service, stage } = settings;
  const ofLambda = (metric: string) => `AWS/Lambda ${metric} FunctionName=${service}-${stage}-${name}`;
  const code = answer instanceof Error ? 502 : ((answer as { readonly statusCode?: number } | null)?.statusCode ?? 200);
  const group = JSON.stringify({ Ref: logGroupId(name) });
  const filters = Object.values(logFilters(settings)).filter((filter) => JSON.stringify(filter).includes(group));
  const logged = filters.flatMap((filter) => pointsOf(filter, lines).map(([metric, value]) => ({ [metric]: [value] })));
  return together(
    {
      [ofLambda("Invocations")]: [1],
      [ofLambda("Errors")]: [answer instanceof Error ? 1 : 0],
      ...(name === "rollout" ? {} : { [ofLambda("Url5xxCount")]: [code >= 500 ? 1 : 0] }),
      ...(name === "rollout" ? {} : { [ofLambda("Url4xxCount")]: [code >= 400 && code < 500 ? 1 : 0] }),
    },
    ...logged,
  );
}

export function together(...all: readonly Moved[]): Moved {
  const names = new Set(all.flatMap((one) => Object.keys(one)));
  return Object.fromEntries([...names].map((name) => [name, all.flatMap((one) => one[name] ?? [])]));
}

interface MetricStat {
  readonly Metric: Metric;
  readonly Stat: string;
  readonly Period: number;
}

interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: unknown }[];
}

interface AlarmProperties extends Partial<Metric> {
  readonly Metrics?: readonly { readonly Id: string; readonly MetricStat?: MetricStat; readonly Expression?: string }[];
  readonly Statistic?: string;
  readonly Period?: number;
  readonly ComparisonOperator: string;
  readonly Threshold: number;
  readonly EvaluationPeriods: number;
  readonly DatapointsToAlarm?: number;
  readonly TreatMissingData: string;
}

/** A value for each period, the newest first; undefined: no data. */
type Series = readonly (number | undefined)[];

/** Minutes until a minute's values arrive, from AWS or from a log. */
const LATE_MINUTES = 1;
/** Number of healthy minutes before minute 0, for alarms that look back. */
const BEFORE = 60;

export interface Rung {
  readonly alarm: string;
  /** minutes from the start until the alarm fires */
  readonly minute: number;
  /** minutes from the start until the alarm ends; absent: it has not ended */
  readonly over?: number;
}

/**
 * Returns the alarms that fire if each minute has these values, from minute 0 on. CloudWatch decides each minute, over
 * the periods that end then. A period without data counts as the alarm says, but only if too few other periods have
 * data (source: CloudWatch, how alarms evaluate missing data). A metric without data in all these periods gives no
 * values, and expressions with it give none.
 */
export function rungBy(at: (minute: number) => Moved, minutes: number, settings: AwsSettings): readonly Rung[] {
  const known = new Map<number, Moved>();
  const movedAt = (minute: number) => {
    const moved = known.get(minute) ?? at(minute);
    known.set(minute, moved);
    return moved;
  };
  const all = Object.entries(alarms(settings)).flatMap(([alarm, resource]) => {
    const { Properties } = resource as { readonly Properties: AlarmProperties };
    return callsOf((now) => isAlarm(Properties, now - LATE_MINUTES, movedAt), minutes).map((call) => ({
      alarm,
      ...call,
    }));
  });
  return all.toSorted((a, b) => a.minute - b.minute);
}

/** Returns when the alarm fires, and after which minutes it ends. */
function callsOf(isOnAt: (now: number) => boolean, minutes: number): readonly Omit<Rung, "alarm">[] {
  const looked = Array.from({ length: minutes + 11 }, (_, index) => index - 10);
  const on = looked.filter(isOnAt);
  const begun = on.filter((now) => !on.includes(now - 1));
  return begun.map((minute) => {
    const over = looked.find((now) => now > minute && !on.includes(now));
    return { minute, ...(over === undefined ? {} : { over }) };
  });
}

type At = (minute: number) => Moved;

function isAlarm(properties: AlarmProperties, end: number, at: At): boolean {
  const { EvaluationPeriods: wanted, DatapointsToAlarm = wanted, ComparisonOperator, Threshold } = properties;
  const series = seriesOf(properties, end, at, wanted + 2);
  const real = series.filter((value) => value !== undefined);
  const isBeyond = (value: number) =>
    ComparisonOperator === "LessThanThreshold" ? value < Threshold : value > Threshold;
  const looked = real.slice(0, wanted);
  const filled = wanted - looked.length;
  const missing = properties.TreatMissingData === "breaching" ? filled : 0;
  return looked.filter(isBeyond).length + missing >= DatapointsToAlarm;
}

function seriesOf(properties: AlarmProperties, end: number, at: At, count: number): Series {
  const { Metrics, Statistic = "Sum", Period = 60, Namespace, MetricName, Dimensions = [] } = properties;
  if (Metrics === undefined) {
    const Metric = { Namespace: Namespace ?? "", MetricName: MetricName ?? "", Dimensions };
    return statOf({ Metric, Stat: Statistic, Period }, end, at, count);
  }
  const ids = new Map(
    Metrics.flatMap(({ Id, MetricStat }) => (MetricStat ? [[Id, statOf(MetricStat, end, at, count)] as const] : [])),
  );
  const expression = Metrics.find(({ Expression }) => Expression !== undefined)?.Expression ?? "";
  return computed(expression, ids);
}

function nameOfMetric({ Namespace, MetricName, Dimensions }: Metric): string {
  const own = Dimensions.map(
    ({ Name, Value }) => `${Name}=${typeof Value === "string" ? Value : JSON.stringify(Value)}`,
  );
  return [Namespace, MetricName, ...own].join(" ");
}

function statOf({ Metric, Stat, Period }: MetricStat, end: number, at: At, count: number): Series {
  const [name, minutes] = [nameOfMetric(Metric), Period / 60];
  return Array.from({ length: count }, (_, period) => {
    const from = end - (period + 1) * minutes;
    const values = Array.from({ length: minutes }, (__, index) => from + index).flatMap((minute) =>
      minute < -BEFORE ? [] : (at(minute)[name] ?? []),
    );
    if (values.length === 0) return undefined;
    return Stat === "Maximum" ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0);
  });
}

/** Computes the expressions that our alarms use. */
function computed(expression: string, ids: ReadonlyMap<string, Series>): Series {
  const [, reduce] = /^(SUM|MAX)\(FILL\(METRICS\(\), 0\)\)$/.exec(expression) ?? [];
  const all = [...ids.values()].map((series) => filledWithZero(series));
  if (reduce !== undefined)
    return combined(
      all.filter((series) => series.some((value) => value !== undefined)),
      reduce,
    );
  const [, id] = /^DIFF\(FILL\((m\d), 0\)\)$/.exec(expression) ?? [];
  if (id !== undefined) {
    const series = filledWithZero(ids.get(id) ?? []);
    return series.map((value, index) => {
      const before = series[index + 1];
      return value === undefined || before === undefined ? undefined : value - before;
    });
  }
  throw new Error(`${expression}: no expression that this knows`);
}

function filledWithZero(series: Series): Series {
  return series.some((value) => value !== undefined) ? series.map((value) => value ?? 0) : series;
}

function combined(all: readonly Series[], reduce: string): Series {
  const length = Math.max(0, ...all.map((series) => series.length));
  return Array.from({ length }, (_, index) => {
    const values = all.flatMap((series) => series[index] ?? []);
    if (values.length === 0) return undefined;
    return reduce === "MAX" ? Math.max(...values) : values.reduce((sum, value) => sum + value, 0);
  });
}
