/** Lines of the logs that are counted, so that alarms can look at them. */
import { PASS_FAILED } from "../../shared/cluster-log.ts";
import { GRAVE_STOPS } from "../../shared/controller/rollout/report.ts";
import { STALE_WORDS } from "../../shared/webhook/view/announcements.ts";
import { CLUSTER, type Metric, ofLogs, POD_WEBHOOK, SIDECARSET_WEBHOOKS } from "./alarm-metrics.ts";
import { eachAlone } from "./clusters.ts";
import { tickingFunctions } from "./deployed.ts";
import { logGroupId } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

/**
 * Lines of failures. A webhook that answers 5xx has not failed for Lambda, so it logs the failure. The runtime writes
 * ERROR when a function ends by an error.
 */
const ERRORS = '{ ($.level = "error") || ($.level = "ERROR") }';
/** Refusals at the path of a webhook. Strangers rarely call there, and the product's probes are not counted. */
const REFUSALS = '{ $.refusedPath = "*" }';
/** A decision is stale if one of its first four warnings says so. */
const STALE = `{ ${[0, 1, 2, 3].map((index) => `($.warnings[${index}] = "${STALE_WORDS}*")`).join(" || ")} }`;
/** Functions that answer from older knowledge when they cannot read the cluster. */
const STALE_READERS = ["mutate-pod", "validate-sidecarset"];
const UNREAD = '{ $.unread[0] = "*" }';
/**
 * The field appears from the tenth minute of the trouble to the twentieth, so the next SidecarSet in trouble rings
 * again.
 */
const ATTENTION = '{ $.attentionSince = "*" }';

/** Metrics that AWS makes of lines in the logs. */
export function logFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const hasTokens = eachAlone(settings).some(({ clusterToken }) => clusterToken !== undefined);
  const ofTokens = hasTokens ? ["mutate-pod", "rollout"] : [];
  const attention = ofLogs("Attention", settings);
  const errors = (name: string) => ofLogs(name === POD_WEBHOOK ? "PodErrors" : "SidecarSetErrors", settings);
  const endingTokens = ofLogs("EndingTokens", settings);
  return {
    MissedPodsFilter: missedPodsFilter(settings),
    AttentionFilter: filter("rollout", ATTENTION, attention),
    ...(settings.hasMoreAlarms ? moreFilters(settings) : {}),
    ...Object.fromEntries(
      [POD_WEBHOOK, ...SIDECARSET_WEBHOOKS].flatMap((name) => [
        [`${logGroupId(name)}ErrorFilter`, filter(name, ERRORS, errors(name))],
        [`${logGroupId(name)}RefusedFilter`, filter(name, REFUSALS, ofLogs("RefusedCallers", settings))],
      ]),
    ),
    ...(settings.clusters === undefined ? {} : clusterFilters(settings)),
    // Tokens of webhooks and of passes.
    ...Object.fromEntries(
      ofTokens.map((name) => [
        `${logGroupId(name)}TokenFilter`,
        filter(name, '{ $.accessEndsAt = "*" }', endingTokens),
      ]),
    ),
  };
}

function moreFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const [stale, problems] = [ofLogs("StaleDecisions", settings), ofLogs("PassProblems", settings)];
  const found = Object.fromEntries(
    STALE_READERS.map((name) => [`${logGroupId(name)}StaleFilter`, filter(name, STALE, stale)] as const),
  );
  return {
    ProblemFilter: filter("rollout", problemPattern(), problems),
    UnreadFilter: filter("rollout", UNREAD, problems),
    ...found,
  };
}

/** Filters for lines that name one of several clusters: a metric for each cluster. */
function clusterFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const ticking = tickingFunctions(settings);
  const of = (id: string, made: ReturnType<typeof filter>) => [`${id}OfClusterFilter`, byCluster(made)] as const;
  return Object.fromEntries([
    of("MissedPods", missedPodsFilter(settings)),
    of("Attention", filter("rollout", ATTENTION, ofLogs("Attention", settings))),
    of("PodErrors", filter(POD_WEBHOOK, ERRORS, ofLogs("PodErrors", settings))),
    ...[POD_WEBHOOK, ...SIDECARSET_WEBHOOKS].map((name) =>
      of(`${logGroupId(name)}Refused`, filter(name, REFUSALS, ofLogs("RefusedCallers", settings))),
    ),
    ...ticking.map((name) =>
      of(`${logGroupId(name)}Failed`, filter(name, `{ $.message = "${PASS_FAILED}" }`, ofLogs("TickErrors", settings))),
    ),
  ]);
}

/** A filter for each cluster: CloudWatch reads a dimension from the fields that the pattern has matched. */
function byCluster({ Type, Properties }: ReturnType<typeof filter>) {
  const FilterPattern = Properties.FilterPattern.replace(/^\{ (.*) \}$/, '{ ($.cluster = "*") && ($1) }');
  const Dimensions = [{ Key: CLUSTER, Value: "$.cluster" }];
  const MetricTransformations = Properties.MetricTransformations.map((one) => ({ ...one, Dimensions }));
  return { Type, Properties: { ...Properties, FilterPattern, MetricTransformations } };
}

export function missedPodsFilter(settings: AwsSettings) {
  return filter("rollout", "{ $.missed.recent > 0 }", ofLogs("MissedPods", settings), "$.missed.recent");
}

/** Passes without a decision or without a write, and other failed reads and writes of passes. */
function problemPattern(): string {
  const terms = ['($.level = "error")', ...GRAVE_STOPS.map((stop) => `($.stop = "${stop}")`)];
  return `{ ${terms.join(" || ")} }`;
}

/** A filter of a function's log. `MetricValue`: the value of each line */
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
