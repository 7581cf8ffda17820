/** Lines of the logs that are counted, so that alarms can look at them. */
import { PASS_FAILED } from "../../shared/cluster-log.ts";
import { GRAVE_STOPS } from "../../shared/controller/rollout/report.ts";
import { natureOf, ROLLOUT_VERDICTS } from "../../shared/core/rollout/conditions/verdict.ts";
import { CLUSTER, type Metric, ofLogs, POD_WEBHOOK, SIDECARSET_WEBHOOKS } from "./alarm-metrics.ts";
import { eachAlone } from "./clusters.ts";
import { logGroupId } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

/** A webhook that answers 5xx has not failed for Lambda; each logs it. The runtime writes ERROR for what ends a function. */
const ERRORS = '{ ($.level = "error") || ($.level = "ERROR") }';
/** A registration with another secret than the function's is an outage; a stranger who tries once is none. */
const REFUSALS = "{ $.code = 401 }";

const UNREAD = '{ $.unread[0] = "*" }';

/** What logs tell of. */
export function logFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const hasTokens = eachAlone(settings).some(({ clusterToken }) => clusterToken !== undefined);
  const ofTokens = hasTokens ? ["mutate-pod", "rollout"] : [];
  const attention = ofLogs("Attention", settings);
  const errors = (name: string) => ofLogs(name === POD_WEBHOOK ? "PodErrors" : "SidecarSetErrors", settings);
  const endingTokens = ofLogs("EndingTokens", settings);
  return {
    MissedPodsFilter: missedPodsFilter(settings),
    UnreadFilter: filter("rollout", UNREAD, attention),
    TroubleFilter: filter("rollout", troublePattern(), attention),
    ...Object.fromEntries(
      [POD_WEBHOOK, ...SIDECARSET_WEBHOOKS].flatMap((name) => [
        [`${logGroupId(name)}ErrorFilter`, filter(name, ERRORS, errors(name))],
        [`${logGroupId(name)}RefusedFilter`, filter(name, REFUSALS, attention)],
      ]),
    ),
    ...(settings.clusters === undefined ? {} : clusterFilters(settings)),
    // The webhooks' token, and that of passes.
    ...Object.fromEntries(
      ofTokens.map((name) => [
        `${logGroupId(name)}TokenFilter`,
        filter(name, '{ $.accessEndsAt = "*" }', endingTokens),
      ]),
    ),
  };
}

/** Of the lines that name one of several clusters, once more: a metric for each cluster. */
function clusterFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const ticking = settings.isServingStatefulSets ? ["rollout", "ordered-set"] : ["rollout"];
  const of = (id: string, made: ReturnType<typeof filter>) => [`${id}OfClusterFilter`, byCluster(made)] as const;
  const attention = ofLogs("Attention", settings);
  return Object.fromEntries([
    of("MissedPods", missedPodsFilter(settings)),
    of("Unread", filter("rollout", UNREAD, attention)),
    of("Trouble", filter("rollout", troublePattern(), attention)),
    of("PodErrors", filter(POD_WEBHOOK, ERRORS, ofLogs("PodErrors", settings))),
    ...[POD_WEBHOOK, ...SIDECARSET_WEBHOOKS].map((name) =>
      of(`${logGroupId(name)}Refused`, filter(name, REFUSALS, attention)),
    ),
    ...ticking.map((name) =>
      of(`${logGroupId(name)}Failed`, filter(name, `{ $.message = "${PASS_FAILED}" }`, ofLogs("TickErrors", settings))),
    ),
  ]);
}

/** CloudWatch takes a dimension out of what the pattern has matched. */
function byCluster({ Type, Properties }: ReturnType<typeof filter>) {
  const FilterPattern = Properties.FilterPattern.replace(/^\{ (.*) \}$/, '{ ($.cluster = "*") && ($1) }');
  const Dimensions = [{ Key: CLUSTER, Value: "$.cluster" }];
  const MetricTransformations = Properties.MetricTransformations.map((one) => ({ ...one, Dimensions }));
  return { Type, Properties: { ...Properties, FilterPattern, MetricTransformations } };
}

export function missedPodsFilter(settings: AwsSettings) {
  return filter("rollout", "{ $.missed.count > 0 }", ofLogs("MissedPods", settings), "$.missed.count");
}

/** A line a minute for each SidecarSet that needs attention. */
function troublePattern(): string {
  const states = ROLLOUT_VERDICTS.filter((verdict) => natureOf(verdict).isTrouble);
  const terms = [
    ...states.map((state) => `($.state = "${state}")`),
    ...GRAVE_STOPS.map((stop) => `($.stop = "${stop}")`),
  ];
  return `{ ${terms.join(" || ")} }`;
}

/** In the log of a function. `MetricValue`: of each line */
function filter(
  name: string,
  FilterPattern: string,
  { Namespace: MetricNamespace, MetricName }: Metric,
  MetricValue = "1",
) {
  return {
    Type: "AWS::Logs::MetricFilter",
    Properties: {
      LogGroupName: { Ref: logGroupId(name) },
      FilterPattern,
      MetricTransformations: [{ MetricNamespace, MetricName, MetricValue }],
    },
  };
}
