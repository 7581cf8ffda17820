/** The calls of AWS that a deployment makes beside osls, with the credentials that osls finds too. */

import { spawn } from "node:child_process";
import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { fromNodeProviderChain } from "@aws-sdk/credential-providers";
import { AwsError, type AwsRequest, awsJson } from "../../../shared/aws/signed-request.ts";
import { withoutSecrets } from "../../../shared/log.ts";
import { readEnvironment } from "../../../shared/settings/config.ts";
import { ConfigError } from "../../../shared/settings/config-error.ts";

export interface EksCluster {
  readonly status: string;
  readonly endpoint?: string;
  readonly certificateAuthority?: { readonly data?: string };
  readonly resourcesVpcConfig?: {
    readonly endpointPublicAccess?: boolean;
    readonly publicAccessCidrs?: readonly string[];
  };
  readonly accessConfig?: { readonly authenticationMode?: string };
}

export interface Stack {
  /** such as UPDATE_COMPLETE */
  readonly status: string;
  readonly outputs: ReadonlyMap<string, string>;
}

/** Calls of AWS, one for each method, with AWS' names. Absent things are undefined. */
export interface Aws {
  readonly getCallerIdentity: () => Promise<{ readonly account: string; readonly arn: string }>;
  readonly describeCluster: (name: string) => Promise<EksCluster | undefined>;
  /** groups of the role in the cluster */
  readonly describeAccessEntry: (cluster: string, role: string) => Promise<readonly string[] | undefined>;
  readonly createAccessEntry: (cluster: string, role: string, groups: readonly string[]) => Promise<void>;
  readonly updateAccessEntry: (cluster: string, role: string, groups: readonly string[]) => Promise<void>;
  readonly describeStack: (name: string) => Promise<Stack | undefined>;
  readonly getParameter: (name: string) => Promise<string | undefined>;
  /** False: there is one already, which stays. */
  readonly putSecret: (name: string, value: string) => Promise<boolean>;
  /** concurrent executions of the account that are not reserved for single functions */
  readonly getUnreservedConcurrency: () => Promise<number | undefined>;
}

/** @param endpoint instead of AWS' own addresses. `profile`: of AWS' files; absent: the one of the environment */
export function openAws(region: string, endpoint: string | undefined, profile?: string): Aws {
  const provider = fromNodeProviderChain({ clientConfig: { region }, ...(profile === undefined ? {} : { profile }) });
  const client = { region, credentials: provider, ...(endpoint === undefined ? {} : { endpoint }) };
  const credentials = async () => {
    const { accessKeyId, secretAccessKey, sessionToken } = await provider();
    return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
  };
  const ask = async <T>(request: Omit<AwsRequest, "region">): Promise<T> =>
    awsJson<T>(
      { region, ...request },
      { credentials: await credentials(), ...(endpoint === undefined ? {} : { endpoint }) },
    );
  return {
    getCallerIdentity: async () => {
      const { Account = "", Arn = "" } = await new STSClient(client).send(new GetCallerIdentityCommand({}));
      return { account: Account, arn: Arn };
    },
    describeStack: (name) => describeStack(new CloudFormationClient(client), name),
    ...parametersBy(ask),
    ...clustersBy(ask),
    getUnreservedConcurrency: async () => {
      const path = "/2016-08-19/account-settings";
      const answer = await ask<{ readonly AccountLimit?: { readonly UnreservedConcurrentExecutions?: number } }>({
        service: "lambda",
        path,
      });
      return answer.AccountLimit?.UnreservedConcurrentExecutions;
    },
  };
}

type Ask = <T>(request: Omit<AwsRequest, "region">) => Promise<T>;

function parametersBy(ask: Ask): Pick<Aws, "getParameter" | "putSecret"> {
  return {
    getParameter: (Name) =>
      unless("ParameterNotFound", async () => {
        const body = { Name, WithDecryption: true };
        const answer = await ask<{ readonly Parameter?: { readonly Value?: string } }>({
          service: "ssm",
          target: "AmazonSSM.GetParameter",
          body,
        });
        return answer.Parameter?.Value;
      }),
    putSecret: async (Name, Value) => {
      const body = { Name, Value, Type: "SecureString" };
      const put = async () => {
        await ask({ service: "ssm", target: "AmazonSSM.PutParameter", body });
        return true;
      };
      return (await unless("ParameterAlreadyExists", put)) ?? false;
    },
  };
}

function clustersBy(
  ask: Ask,
): Pick<Aws, "describeCluster" | "describeAccessEntry" | "createAccessEntry" | "updateAccessEntry"> {
  const entries = (cluster: string) => `/clusters/${encodeURIComponent(cluster)}/access-entries`;
  return {
    describeCluster: (name) =>
      unless("ResourceNotFoundException", async () => {
        const path = `/clusters/${encodeURIComponent(name)}`;
        return (await ask<{ readonly cluster: EksCluster }>({ service: "eks", path })).cluster;
      }),
    describeAccessEntry: (cluster, role) =>
      unless("ResourceNotFoundException", async () => {
        const path = `${entries(cluster)}/${encodeURIComponent(role)}`;
        const { accessEntry } = await ask<{ readonly accessEntry: { readonly kubernetesGroups?: readonly string[] } }>({
          service: "eks",
          path,
        });
        return accessEntry.kubernetesGroups ?? [];
      }),
    createAccessEntry: async (cluster, principalArn, kubernetesGroups) => {
      await ask({ service: "eks", path: entries(cluster), body: { principalArn, kubernetesGroups } });
    },
    updateAccessEntry: async (cluster, role, kubernetesGroups) => {
      await ask({
        service: "eks",
        path: `${entries(cluster)}/${encodeURIComponent(role)}`,
        body: { kubernetesGroups },
      });
    },
  };
}

async function unless<T>(code: string, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof AwsError && error.code === code) return undefined;
    throw error;
  }
}

async function describeStack(client: CloudFormationClient, StackName: string): Promise<Stack | undefined> {
  try {
    const { Stacks: [stack] = [] } = await client.send(new DescribeStacksCommand({ StackName }));
    if (stack === undefined) return undefined;
    const outputs = (stack.Outputs ?? []).map(
      ({ OutputKey = "", OutputValue = "" }) => [OutputKey, OutputValue] as const,
    );
    return { status: stack.StackStatus ?? "", outputs: new Map(outputs) };
  } catch (error) {
    if (error instanceof Error && /does not exist/.test(error.message)) return undefined;
    throw error;
  }
}

// Runs other programs. Secrets reach them by stdin, because everybody on a machine may read a command line.

/** The part of a program's output that is shown. The cause is at its beginning. */
const MOST_CHARACTERS = 600;

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface ProgramOptions {
  readonly stdin?: string;
  /** gets the output as it comes */
  readonly onOutput?: (text: string) => void;
  /** absent: this process' environment */
  readonly env?: NodeJS.ProcessEnv;
}

/** Running programs. A program leads its own process group, so that its children end with it. */
const running = new Set<number>();

/** Ends every program that runs, with all that it has started. */
export function endPrograms(): void {
  for (const pid of running)
    try {
      process.kill(-pid, "SIGTERM");
    } catch {
      // The process has ended already.
    }
}

/** @throws ConfigError where there is no such program */
export function runProgram(
  program: string,
  args: readonly string[],
  { stdin = "", onOutput, env }: ProgramOptions = {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...args], { stdio: ["pipe", "pipe", "pipe"], detached: true, ...(env && { env }) });
    const { pid } = child;
    if (pid !== undefined) running.add(pid);
    const printed = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const)
      child[stream].setEncoding("utf8").on("data", (text: string) => {
        printed[stream] += text;
        onOutput?.(text);
      });
    child.on("error", (cause: NodeJS.ErrnoException) => {
      if (cause.code === "ENOENT") reject(new ConfigError(`${program} is needed, and not installed here.`));
      else reject(cause);
    });
    child.on("close", (code) => {
      if (pid !== undefined) running.delete(pid);
      resolve({ code: code ?? 1, ...printed });
    });
    // A program that ends without reading prints why.
    child.stdin.on("error", () => undefined);
    child.stdin.end(stdin);
  });
}

/** kubectl, with the context that was asked for. */
export type Kubectl = (args: readonly string[], stdin?: string) => Promise<Ended>;

export function openKubectl(context: string | undefined): Kubectl {
  const where = context === undefined ? [] : ["--context", context];
  // The output is parsed here, so the user's own viewer of differences must not run.
  const { KUBECTL_EXTERNAL_DIFF: _, ...env } = readEnvironment();
  return (args, stdin = "") => runProgram("kubectl", [...args, ...where], { stdin, env });
}

/** A program's output in one line, without secrets. */
export function sentenceOf({ stdout, stderr }: Ended): string {
  const text = stderr.trim() === "" ? stdout : stderr;
  return withoutSecrets(text.trim().replaceAll(/\s*\n\s*/g, " ")).slice(0, MOST_CHARACTERS);
}
