/** Sizes and numbers of functions, and the rights of others over them: keys, boundaries, tags. */
import { ConfigError } from "../../shared/settings/config-error.ts";
import { DEPLOYED } from "./deployed.ts";
import { functionId } from "./names.ts";
import type { ReadParameter } from "./read-parameter.ts";

export interface Sizing {
  /** MB by function, where it differs from serverless.yml */
  readonly memory: ReadonlyMap<string, number>;
  /** by function: the number that can always run at once, and no more may */
  readonly reserved: ReadonlyMap<string, number>;
  /** most requests a second of all webhooks behind an HTTP API */
  readonly requestsPerSecond?: number;
  /** ARN of the policy that bounds every role */
  readonly permissionsBoundary?: string;
  /** ARN of the key that encrypts environments of functions */
  readonly functionKey?: string;
}

/** Source: Lambda quotas. */
const [MIN_MEMORY, MAX_MEMORY] = [128, 10_240];
const MAX_RESERVED = 100_000;
const MAX_REQUESTS = 100_000;
const NAMES = DEPLOYED.map(({ name }) => name);

/** @throws ConfigError for the first parameter that cannot be used */
export async function readSizing(read: ReadParameter): Promise<Sizing> {
  const [memory, reserved] = [await read("memory"), await read("reserved-concurrency")];
  const requests = await read("requests-per-second");
  const [boundary, key] = [await read("permissions-boundary"), await read("function-key")];
  if (requests !== "" && !(await isBehindHttpApi(read)))
    throw new ConfigError(
      "--param requests-per-second needs an HTTP API, by --param http-api=true or domain-name: Function URLs and load balancers are limited by --param reserved-concurrency.",
    );
  return {
    memory: /^\d+$/.test(memory)
      ? new Map(NAMES.map((name) => [name, numberOf("memory", memory, [MIN_MEMORY, MAX_MEMORY])]))
      : byFunction("memory", memory, [MIN_MEMORY, MAX_MEMORY]),
    reserved: reservedOf(reserved, await read("rollout-workers")),
    ...(requests === "" ? {} : { requestsPerSecond: numberOf("requests-per-second", requests, [1, MAX_REQUESTS]) }),
    ...(boundary === ""
      ? {}
      : { permissionsBoundary: arnOf("permissions-boundary", boundary, "iam::123456789012:policy/NAME") }),
    ...(key === "" ? {} : { functionKey: arnOf("function-key", key, "kms:eu-central-1:123456789012:key/ID") }),
  };
}

async function isBehindHttpApi(read: ReadParameter): Promise<boolean> {
  if ((await read("http-api")) === "true") return true;
  return (await read("domain-name")) !== "" && (await read("load-balancer-subnets")) === "";
}

function reservedOf(text: string, rolloutWorkers: string): ReadonlyMap<string, number> {
  const reserved = byFunction("reserved-concurrency", text, [1, MAX_RESERVED]);
  // Less than the workers would refuse messages of the queue until they are given up.
  if (rolloutWorkers !== "" && reserved.has("rollout"))
    throw new ConfigError(
      "--param reserved-concurrency has rollout, of which --param rollout-workers says how many run.",
    );
  return reserved;
}

function byFunction(parameter: string, text: string, bounds: readonly [number, number]): ReadonlyMap<string, number> {
  return new Map(
    text
      .split(",")
      .filter(Boolean)
      .map((entry): [string, number] => {
        const [name = "", value = ""] = entry.split("=");
        if (NAMES.includes(name)) return [name, numberOf(parameter, value, bounds)];
        throw new ConfigError(
          `--param ${parameter} has ${JSON.stringify(entry)}: write FUNCTION=NUMBER, several with commas between them, of ${NAMES.join(", ")}.`,
        );
      }),
  );
}

function numberOf(parameter: string, text: string, [least, most]: readonly [number, number]): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new ConfigError(`--param ${parameter}: ${JSON.stringify(text)} is no whole number from ${least} to ${most}.`);
}

/** `like`: the text after the partition in such an ARN. */
export function arnOf(parameter: string, text: string, like: string): string {
  const [service, kind] = [like.split(":")[0], /\w+\//.exec(like)?.[0] ?? ""];
  if (new RegExp(`^arn:aws[a-z-]*:${service}:.*:${kind}.`).test(text)) return text;
  throw new ConfigError(
    `--param ${parameter}=${text} is not the ARN that is wanted here: write one like arn:aws:${like}.`,
  );
}

/** Tags of the stack and of everything in it that can have tags. @throws ConfigError */
export async function readTags(read: ReadParameter): Promise<Readonly<Record<string, string>>> {
  const entries = (await read("tags")).split(",").filter(Boolean);
  return Object.fromEntries(
    entries.map((entry) => {
      const [, name = "", value = ""] = /^([^=]{1,128})=(.{0,256})$/.exec(entry) ?? [];
      if (name !== "" && !name.startsWith("aws:")) return [name, value];
      throw new ConfigError(
        `--param tags has ${JSON.stringify(entry)}: write NAME=VALUE, several with commas between them.`,
      );
    }),
  );
}

/** Properties that are added to the functions that osls makes. */
export function sized({ memory, reserved, functionKey }: Sizing) {
  return Object.fromEntries(
    NAMES.map((name) => {
      const [MemorySize, ReservedConcurrentExecutions] = [memory.get(name), reserved.get(name)];
      const Properties = {
        ...(MemorySize === undefined ? {} : { MemorySize }),
        ...(ReservedConcurrentExecutions === undefined ? {} : { ReservedConcurrentExecutions }),
        ...(functionKey === undefined ? {} : { KmsKeyArn: functionKey }),
      };
      return [functionId(name), { Properties }] as const;
    }).filter(([, { Properties }]) => Object.keys(Properties).length > 0),
  );
}
