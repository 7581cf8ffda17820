/** The door in front of the webhooks, checked against the way in which callers prove who they are. */
import type { AuthenticationMode } from "../../shared/settings/authentication-settings.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { DEPLOYED } from "./deployed.ts";
import { type ReadParameter, readFlag, readIds } from "./given-parameters.ts";
import { functionId } from "./names.ts";

export interface Domain {
  readonly name: string;
  /** ARN, in Certificate Manager */
  readonly certificate: string;
  /** s3://bucket/key of the authorities that sign certificates of clients; absent: no mutual TLS */
  readonly truststore?: string;
  readonly truststoreVersion?: string;
}

/** The door whose metrics show outages that no function sees. */
type Door =
  | { readonly kind: "function-urls" }
  /** at its domain, or without one at AWS' address */
  | { readonly kind: "http-api" }
  /** internal to a VPC, and always at a domain */
  | {
      readonly kind: "load-balancer";
      readonly subnets: readonly string[];
      readonly securityGroups: readonly string[];
    }
  /** the operator's own door, which this deployment does not know */
  | { readonly kind: "none" };

export interface FrontDoor {
  readonly door: Door;
  readonly domain?: Domain;
}

/** @throws ConfigError for what does not go together */
export async function readFrontDoor(read: ReadParameter, authentication: AuthenticationMode): Promise<FrontDoor> {
  const balancer = await readLoadBalancer(read);
  const isHttpApi = await readFlag("http-api", read);
  const domain = await readDomain(read);
  const withoutUrls = !(await readFlag("function-urls", read, true));
  if (!withoutUrls && (domain !== undefined || isHttpApi)) throw wayAround(domain);
  if (balancer !== undefined) return behindLoadBalancer(balancer, domain, { isHttpApi, authentication });
  if (domain !== undefined) return atDomain(domain, { isHttpApi, authentication });
  if (isHttpApi && authentication === "client-certificate")
    throw new ConfigError(
      "--param authentication=client-certificate needs --param domain-name and truststore: at its own address an HTTP API asks for no certificate.",
    );
  if (isHttpApi) return { door: { kind: "http-api" } };
  return { door: { kind: withoutUrls ? "none" : "function-urls" } };
}

function wayAround(domain: Domain | undefined): ConfigError {
  const [parameter, what] = domain === undefined ? ["http-api", "the HTTP API"] : ["domain-name", "the domain"];
  return new ConfigError(`--param ${parameter} needs --param function-urls=false: they would be a way around ${what}.`);
}

interface Beside {
  readonly isHttpApi: boolean;
  readonly authentication: AuthenticationMode;
}

function atDomain(domain: Domain, { isHttpApi, authentication }: Beside): FrontDoor {
  if (isHttpApi) throw new ConfigError("--param domain-name brings an HTTP API along: leave --param http-api out.");
  if (authentication === "client-certificate" && domain.truststore === undefined)
    throw new ConfigError(
      "--param authentication=client-certificate needs --param truststore on a domain: nobody would ask for certificates.",
    );
  return { door: { kind: "http-api" }, domain };
}

type LoadBalancer = Extract<Door, { readonly kind: "load-balancer" }>;

/** A load balancer needs two subnets in different zones. Source: Elastic Load Balancing, Application Load Balancers. */
const LEAST_SUBNETS = 2;

async function readLoadBalancer(read: ReadParameter): Promise<LoadBalancer | undefined> {
  const subnets = await readIds("load-balancer-subnets", "subnet", read);
  const securityGroups = await readIds("load-balancer-security-groups", "sg", read);
  if (subnets.length === 0 && securityGroups.length === 0) return undefined;
  if (subnets.length < LEAST_SUBNETS || securityGroups.length === 0)
    throw new ConfigError(
      "--param load-balancer-subnets and --param load-balancer-security-groups go together: two subnets or more, in different zones, and a security group that lets the API server in at port 443.",
    );
  return { kind: "load-balancer", subnets, securityGroups };
}

function behindLoadBalancer(
  door: LoadBalancer,
  domain: Domain | undefined,
  { isHttpApi, authentication }: Beside,
): FrontDoor {
  if (domain === undefined)
    throw new ConfigError(
      "--param load-balancer-subnets needs --param domain-name and domain-certificate: API servers call by HTTPS.",
    );
  if (isHttpApi || domain.truststore !== undefined)
    throw new ConfigError(
      "--param load-balancer-subnets: a load balancer takes neither --param http-api nor --param truststore.",
    );
  if (authentication === "client-certificate")
    throw new ConfigError(
      "--param authentication=client-certificate: the load balancer of this template verifies none; make one of your own (docs/authentication.md).",
    );
  return { door, domain };
}

async function readDomain(read: ReadParameter): Promise<Domain | undefined> {
  const [name, certificate] = [await read("domain-name"), await read("domain-certificate")];
  const [truststore, truststoreVersion] = [await read("truststore"), await read("truststore-version")];
  if (name === "" && certificate === "" && truststore === "" && truststoreVersion === "") return undefined;
  if (name === "" || certificate === "")
    throw new ConfigError("--param domain-name and --param domain-certificate go together, and truststore with them.");
  if (!/^arn:aws[a-z-]*:acm:/.test(certificate))
    throw new ConfigError(
      `--param domain-certificate=${certificate} is no ARN of a certificate in Certificate Manager.`,
    );
  checkTrust(truststore, truststoreVersion);
  const trust = { truststore, ...(truststoreVersion === "" ? {} : { truststoreVersion }) };
  return { name, certificate, ...(truststore === "" ? {} : trust) };
}

function checkTrust(truststore: string, truststoreVersion: string): void {
  if (truststore === "" && truststoreVersion !== "")
    throw new ConfigError("--param truststore-version needs --param truststore.");
  if (truststore !== "" && !/^s3:\/\/[^/]+\/.+/.test(truststore))
    throw new ConfigError(`--param truststore=${truststore} is no object in S3: write s3://BUCKET/KEY.`);
}

// Sizes and numbers of functions, and the rights of others over them: keys, boundaries, tags.

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
