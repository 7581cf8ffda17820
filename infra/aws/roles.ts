/** An IAM role for each function, with only the rights that it uses. */
import { eachAlone } from "./clusters.ts";
import { DEPLOYED, type DeployedFunction, tickingFunctions } from "./deployed.ts";
import { secretsOf } from "./functions.ts";
import { functionName, roleId } from "./names.ts";
import { QUEUE_ARN, UNDELIVERED } from "./queue.ts";
import type { Arn, AwsSettings } from "./settings.ts";

/** Creates the network interfaces that a function in a VPC needs. */
const VPC_POLICY = "service-role/AWSLambdaVPCAccessExecutionRole";

export function roles(settings: AwsSettings): Readonly<Record<string, object>> {
  const entries = DEPLOYED.map((deployed) => {
    const { name, isInCluster } = deployed;
    const statements = [
      logStatement(functionName(name, settings)),
      ...failureStatement(deployed, settings),
      ...secretsOf(deployed, settings).map(readStatement),
      ...(isInCluster ? describeStatements(settings) : []),
      ...queueStatement(deployed, settings),
      ...keyStatement(settings),
    ];
    const isInVpc = isInCluster && settings.subnets.length > 0;
    return [roleId(name), role("lambda.amazonaws.com", grouped(statements), { settings, isInVpc })] as const;
  });
  return Object.fromEntries(entries);
}

interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
}

/** A statement for each action: IAM limits the characters of a policy, and a table of clusters names many resources. */
function grouped(statements: readonly Statement[]): readonly Statement[] {
  const byAction = Map.groupBy(statements, ({ Action }) => String(Action));
  return [...byAction.values()].flatMap((those) => {
    const [first] = those;
    if (first === undefined || those.length === 1) return those;
    return [{ ...first, Resource: those.map(({ Resource }) => Resource) }];
  });
}

/**
 * The right to ask EKS for the API server's address. The function signs its token itself, which needs no permission.
 */
function describeStatements(settings: AwsSettings): readonly Statement[] {
  const asked = eachAlone(settings).flatMap(({ eksCluster, clusterServer }) =>
    eksCluster === undefined || clusterServer !== undefined ? [] : [eksCluster],
  );
  return [...new Set(asked)].map((cluster) => ({
    Effect: "Allow",
    Action: "eks:DescribeCluster",
    Resource: cluster.startsWith("arn:")
      ? cluster
      : { "Fn::Sub": `arn:\${AWS::Partition}:eks:\${AWS::Region}:\${AWS::AccountId}:cluster/${cluster}` },
  }));
}

/** Lambda takes messages out of a queue as the function that they are for. */
function queueStatement({ queue }: DeployedFunction, { rolloutWorkers }: AwsSettings): readonly Statement[] {
  if (queue === undefined || rolloutWorkers === undefined) return [];
  const receive = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
  const Action = ["sqs:SendMessage", ...(queue === "worker" ? receive : [])];
  return [{ Effect: "Allow", Action, Resource: QUEUE_ARN }];
}

/** Lambda puts a tick that failed into the queue as the function. */
function failureStatement({ name }: DeployedFunction, settings: AwsSettings): readonly Statement[] {
  return tickingFunctions(settings).includes(name)
    ? [{ Effect: "Allow", Action: "sqs:SendMessage", Resource: UNDELIVERED }]
    : [];
}

/** The right to read its own environment. */
export function keyStatement({ functionKey }: AwsSettings): readonly Statement[] {
  return functionKey === undefined ? [] : [{ Effect: "Allow", Action: "kms:Decrypt", Resource: functionKey }];
}

/** A role that a service of AWS takes on. */
export function role(
  service: string,
  statements: readonly object[],
  { settings, isInVpc = false }: { readonly settings: AwsSettings; readonly isInVpc?: boolean },
): object {
  const { permissionsBoundary } = settings;
  return {
    Type: "AWS::IAM::Role",
    Properties: {
      AssumeRolePolicyDocument: {
        Version: "2012-10-17",
        Statement: [
          {
            Effect: "Allow",
            Principal: { Service: service },
            Action: "sts:AssumeRole",
            ...(service.startsWith("lambda")
              ? {}
              : { Condition: { StringEquals: { "aws:SourceAccount": { Ref: "AWS::AccountId" } } } }),
          },
        ],
      },
      ...(isInVpc
        ? { ManagedPolicyArns: [{ "Fn::Sub": `arn:\${AWS::Partition}:iam::aws:policy/${VPC_POLICY}` }] }
        : {}),
      ...(permissionsBoundary === undefined ? {} : { PermissionsBoundary: permissionsBoundary }),
      Policies: [{ PolicyName: "own", PolicyDocument: { Version: "2012-10-17", Statement: statements } }],
    },
  };
}

export function logStatement(name: string): Statement {
  return {
    Effect: "Allow",
    Action: ["logs:CreateLogStream", "logs:PutLogEvents"],
    Resource: {
      "Fn::Sub": `arn:\${AWS::Partition}:logs:\${AWS::Region}:\${AWS::AccountId}:log-group:/aws/lambda/${name}:*`,
    },
  };
}

export function readStatement(arn: Arn): Statement {
  const isParameter = JSON.stringify(arn).includes(":ssm:");
  return {
    Effect: "Allow",
    Action: isParameter ? "ssm:GetParameter" : "secretsmanager:GetSecretValue",
    Resource: arn,
  };
}
