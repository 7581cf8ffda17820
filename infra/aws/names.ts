/** Names in the template, as osls gives them to what it makes of a function. */

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

/** Of a cluster of a table, in names of resources: those are letters and digits alone. */
export function clusterId(name: string): string {
  return normalized(name);
}

export function functionId(name: string): string {
  return `${normalized(name)}LambdaFunction`;
}

export function logGroupId(name: string): string {
  return `${normalized(name)}LogGroup`;
}

export function roleId(name: string): string {
  return `${name.replaceAll(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Role`;
}
