/** Options of `npm run deploy:all`. */
import { parseArgs } from "node:util";
import { ConfigError } from "../../../shared/settings/config-error.ts";
import { FOUND_OUT, refuseRepeated } from "../given-parameters.ts";

export interface DeployOptions {
  readonly stage: string;
  readonly region: string;
  /** name of the EKS cluster */
  readonly cluster: string;
  /** context of the kubeconfig; absent: its current one */
  readonly context?: string;
  /**
   * parameters of serverless.yml, as osls gets them; empty text: the default, though the last deployment had another
   * value
   */
  readonly parameters: ReadonlyMap<string, string>;
  /** file: who signed the certificate of the webhooks; absent: a public authority, as Function URLs have */
  readonly caBundle?: string;
  /** absent: the present registration's, or Ignore */
  readonly failurePolicy?: "Ignore" | "Fail";
  readonly isDryRun: boolean;
}

export const USAGE = `npm run deploy:all -- --region REGION --cluster NAME [options]

  --stages FILE            of JSON: a list of stages, deployed one after another; see docs/several-clusters.md
  --region REGION          where the functions run: that of the cluster
  --cluster NAME           the EKS cluster that they work for
  --stage STAGE            one deployment of several in an account (prod)
  --context NAME           of the kubeconfig (its current one)
  --param NAME=VALUE       of docs/deploy-parameters.md, as often as needed
  --failure-policy POLICY  what becomes of pods while the webhook is down: Ignore (default) or Fail
  --ca-bundle FILE         who signed the webhooks' certificate, PEM (a public authority)
  --dry-run                says what would be done, and does none of it
`;

/** Parameters that need steps by hand. */
export const BY_HAND = [
  "namespace",
  "clusters",
  "clusters-from",
  "kubeconfig",
  "cluster-token",
  "webhooks-token",
  "viewer-token",
  "path-secrets",
  "bearer-tokens",
  "domain-name",
  "http-api",
  "load-balancer-subnets",
  "function-urls",
  "authentication",
];

/**
 * The stages of `--stages`, in the order of the file, with the options beside it too; without it one stage with these
 * options. undefined: help was asked for.
 * @throws ConfigError for the first that cannot be used
 */
export function parseStages(
  args: readonly string[],
  readText: (file: string) => string,
): readonly DeployOptions[] | undefined {
  const { help, stages: file } = valuesOf(args);
  if (help) return undefined;
  if (file === undefined) return [readOptions(args)];
  const all = readStageFile(file, readText).map((entry, index) => {
    try {
      return readOptions([...args, ...commandLineOf(entry)]);
    } catch (error) {
      throw new ConfigError(`--stages ${file}, stage ${index + 1}: ${(error as Error).message}`);
    }
  });
  const keys = all.map(({ region, stage }) => `${stage} of ${region}`);
  const twice = keys.find((key, index) => keys.indexOf(key) !== index);
  if (twice !== undefined) throw new ConfigError(`--stages ${file}: stage ${twice} is there twice.`);
  return all;
}

const EXAMPLE = '[{"stage": "test", "region": "eu-central-1", "cluster": "test", "param": ["alarm-topic=ARN"]}]';

function readStageFile(file: string, readText: (file: string) => string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(readText(file));
    if (Array.isArray(value) && value.length > 0) return value;
  } catch (cause) {
    throw new ConfigError(`--stages ${file} cannot be read: ${(cause as Error).message}`);
  }
  throw new ConfigError(`--stages ${file} has no list of stages, such as ${EXAMPLE}`);
}

/** The options of one stage in the form of a command line. */
function commandLineOf(entry: unknown): readonly string[] {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry))
    throw new ConfigError(`write options by their names, such as ${EXAMPLE}`);
  return Object.entries(entry).flatMap(([name, value]) =>
    [value].flat().map((text: unknown) => {
      if (typeof text === "string" && name !== "stages") return `--${name}=${text}`;
      throw new ConfigError(`${name} is no option with a text; ${EXAMPLE} has some.`);
    }),
  );
}

function readOptions(args: readonly string[]): DeployOptions {
  const given = valuesOf(args);
  const { context, "ca-bundle": caBundle } = given;
  return {
    ...placeOf(given),
    parameters: parametersOf(given.param ?? []),
    ...policyOf(given["failure-policy"]),
    isDryRun: given["dry-run"] ?? false,
    ...(context === undefined ? {} : { context }),
    ...(caBundle === undefined ? {} : { caBundle }),
  };
}

function placeOf({ region, cluster, stage = "prod" }: ReturnType<typeof valuesOf>) {
  if (region === undefined || cluster === undefined)
    throw new ConfigError(
      "--region and --cluster are needed: an EKS cluster, and where it is; --help lists the options.",
    );
  if (!/^[a-z]{2}(-[a-z]+)+-\d$/.test(region))
    throw new ConfigError(`--region ${region}: write the region of the cluster, such as eu-central-1.`);
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(cluster))
    throw new ConfigError(
      `--cluster ${cluster}: write the name of an EKS cluster (other clusters: docs/deploy-by-hand.md).`,
    );
  if (!/^[a-z][a-z0-9-]{0,30}$/.test(stage))
    throw new ConfigError(`--stage ${stage}: write a lower-case word, such as prod.`);
  return { region, cluster, stage };
}

function valuesOf(args: readonly string[]) {
  try {
    const text = { type: "string" } as const;
    const flag = { type: "boolean" } as const;
    const options = {
      stages: text,
      stage: text,
      region: text,
      cluster: text,
      context: text,
      param: { type: "string", multiple: true },
      "ca-bundle": text,
      "failure-policy": text,
      "dry-run": flag,
      help: flag,
    } as const;
    return parseArgs({ args: [...args], options }).values;
  } catch (cause) {
    const [sentence = ""] = (cause as Error).message.split(/\. |\n/);
    throw new ConfigError(
      `${sentence.replace(/\.$/, "")}; options stand behind -- (npm run deploy:all -- --help lists them).`,
    );
  }
}

function parametersOf(given: readonly string[]): ReadonlyMap<string, string> {
  const pairs = given.map((text): [string, string] => {
    const [, name = "", value = ""] = /^([a-z-]+)=(.*)$/s.exec(text) ?? [];
    if (name === "") throw new ConfigError(`--param ${text}: write NAME=VALUE.`);
    if (FOUND_OUT.includes(name))
      throw new ConfigError(`--param ${name}: deploy:all finds it out itself; leave it out.`);
    if (BY_HAND.includes(name))
      throw new ConfigError(`--param ${name} takes steps that deploy:all does not know: docs/deploy-by-hand.md.`);
    return [name, value];
  });
  refuseRepeated(pairs.map(([name]) => name));
  return new Map(pairs);
}

function policyOf(text: string | undefined): Pick<DeployOptions, "failurePolicy"> {
  if (text === undefined) return {};
  if (text === "Ignore" || text === "Fail") return { failurePolicy: text };
  throw new ConfigError(`--failure-policy ${text}: write Ignore (the default) or Fail.`);
}
