/** The door in front of the webhooks, checked against the way in which callers prove who they are. */
import type { AuthenticationMode } from "../../shared/settings/authentication-settings.ts";
import { ConfigError } from "../../shared/settings/config-error.ts";
import { type ReadParameter, readFlag, readIds } from "./read-parameter.ts";

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
