/** The credentials and the endpoint of calls to AWS. */

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface AwsAccess {
  readonly credentials: AwsCredentials;
  /** value of AWS_ENDPOINT_URL, in place of AWS's own address of a service */
  readonly endpoint?: string;
}

/** An SQS queue. */
export interface Queue {
  /** address such as https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.fifo */
  readonly url: string;
  readonly region: string;
}

/** The place of a secret: an SSM parameter, or a secret in Secrets Manager. */
export interface AwsSecretReference {
  readonly kind: "ssm" | "secretsmanager";
  readonly arn: string;
  readonly region: string;
}
