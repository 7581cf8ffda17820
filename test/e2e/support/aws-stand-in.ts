/** A stand-in for STS, SSM, EKS, CloudFormation and Lambda. It answers the calls of a deployment and records them. */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

export interface AwsCall {
  /** the service that the credentials are for: ssm, eks, … */
  readonly service: string;
  /** the action, such as PutParameter; for EKS and Lambda `METHOD /path` */
  readonly action: string;
  readonly body: string;
}

interface AwsState {
  /** the parameters of SSM: name → value */
  readonly parameters: Map<string, string>;
  /** the entries of EKS: ARN of the role → groups */
  readonly entries: Map<string, readonly string[]>;
  cluster: Readonly<Record<string, unknown>>;
  /** the stack; undefined: there is none */
  stack: { readonly status: string; readonly outputs: Readonly<Record<string, string>> } | undefined;
  /** the account's concurrency that is not reserved */
  concurrency: number;
  /** Called before each answer. */
  onCall: ((call: AwsCall) => Promise<void>) | undefined;
  /** the name of a call that the caller may not make */
  denied: string | undefined;
}

export interface AwsStandIn {
  readonly endpoint: string;
  readonly state: AwsState;
  readonly calls: readonly AwsCall[];
  /** returns the calls since the last time that change something */
  readonly takeWrites: () => readonly AwsCall[];
  readonly close: () => void;
}

/** The name of the only possible stack. */
const STACK = "sidecarset-prod";
const READS = /^(Get|Describe|GET )/;

interface Answer {
  readonly code: number;
  readonly text: string;
}

const json = (body: object, code = 200): Answer => ({ code, text: JSON.stringify(body) });
const refusal = (type: string, code = 400) => json({ __type: type, message: type }, code);

function denial({ service, action }: AwsCall): Answer {
  const message = `User: arn:aws:iam::123456789012:user/dev is not authorized to perform: ${service}:${action} on resource: x`;
  return json({ __type: "AccessDeniedException", message }, 400);
}

export async function startAws(): Promise<AwsStandIn> {
  const calls: AwsCall[] = [];
  const state: AwsState = {
    parameters: new Map(),
    entries: new Map(),
    cluster: {},
    stack: undefined,
    concurrency: 1_000,
    onCall: undefined,
    denied: undefined,
  };
  let taken = 0;
  const server = createServer(async (request, response) => {
    const call = callOf(request, await textOf(request));
    calls.push(call);
    await state.onCall?.(call);
    const { code, text } =
      call.action === state.denied
        ? denial(call)
        : (ANSWERS[call.service]?.(call, state) ?? refusal("UnknownOperationException", 404));
    const type = text.startsWith("<") ? "text/xml" : "application/json";
    const error = code < 400 ? {} : { "x-amzn-errortype": (JSON.parse(asJson(text)) as { __type: string }).__type };
    response.writeHead(code, { "content-type": type, ...error }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const takeWrites = () => {
    const writes = calls.slice(taken).filter(({ action }) => !READS.test(action));
    taken = calls.length;
    return writes;
  };
  return { endpoint: `http://127.0.0.1:${port}`, state, calls, takeWrites, close: () => server.close() };
}

const asJson = (text: string) => (text.startsWith("<") ? '{"__type":"ValidationError"}' : text);

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}

function callOf({ headers, method, url }: IncomingMessage, body: string): AwsCall {
  const service = /Credential=[^/]+\/\d+\/[^/]+\/([a-z]+)\//.exec(headers.authorization ?? "")?.[1] ?? "unsigned";
  const target = headers["x-amz-target"]?.toString().split(".").at(-1);
  const query = new URLSearchParams(body).get("Action") ?? undefined;
  return {
    service,
    action: target ?? (service === "eks" || service === "lambda" ? `${method} ${url}` : (query ?? "")),
    body,
  };
}

const ANSWERS: Readonly<Record<string, (call: AwsCall, state: AwsState) => Answer>> = {
  sts: () => ({
    code: 200,
    text: "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account><Arn>arn:aws:iam::123456789012:user/dev</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>",
  }),
  ssm: ({ action, body }, { parameters }) => {
    const { Name = "", Value = "" } = JSON.parse(body) as { readonly Name?: string; readonly Value?: string };
    const value = parameters.get(Name);
    if (action === "GetParameter")
      return value === undefined ? refusal("ParameterNotFound") : json({ Parameter: { Value: value } });
    if (value !== undefined) return refusal("ParameterAlreadyExists");
    parameters.set(Name, Value);
    return json({ Version: 1, Tier: "Standard" });
  },
  eks: eksAnswer,
  cloudformation: ({ body }, { stack }) =>
    stack === undefined || new URLSearchParams(body).get("StackName") !== STACK
      ? {
          code: 400,
          text: "<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code><Message>Stack with id x does not exist</Message></Error></ErrorResponse>",
        }
      : { code: 200, text: stackXml(stack) },
  lambda: (_call, { concurrency }) => json({ AccountLimit: { UnreservedConcurrentExecutions: concurrency } }),
};

function eksAnswer({ action, body }: AwsCall, { cluster, entries }: AwsState): Answer {
  const [method = "", path = ""] = action.split(" ");
  const [, , name, what, role] = path.split("/").map(decodeURIComponent);
  if (name !== cluster["name"]) return refusal("ResourceNotFoundException", 404);
  if (what === undefined) return json({ cluster });
  if (role === undefined) {
    const { principalArn, kubernetesGroups } = JSON.parse(body) as { principalArn: string; kubernetesGroups: string[] };
    entries.set(principalArn, kubernetesGroups);
    return json({ accessEntry: { principalArn, kubernetesGroups } });
  }
  const groups = entries.get(role);
  if (groups === undefined) return refusal("ResourceNotFoundException", 404);
  if (method === "POST") entries.set(role, (JSON.parse(body) as { kubernetesGroups: string[] }).kubernetesGroups);
  return json({ accessEntry: { principalArn: role, kubernetesGroups: entries.get(role) } });
}

function stackXml({ status, outputs }: NonNullable<AwsState["stack"]>): string {
  const members = Object.entries(outputs).map(
    ([key, value]) => `<member><OutputKey>${key}</OutputKey><OutputValue>${value}</OutputValue></member>`,
  );
  return `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>x</StackName><CreationTime>2026-11-26T00:00:00Z</CreationTime><StackStatus>${status}</StackStatus><Outputs>${members.join("")}</Outputs></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`;
}
