/** The proof of identity that webhooks require of their callers, from the settings. */
import { ConfigError } from "./config-error.ts";
import { parseSecretReference, type SecretReference } from "./secret-source.ts";

export const AUTHENTICATION_MODES = ["client-certificate", "bearer-token", "secret-path", "insecure"] as const;
export type AuthenticationMode = (typeof AUTHENTICATION_MODES)[number];

export interface AuthenticationSettings {
  /** AUTHENTICATION: asked of callers for admissions; insecure asks for nothing */
  readonly mode: AuthenticationMode;
  /** PATH_SECRETS: for secret-path, and for conversions in every mode */
  readonly pathSecrets?: SecretReference;
  /** PATH_DIGESTS: instead */
  readonly pathDigests?: PathDigests;
  /** BEARER_TOKENS: for bearer-token */
  readonly bearerTokens?: SecretReference;
  /** CLIENT_NAMES: for client-certificate; one of them must be the certificate's common name or an alternative name */
  readonly clientNames: readonly string[];
  /** CLIENT_CERTIFICATE_FROM: the service that ends TLS before a Lambda function and checks the certificate's chain */
  readonly clientCertificateFrom: CertificateSource;
  /** LOAD_BALANCER_LISTENER: ARN of the target group, a colon and the port: the source of client certificates */
  readonly loadBalancerListener?: string;
}

const CERTIFICATE_SOURCES = ["api-gateway", "load-balancer"] as const;
type CertificateSource = (typeof CERTIFICATE_SOURCES)[number];

/** @throws ConfigError for the first missing or unusable setting */
export function parseAuthentication(env: Readonly<Record<string, string | undefined>>): AuthenticationSettings {
  const clientCertificateFrom = parseSource(env["CLIENT_CERTIFICATE_FROM"] || "api-gateway");
  const settings = {
    mode: parseMode(env["AUTHENTICATION"]),
    ...reference("pathSecrets", "PATH_SECRETS", env),
    ...digestsIn(env["PATH_DIGESTS"]),
    ...reference("bearerTokens", "BEARER_TOKENS", env),
    clientNames: (env["CLIENT_NAMES"] ?? "").split(",").flatMap((name) => name.trim() || []),
    clientCertificateFrom,
    ...parseListener(clientCertificateFrom, env["LOAD_BALANCER_LISTENER"]),
  };
  requireWhatModeNeeds(settings);
  return settings;
}

function parseMode(text: string | undefined): AuthenticationMode {
  const mode = AUTHENTICATION_MODES.find((known) => known === text);
  if (mode !== undefined) return mode;
  const problem = text
    ? `AUTHENTICATION=${text} is none of`
    : "AUTHENTICATION is not set, and no caller is let in by default: set it to one of";
  throw new ConfigError(`${problem} ${AUTHENTICATION_MODES.join(", ")}.`);
}

function parseSource(text: string): CertificateSource {
  const source = CERTIFICATE_SOURCES.find((known) => known === text);
  if (source !== undefined) return source;
  throw new ConfigError(`CLIENT_CERTIFICATE_FROM=${text} is none of ${CERTIFICATE_SOURCES.join(", ")}.`);
}

const LISTENER = /^arn:aws[a-z-]*:elasticloadbalancing:[^:]+:\d{12}:targetgroup\/[^/:]+\/[^/:]+:[1-9]\d{0,4}$/;

function parseListener(source: CertificateSource, text = ""): Pick<AuthenticationSettings, "loadBalancerListener"> {
  if (source !== "load-balancer") return {};
  if (LISTENER.test(text)) return { loadBalancerListener: text };
  throw new ConfigError(
    `LOAD_BALANCER_LISTENER=${text} is not TARGET-GROUP-ARN:PORT of the listener that verifies client certificates.`,
  );
}

function reference<Field extends string>(
  field: Field,
  variable: string,
  env: Readonly<Record<string, string | undefined>>,
) {
  const text = env[variable];
  return (text ? { [field]: parseSecretReference(variable, text) } : {}) as {
    readonly [field in Field]?: SecretReference;
  };
}

function digestsIn(text: string | undefined): Pick<AuthenticationSettings, "pathDigests"> {
  return text ? { pathDigests: parsePathDigests("PATH_DIGESTS", text) } : {};
}

function requireWhatModeNeeds(settings: AuthenticationSettings): void {
  const { mode, pathSecrets, pathDigests, bearerTokens, clientNames } = settings;
  if (pathSecrets !== undefined && pathDigests !== undefined)
    throw new ConfigError("PATH_SECRETS and PATH_DIGESTS are both set: set one of them.");
  if (mode === "bearer-token" && bearerTokens === undefined)
    throw new ConfigError("AUTHENTICATION=bearer-token needs BEARER_TOKENS: where the tokens are kept, one a line.");
  if (mode === "client-certificate" && clientNames.length === 0)
    throw new ConfigError(
      "AUTHENTICATION=client-certificate needs CLIENT_NAMES: the names of the API server's client certificate, separated by commas.",
    );
  if (mode === "secret-path" && pathSecrets === undefined && pathDigests === undefined)
    throw new ConfigError(
      "AUTHENTICATION=secret-path needs PATH_SECRETS, where the secrets are kept, one a line, or PATH_DIGESTS.",
    );
}

// PATH_DIGESTS: digests by which a function recognizes the secrets of its paths without reading any. So many new
// processes at once ask nothing of AWS. `sidecarset path-secrets --digests` prints it.

/** Digests of the valid secrets by path: the new one and the old one. */
export type PathDigests = ReadonlyMap<string, readonly string[]>;

const ENTRY = /^(\/[^\s=]*)=([A-Za-z0-9_-]{43}(?:,[A-Za-z0-9_-]{43})?)$/;

/** Parses the form `/mutate-pod=DIGEST /convert=DIGEST,DIGEST`. @throws ConfigError naming `what` */
export function parsePathDigests(what: string, text: string): PathDigests {
  const entries = text.split(/\s+/).filter(Boolean);
  return new Map(
    entries.map((entry) => {
      const [, path = "", digests = ""] = ENTRY.exec(entry) ?? [];
      if (path !== "") return [path, digests.split(",")];
      throw new ConfigError(
        `${what} has ${JSON.stringify(entry)}, which is not PATH=DIGEST with one digest or two: take what sidecarset path-secrets --digests prints.`,
      );
    }),
  );
}

export function printPathDigests(digests: PathDigests): string {
  return [...digests].map(([path, those]) => `${path}=${those.join(",")}`).join(" ");
}
