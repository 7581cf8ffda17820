/** Lines of the logs that are counted, so that alarms can look at them. */
import { natureOf, ROLLOUT_VERDICTS } from "../../shared/core/rollout/conditions/verdict.ts";
import { type Metric, ofLogs, POD_WEBHOOK, SIDECARSET_WEBHOOKS } from "./alarm-metrics.ts";
import { logGroupId } from "./names.ts";
import type { AwsSettings } from "./settings.ts";

/** A webhook that answers 5xx has not failed for Lambda; each logs it. The runtime writes ERROR for what ends a function. */
const ERRORS = '{ ($.level = "error") || ($.level = "ERROR") }';
/** A registration with another secret than the function's is an outage; a stranger who tries once is none. */
const REFUSALS = "{ $.code = 401 }";

/** What logs tell of. */
export function logFilters(settings: AwsSettings): Readonly<Record<string, object>> {
  const ofTokens = settings.clusterToken === undefined ? [] : ["mutate-pod", "rollout"];
  const attention = ofLogs("Attention", settings);
  const errors = (name: string) => ofLogs(name === POD_WEBHOOK ? "PodErrors" : "SidecarSetErrors", settings);
  const endingTokens = ofLogs("EndingTokens", settings);
  return {
    MissedPodsFilter: missedPodsFilter(settings),
    UnreadFilter: filter("rollout", '{ $.unread[0] = "*" }', attention),
    TroubleFilter: filter("rollout", troublePattern(), attention),
    ...Object.fromEntries(
      [POD_WEBHOOK, ...SIDECARSET_WEBHOOKS].flatMap((name) => [
        [`${logGroupId(name)}ErrorFilter`, filter(name, ERRORS, errors(name))],
        [`${logGroupId(name)}RefusedFilter`, filter(name, REFUSALS, attention)],
      ]),
    ),
    // The webhooks' token, and that of passes.
    ...Object.fromEntries(
      ofTokens.map((name) => [
        `${logGroupId(name)}TokenFilter`,
        filter(name, '{ $.accessEndsAt = "*" }', endingTokens),
      ]),
    ),
  };
}

export function missedPodsFilter(settings: AwsSettings) {
  return filter("rollout", "{ $.missed.count > 0 }", ofLogs("MissedPods", settings), "$.missed.count");
}

/** A line a minute for each SidecarSet that needs attention. */
function troublePattern(): string {
  const states = ROLLOUT_VERDICTS.filter((verdict) => natureOf(verdict).isTrouble);
  return `{ ${states.map((state) => `($.state = "${state}")`).join(" || ")} }`;
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
