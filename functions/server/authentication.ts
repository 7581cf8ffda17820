/** The options of `serve` that say how its callers prove who they are. */
import { resolve } from "node:path";
import type { AuthenticationSettings } from "../../shared/settings/authentication-settings.ts";
import { parseSecretReference, type SecretReference } from "../../shared/settings/reference.ts";
import { CliError } from "../terminal/error.ts";

interface Values {
  readonly "client-ca"?: string | undefined;
  readonly "client-names"?: string | undefined;
  readonly "bearer-tokens"?: string | undefined;
  readonly "path-secrets"?: string | undefined;
  readonly insecure?: boolean | undefined;
}

/** @throws CliError when the options don't say exactly one way, or lack what it needs */
export function authenticationOf(values: Values): AuthenticationSettings {
  const mode = modeOf(values);
  const clientNames = (values["client-names"] ?? "").split(",").flatMap((name) => name.trim() || []);
  if (mode === "client-certificate" && clientNames.length === 0)
    throw new CliError(
      "--client-names is missing: the names of the API server's client certificate, separated by commas",
    );
  if (mode !== "insecure" && values["path-secrets"] === undefined)
    throw new CliError(
      "--path-secrets is missing: API servers present no certificate and no token to the conversion webhook, so it is only served under a secret path",
    );
  const ignored = (["path-secrets", "client-names"] as const).find((option) => values[option] !== undefined);
  if (mode === "insecure" && ignored !== undefined)
    throw new CliError(`--insecure lets everybody in, whatever --${ignored} says: choose one of them`);
  if (mode !== "client-certificate" && clientNames.length > 0)
    throw new CliError(
      "--client-names says whose certificates are known, and --client-ca, which says who signs them, is missing",
    );
  return {
    mode,
    clientNames,
    clientCertificateFrom: "api-gateway",
    ...reference("pathSecrets", "path-secrets", values["path-secrets"]),
    ...reference("bearerTokens", "bearer-tokens", values["bearer-tokens"]),
  };
}

function modeOf(values: Values): AuthenticationSettings["mode"] {
  const ways = [
    ...(values.insecure ? (["insecure"] as const) : []),
    ...(values["client-ca"] === undefined ? [] : (["client-certificate"] as const)),
    ...(values["bearer-tokens"] === undefined ? [] : (["bearer-token"] as const)),
  ];
  if (ways.length > 1) throw new CliError("choose one of --client-ca, --bearer-tokens and --insecure");
  const [way] = ways;
  if (way !== undefined) return way;
  if (values["path-secrets"] !== undefined) return "secret-path";
  throw new CliError(
    "no caller is let in by default: give --path-secrets FILE, with --bearer-tokens FILE or --client-ca FILE if API servers can present those, or --insecure",
  );
}

function reference<Field extends string>(field: Field, option: string, place: string | undefined) {
  if (place === undefined) return {} as { readonly [field in Field]?: SecretReference };
  return { [field]: secretsAt(option, place) } as { readonly [field in Field]: SecretReference };
}

/** The place is kept because an option, unlike a variable, may name a file relative to the working directory. */
export function secretsAt(option: string, place: string): SecretReference {
  return parseSecretReference(`--${option}`, place.startsWith("arn:") ? place : resolve(place));
}
