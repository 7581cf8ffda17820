/** Prices of AWS in US dollars, us-east-1, without any free tier, as its pricing pages had them on 2025-11-21. Other regions differ by up to a third. */

/** aws.amazon.com/lambda/pricing: arm64, a GB-second; and a request */
export const LAMBDA_GB_SECOND = 0.0000133334;
export const LAMBDA_REQUEST = 0.2 / 1e6;
/** aws.amazon.com/eventbridge/pricing: an invocation by the Scheduler */
export const SCHEDULER_INVOCATION = 1 / 1e6;
/** aws.amazon.com/cloudwatch/pricing: a metric of an alarm for a month; a GB of logs taken in */
export const ALARM_METRIC_MONTH = 0.1;
export const LOG_GB = 0.5;
/** aws.amazon.com/api-gateway/pricing: a request to an HTTP API */
export const HTTP_API_REQUEST = 1 / 1e6;
/** aws.amazon.com/elasticloadbalancing/pricing: an hour, and an hour of one capacity unit */
export const LOAD_BALANCER_HOUR = 0.0225;
export const LOAD_BALANCER_UNIT_HOUR = 0.008;
/**
 * same page: GB that a capacity unit processes in an hour where Lambda is the target; a new connection counts less here
 */
export const LOAD_BALANCER_UNIT_GB = 0.4;
/** aws.amazon.com/fargate/pricing: arm64, an hour of a processor, and of a GB */
export const FARGATE_PROCESSOR_HOUR = 0.03238;
export const FARGATE_GB_HOUR = 0.00356;
/** aws.amazon.com/ec2/pricing/on-demand: a GB to the internet */
export const INTERNET_GB = 0.09;
/** A request to a FIFO queue, of up to 64 KB; a batch is one. By two price lists of others (March and June 2026), not by aws.amazon.com/sqs/pricing itself. */
export const FIFO_REQUEST = 0.5 / 1e6;
