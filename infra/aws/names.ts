/** Names in the template for the resources that osls makes of a function. */

/** The function that is asked before a new version of a webhook gets any request. */
export const CHECKER = "check-versions";

interface Deployment {
  readonly service: string;
  readonly stage: string;
}

/** The function's name in the account. */
export function functionName(name: string, { service, stage }: Deployment): string {
  return `${service}-${stage}-${name}`;
}

function normalized(name: string): string {
  return (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll("-", "Dash");
}

/** A cluster's name within names of resources, which have only letters and digits. */
export function clusterId(name: string): string {
  return normalized(name);
}

export function functionId(name: string): string {
  return `${normalized(name)}LambdaFunction`;
}

/** The alias by which the front door calls a function. */
export function aliasId(name: string): string {
  return `${normalized(name)}LambdaAlias`;
}

/** `digest`: of its parts, in hexadecimal digits. */
export function versionId(name: string, digest: string): string {
  return `${normalized(name)}LambdaVersion${digest.slice(0, 40)}`;
}

/** The name of a deployment group of CodeDeploy. */
export function groupId(name: string): string {
  return `${normalized(name)}Canary`;
}

export function logGroupId(name: string): string {
  return `${normalized(name)}LogGroup`;
}

export function roleId(name: string): string {
  return `${name.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Role`;
}
