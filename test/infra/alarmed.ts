/** From one call of a function to the metrics that it moves at AWS, and to the alarms that go off by them. */
import { alarms } from "../../infra/aws/alarms.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { logGroupId } from "../../infra/aws/names.ts";
import type { AwsSettings } from "../../infra/aws/settings.ts";
import { countedBy, metricOf } from "../support/metric-filter.ts";

/** `Namespace MetricName [FunctionName]` */
export type Moved = ReadonlySet<string>;

interface Called {
  readonly name: string;
  /** what it failed with, or its answer */
  readonly answer: unknown;
  /** of its log */
  readonly lines: readonly object[];
}

/** The metrics of a call (source: Lambda, function URL metrics: errors and timeouts are 5xx) and of the lines in its log. */
export function movedBy({ name, answer, lines }: Called, settings: AwsSettings): Moved {
  const { service, stage } = settings;
  const ofLambda = (metric: string) => `AWS/Lambda ${metric} ${service}-${stage}-${name}`;
  const code = answer instanceof Error ? 502 : ((answer as { readonly statusCode?: number } | null)?.statusCode ?? 200);
  const group = JSON.stringify({ Ref: logGroupId(name) });
  const filters = Object.values(logFilters(settings)).filter((filter) => JSON.stringify(filter).includes(group));
  const logged = filters.filter((filter) => countedBy(filter, lines) > 0);
  return new Set([
    ...(answer instanceof Error ? [ofLambda("Errors")] : []),
    ...(code >= 500 ? [ofLambda("Url5xxCount")] : code >= 400 ? [ofLambda("Url4xxCount")] : []),
    ...logged.map((filter) => `${service}-${stage}-logs ${metricOf(filter)}`),
  ]);
}

const METRIC =
  /"Namespace":"([^"]+)","MetricName":"(\w+)","Dimensions":\[(?:\{"Name":"FunctionName","Value":"([^"]+)"\})?\]/g;

/** Names of the alarms of the template that look at one of these, in their order. */
export function setOff(moved: Moved, settings: AwsSettings): readonly string[] {
  return Object.entries(alarms(settings)).flatMap(([id, alarm]) => {
    const watched = [...JSON.stringify(alarm).matchAll(METRIC)].map((found) =>
      found.slice(1).filter(Boolean).join(" "),
    );
    return watched.some((metric) => moved.has(metric)) ? [id] : [];
  });
}
