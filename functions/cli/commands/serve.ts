/** `serve`: every webhook on one port, and passes on a timer. */
import { resolve } from "node:path";
import { hasClusters, readPort } from "../../../shared/settings/config.ts";
import type { SecretReference } from "../../../shared/settings/secret-source.ts";
import { authenticationOf, secretsAt } from "../../server/serve.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Command, Input } from "../command.ts";

export const SERVE: Command = {
  name: "serve",
  group: "Try it and run it",
  summary: "every webhook on one HTTPS port, and rollout passes on a timer",
  details: "API servers prove who they are in one of the ways of docs/authentication.md.",
  options: [
    { flags: "--port <PORT>", about: "0 is any free one; default: the variable PORT, which platforms set" },
    { flags: "--host <ADDRESS>", about: "default: all of this machine" },
    { flags: "--tls-cert <FILE>", about: "certificate, PEM" },
    { flags: "--tls-key <FILE>", about: "its key, PEM" },
    { flags: "--no-tls", about: "plain HTTP, behind a proxy that ends TLS" },
    { flags: "--tick <DURATION>", about: "from one pass to the next, or never; default: 10s" },
    { flags: "--path-secrets <FILE>", about: "secrets of paths, one a line" },
    { flags: "--bearer-tokens <FILE>", about: "tokens, one a line" },
    { flags: "--client-ca <FILE>", about: "who signs client certificates, PEM" },
    { flags: "--client-names <NAMES>", about: "their names, separated by commas" },
    { flags: "--ui-secrets <FILE>", about: "secrets of the page's path, one a line: https://HOST:PORT/s/SECRET/ui" },
    { flags: "--metrics-port <PORT>", about: "plain HTTP with /metrics for Prometheus; default: none" },
    { flags: "--insecure", about: "lets everybody in" },
  ],
  examples: ["sidecarset serve --port 9443 --tls-cert tls.crt --tls-key tls.key --path-secrets path-secrets"],
  run: async (input, session) => {
    if (session.kubeconfig === undefined && hasClusters())
      throw new CliError(
        "serve is for one cluster, and CLUSTERS has several: run one for each (docs/several-clusters.md)",
      );
    const uiSecrets = input.text("ui-secrets");
    const metricsPort = input.text("metrics-port");
    const options = {
      ...(session.kubeconfig === undefined ? {} : { kubeconfig: session.kubeconfig }),
      port: portOf(input),
      ...(metricsPort === undefined ? {} : { metricsPort: portNumber("--metrics-port", metricsPort) }),
      ...tlsOf(input),
      ...(input.text("tick") === "never" ? {} : { tickMs: restOf(input, "tick") ?? 10_000 }),
      authentication: authenticationOf({
        "client-ca": input.text("client-ca"),
        "client-names": input.text("client-names"),
        "bearer-tokens": input.text("bearer-tokens"),
        "path-secrets": input.text("path-secrets"),
        insecure: input.isSet("insecure"),
      }),
      ...(uiSecrets === undefined ? {} : { uiSecrets: pageSecretsOf(uiSecrets, input.text("path-secrets")) }),
      ...(input.text("host") === undefined ? {} : { host: input.required("host") }),
      ...(input.text("client-ca") === undefined ? {} : { clientCa: input.required("client-ca") }),
    };
    const { serveUntilSignal } = await import("../../server/serve.ts");
    await serveUntilSignal(options);
    return 0;
  },
};

/**
 * Settings with which Node takes two thirds of the memory, and reviews take as long: `npm run bench -- serve`,
 * test/bench/README.md.
 */
const SMALL_FLAGS = ["--max-semi-space-size=2", "--no-maglev"];
/** glibc reads these variables when a process starts; other C libraries ignore them. */
const SMALL_ENV = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "131072" };

/** Replaces this process by one with these settings, the same pid, arguments and streams. Windows has no such call. */
export function startSmall(): void {
  const { argv, env, execArgv, execPath, execve, permission, platform } = process;
  const isSmall =
    SMALL_FLAGS.every((flag) => execArgv.includes(flag)) && Object.keys(SMALL_ENV).every((name) => name in env);
  // `node --permission` may forbid the call.
  const isForbidden = permission?.has("child") === false;
  if (isSmall || isForbidden || platform === "win32" || execve === undefined) return;
  execve(execPath, [execPath, ...SMALL_FLAGS, ...execArgv, ...argv.slice(1)], { ...SMALL_ENV, ...env });
}

const LEAST_REST_MS = 1_000;

/** The time between passes; undefined: not given. @throws CliError */
export function restOf(input: Input, option: string): number | undefined {
  const restMs = input.durationMs(option);
  if (restMs === undefined || restMs >= LEAST_REST_MS) return restMs;
  const given = `--${option} ${input.text(option)}`;
  throw new CliError(`${given}: passes would ask the API server without a rest; write 1s or more, or never`);
}

function pageSecretsOf(place: string, ofWebhooks: string | undefined): SecretReference {
  if (ofWebhooks === undefined || resolve(place) !== resolve(ofWebhooks)) return secretsAt("ui-secrets", place);
  throw new CliError(
    "--ui-secrets and --path-secrets name the same file: API servers' secret would open the page; give the page one of its own",
  );
}

/** The port of the option. @throws CliError */
function portOf(input: Input): number {
  const port = input.text("port") === undefined ? readPort() : undefined;
  return port === undefined ? portNumber("--port", input.required("port")) : portNumber("the variable PORT", port);
}

/** A port number. `given`: the option or variable, as the error names it. @throws CliError */
export function portNumber(given: string, text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new CliError(`${given} ${text}: not a port number; write one between 0 (any free port) and 65535`);
}

/** The TLS options. Plain HTTP needs an option of its own, because its clients show no certificate. */
function tlsOf(input: Input) {
  if (!input.isUnset("tls")) return { tlsCert: input.required("tls-cert"), tlsKey: input.required("tls-key") };
  const odd = ["tls-cert", "tls-key", "client-ca"].find((option) => input.text(option) !== undefined);
  if (odd !== undefined) throw new CliError(`--no-tls and --${odd} exclude each other`);
  return {};
}
