/**
 * CodeDeploy moves requests to new versions of the webhooks. First the checker must find that they decide. Then a tenth
 * of the requests goes to them for five minutes, then all. An alarm takes the requests back.
 */
import { stoppingAlarms } from "../alarms.ts";
import { BEHIND_DOOR } from "../deployed.ts";
import { aliasId, CHECKER, functionId, functionName, groupId, logGroupId, roleId } from "../names.ts";
import { keyStatement, logStatement, readStatement, role } from "../roles.ts";
import type { Arn, AwsSettings } from "../settings.ts";
import { ALIAS, aliasArn, WEBHOOKS } from "./alias.ts";

const SHIFT = "CodeDeployDefault.LambdaCanary10Percent5Minutes";
const APPLICATION = { Ref: "CanaryApplication" };
const arnOf = (id: string) => ({ "Fn::GetAtt": [id, "Arn"] });

const applicationName = (settings: AwsSettings) => functionName("webhooks", settings);

type Resources = Readonly<Record<string, object>>;

/** All resources except the versions, whose names are made of the code (versions.ts). */
export function canaryResources(settings: AwsSettings): Resources {
  if (settings.canary === undefined) return {};
  return {
    CanaryApplication: {
      Type: "AWS::CodeDeploy::Application",
      Properties: { ApplicationName: applicationName(settings), ComputePlatform: "Lambda" },
    },
    CanaryRole: canaryRole(settings),
    [roleId(CHECKER)]: checkerRole(settings),
    ...Object.assign({}, ...WEBHOOKS.map(({ name }) => shifted(name, settings))),
  };
}

/** Addresses that an operator's own front door has to call. */
export function canaryOutputs({ canary, door }: AwsSettings): Resources {
  if (canary === undefined || door.kind !== "none") return {};
  return Object.fromEntries(
    BEHIND_DOOR.map(({ name }) => [
      aliasId(name),
      { Description: `what a door of ${name} calls`, Value: { Ref: aliasId(name) } },
    ]),
  );
}

/** Settings that all other functions have too. */
export function checkerExtensions({ canary, logKey, functionKey }: AwsSettings) {
  if (canary === undefined) return {};
  return {
    ...(functionKey === undefined ? {} : { [functionId(CHECKER)]: { Properties: { KmsKeyArn: functionKey } } }),
    ...(logKey === undefined ? {} : { [logGroupId(CHECKER)]: { Properties: { KmsKeyId: logKey } } }),
  };
}

function shifted(name: string, settings: AwsSettings): Resources {
  const UpdatePolicy = {
    CodeDeployLambdaAliasUpdate: {
      ApplicationName: APPLICATION,
      DeploymentGroupName: { Ref: groupId(name) },
      BeforeAllowTrafficHook: { Ref: functionId(CHECKER) },
    },
  };
  return {
    [groupId(name)]: deploymentGroup(name, settings),
    [aliasId(name)]: {
      Type: "AWS::Lambda::Alias",
      // Passes get the new code first, so that their errors end the shift too.
      DependsOn: functionId("rollout"),
      ...(settings.canary === "shifted" ? { UpdatePolicy } : {}),
      Properties: { Name: ALIAS, FunctionName: { Ref: functionId(name) } },
    },
    ...(settings.door.kind === "function-urls" || name === "convert-sidecarset" ? urlOf(name) : {}),
  };
}

/** The alias' address. Registrations keep the function's own until they name this one. */
function urlOf(name: string): Resources {
  const alias = aliasId(name);
  const permission = (properties: object) => ({
    Type: "AWS::Lambda::Permission",
    Properties: { FunctionName: { Ref: alias }, Principal: "*", ...properties },
  });
  return {
    [`${alias}Url`]: {
      Type: "AWS::Lambda::Url",
      DependsOn: alias,
      Properties: { AuthType: "NONE", TargetFunctionArn: { Ref: functionId(name) }, Qualifier: ALIAS },
    },
    [`${alias}ByUrl`]: permission({ Action: "lambda:InvokeFunctionUrl", FunctionUrlAuthType: "NONE" }),
    [`${alias}InvokedByUrl`]: permission({ Action: "lambda:InvokeFunction", InvokedViaFunctionUrl: true }),
  };
}

/** A group for each webhook, because a group makes one deployment at a time. */
function deploymentGroup(name: string, settings: AwsSettings): object {
  return {
    Type: "AWS::CodeDeploy::DeploymentGroup",
    Properties: {
      ApplicationName: APPLICATION,
      DeploymentGroupName: functionName(name, settings),
      ServiceRoleArn: arnOf("CanaryRole"),
      DeploymentConfigName: SHIFT,
      DeploymentStyle: { DeploymentType: "BLUE_GREEN", DeploymentOption: "WITH_TRAFFIC_CONTROL" },
      AutoRollbackConfiguration: {
        Enabled: true,
        Events: ["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP_ON_REQUEST"],
      },
      AlarmConfiguration: { Enabled: true, Alarms: stoppingAlarms(settings).map((id) => ({ Name: { Ref: id } })) },
    },
  };
}

/** The role of CodeDeploy: the rights of AWSCodeDeployRoleForLambdaLimited, for these functions only. */
function canaryRole(settings: AwsSettings): object {
  const Resource = WEBHOOKS.flatMap(({ name }) => [arnOf(functionId(name)), aliasArn(name)]);
  const Action = ["lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig"];
  const statements = [
    { Effect: "Allow", Action: "cloudwatch:DescribeAlarms", Resource: stoppingAlarms(settings).map(arnOf) },
    { Effect: "Allow", Action, Resource },
    { Effect: "Allow", Action: "lambda:InvokeFunction", Resource: arnOf(functionId(CHECKER)) },
  ];
  return role("codedeploy.amazonaws.com", statements, { settings });
}

/** Besides, versions.ts lets it call the new versions. */
function checkerRole(settings: AwsSettings): object {
  // By name, because references would make a circle: groups wait for a role that names the checker, which waits for
  // this one.
  const groups = WEBHOOKS.map(({ name }) => ({
    "Fn::Sub": `arn:\${AWS::Partition}:codedeploy:\${AWS::Region}:\${AWS::AccountId}:deploymentgroup:${applicationName(settings)}/${functionName(name, settings)}`,
  }));
  const statements = [
    logStatement(functionName(CHECKER, settings)),
    ...checkerSecrets(settings).map(readStatement),
    ...keyStatement(settings),
    { Effect: "Allow", Action: "codedeploy:PutLifecycleEventHookExecutionStatus", Resource: groups },
    { Effect: "Allow", Action: "lambda:InvokeFunction", Resource: WEBHOOKS.map(({ name }) => aliasArn(name)) },
  ];
  return role("lambda.amazonaws.com", statements, { settings });
}

// The function that CodeDeploy asks before a new version gets any request.

/** The webhooks must know the checker: a version that refuses every caller must not be taken. */
function checkerSecrets({ authentication, pathSecrets, bearerTokens }: AwsSettings): readonly Arn[] {
  if (authentication === "insecure") return [];
  return [pathSecrets, ...(authentication === "bearer-token" && bearerTokens !== undefined ? [bearerTokens] : [])];
}

/** The checker, which serverless.yml cannot make conditional; without a canary nothing. */
export function checkerFunction(settings: AwsSettings): Readonly<Record<string, object>> {
  const { canary, authentication, pathSecrets, bearerTokens, clientNames, canaryLabels } = settings;
  if (canary === undefined) return {};
  return {
    [CHECKER]: {
      handler: `dist/${CHECKER}/index.handler`,
      package: { patterns: [`dist/${CHECKER}/*`] },
      role: roleId(CHECKER),
      environment: {
        AUTHENTICATION: authentication,
        ...(authentication === "insecure" ? {} : { PATH_SECRETS: pathSecrets }),
        ...(bearerTokens === undefined ? {} : { BEARER_TOKENS: bearerTokens }),
        ...(canaryLabels === undefined ? {} : { SAMPLE_LABELS: canaryLabels }),
        ...(clientNames === undefined ? {} : { CLIENT_NAMES: clientNames }),
      },
      // The checker asks each version three times before it refuses it.
      timeout: 240,
    },
  };
}
