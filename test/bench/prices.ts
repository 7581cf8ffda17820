/**
 * Prices of AWS in US dollars for us-east-1, without any free tier, from its pricing pages on 2025-11-21. Other regions
 * differ by up to a third.
 */

/** Price of a GB-second on arm64, and of a request. Source: aws.amazon.com/lambda/pricing. */
export const LAMBDA_GB_SECOND = 0.0000133334;
export const LAMBDA_REQUEST = 0.2 / 1e6;
/** Price of an invocation by the Scheduler. Source: aws.amazon.com/eventbridge/pricing. */
export const SCHEDULER_INVOCATION = 1 / 1e6;
/** Price of an alarm's metric for a month, and of a GB of logs. Source: aws.amazon.com/cloudwatch/pricing. */
export const ALARM_METRIC_MONTH = 0.1;
export const LOG_GB = 0.5;
/** Price of a request to an HTTP API. Source: aws.amazon.com/api-gateway/pricing. */
export const HTTP_API_REQUEST = 1 / 1e6;
/** Price of an hour, and of an hour of one capacity unit. Source: aws.amazon.com/elasticloadbalancing/pricing. */
export const LOAD_BALANCER_HOUR = 0.0225;
export const LOAD_BALANCER_UNIT_HOUR = 0.008;
/**
 * GB that a capacity unit processes in an hour if Lambda is the target. New connections cost less here. Source: the
 * same page.
 */
export const LOAD_BALANCER_UNIT_GB = 0.4;
/** Price of an hour of a processor, and of a GB, on arm64. Source: aws.amazon.com/fargate/pricing. */
export const FARGATE_PROCESSOR_HOUR = 0.03238;
export const FARGATE_GB_HOUR = 0.00356;
/** Price of a GB to the internet. Source: aws.amazon.com/ec2/pricing/on-demand. */
export const INTERNET_GB = 0.09;
/**
 * Price of a request to a FIFO queue of up to 64 KB; a batch is one request. Source: two price lists of others (March
 * and June 2026), not aws.amazon.com/sqs/pricing itself.
 */
export const FIFO_REQUEST = 0.5 / 1e6;
