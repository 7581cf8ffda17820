/** The command line: demo, serve, tick, webhooks. A mistake of the caller is one sentence on stderr and exit code 2, any other failure 1. */
import { parseArgs } from "node:util";
import { withoutSecrets } from "../shared/log.ts";
import { CliError } from "./cli-error.ts";
import { AUTHENTICATION_OPTIONS, authenticationOf } from "./serve-authentication.ts";

const USAGE = `usage: npm run COMMAND -- OPTIONS

  demo   [--json] [--keep] [-f FILE…]
         the whole product on an embedded cluster; -f takes your manifests instead of the sample
  serve  [--kubeconfig FILE] --port PORT (--tls-cert FILE --tls-key FILE | --no-tls) [--tick 10s|never] [--host ADDRESS]
         and how API servers prove who they are (docs/authentication.md):
         --path-secrets FILE [--bearer-tokens FILE | --client-ca FILE --client-names NAME,…] | --insecure
         every webhook on one HTTPS port, and rollout ticks on a timer
  tick   [--kubeconfig FILE] [--sidecarset NAME] [--dry-run] [--deadline 55s]
         one scheduled pass by hand; prints its report as JSON; a dry run writes nothing
  webhooks --url URL [--ca-bundle FILE] [--path-secrets FILE] [--failure-policy Ignore|Fail]
         [--from-cluster [--kubeconfig FILE]] [--like-openkruise] [--status-hints]
         what to register in the cluster, as YAML; with --from-cluster API servers only
         ask about pods that a SidecarSet of now may be meant for; with --status-hints
         they also tell when pods turn ready, so that rollouts go on at once

  Without --kubeconfig: KUBECONFIG, EKS_CLUSTER or CLUSTER_TOKEN, else the pod's service account, else ~/.kube/config.
`;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

function durationMs(option: string, text: string): number {
  const [, amount, unit = ""] = /^(\d+)(ms|s|m)$/.exec(text) ?? [];
  const milliseconds = Number(amount) * (UNITS[unit] ?? Number.NaN);
  if (milliseconds > 0) return milliseconds;
  throw new CliError(`--${option} ${text}: not a duration; write for example 500ms, 10s or 1m`);
}

function portNumber(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port;
  throw new CliError(`--port ${text}: not a port number; write one between 0 (any free port) and 65535`);
}

type Options = NonNullable<NonNullable<Parameters<typeof parseArgs>[0]>["options"]>;

function parse<T extends Options>(args: readonly string[], options: T, allowPositionals = false) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals });
  } catch (cause) {
    throw new CliError(`${(cause as Error).message.split(". ")[0]}; \`--help\` lists the options`, {
      cause,
    });
  }
}

function required(values: Readonly<Record<string, unknown>>, option: string): string {
  const value = values[option];
  if (typeof value === "string" && value !== "") return value;
  throw new CliError(`--${option} is missing; \`--help\` lists the options`);
}

async function demo(args: readonly string[]): Promise<void> {
  const options = {
    json: { type: "boolean" },
    keep: { type: "boolean" },
    file: { type: "string", short: "f", multiple: true },
  } as const;
  const { values, positionals } = parse(args, options, true);
  if (positionals.length > 0 && values.file === undefined)
    throw new CliError(`${positionals[0]}: unexpected; write -f in front of manifest files`);
  const { runDemo } = await import("../infra/demo/demo.ts");
  await runDemo({
    json: values.json ?? false,
    keep: values.keep ?? false,
    files: [...(values.file ?? []), ...positionals],
  });
}

/** Plain HTTP is for those who ask for it; no client shows a certificate there. */
function tlsOf(values: Readonly<Record<string, unknown>>) {
  if (!values["no-tls"]) return { tlsCert: required(values, "tls-cert"), tlsKey: required(values, "tls-key") };
  const odd = ["tls-cert", "tls-key", "client-ca"].find((option) => values[option] !== undefined);
  if (odd !== undefined) throw new CliError(`--no-tls and --${odd} exclude each other`);
  return {};
}

async function serve(args: readonly string[]): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parse(args, {
    kubeconfig: text,
    port: text,
    "tls-cert": text,
    "tls-key": text,
    tick: text,
    host: text,
    "no-tls": { type: "boolean" },
    ...AUTHENTICATION_OPTIONS,
  });
  const options = {
    ...(values.kubeconfig === undefined ? {} : { kubeconfig: values.kubeconfig }),
    port: portNumber(required(values, "port")),
    ...tlsOf(values),
    ...(values.tick === "never" ? {} : { tickMs: durationMs("tick", values.tick ?? "10s") }),
    authentication: authenticationOf(values),
    ...(values.host === undefined ? {} : { host: values.host }),
    ...(values["client-ca"] === undefined ? {} : { clientCa: values["client-ca"] }),
  };
  const { serveUntilSignal } = await import("./serve.ts");
  await serveUntilSignal(options);
}

async function tick(args: readonly string[]): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parse(args, {
    kubeconfig: text,
    sidecarset: text,
    deadline: text,
    "dry-run": { type: "boolean" },
  });
  const deadlineMs = durationMs("deadline", values.deadline ?? "55s");
  const { runTick, troubleOf } = await import("./tick.ts");
  const report = await runTick({
    ...(values.kubeconfig === undefined ? {} : { kubeconfig: values.kubeconfig }),
    deadlineMs,
    dryRun: values["dry-run"] ?? false,
    ...(values.sidecarset === undefined ? {} : { sidecarSet: values.sidecarset }),
  });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  const trouble = troubleOf(report);
  for (const sentence of trouble) process.stderr.write(`${sentence}\n`);
  if (trouble.length > 0) process.exitCode = 1;
}

async function webhooks(args: readonly string[]): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parse(args, {
    url: text,
    "ca-bundle": text,
    "path-secrets": text,
    "failure-policy": text,
    kubeconfig: text,
    "from-cluster": { type: "boolean" },
    "like-openkruise": { type: "boolean" },
    "status-hints": { type: "boolean" },
  });
  const { printWebhooks } = await import("./webhooks.ts");
  const yaml = await printWebhooks({
    url: required(values, "url"),
    caBundle: values["ca-bundle"],
    pathSecrets: values["path-secrets"],
    failurePolicy: values["failure-policy"],
    kubeconfig: values.kubeconfig,
    fromCluster: values["from-cluster"] ?? false,
    likeOpenKruise: values["like-openkruise"] ?? false,
    statusHints: values["status-hints"] ?? false,
  });
  process.stdout.write(yaml);
}

const COMMANDS: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = { demo, serve, tick, webhooks };

async function main([command = "", ...args]: readonly string[]): Promise<void> {
  const run = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (command === "--help" || command === "help" || args.includes("--help")) process.stdout.write(USAGE);
  else if (run === undefined) throw new CliError(`${command || "no command"}: expected demo, serve, tick or webhooks`);
  else await run(args);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${withoutSecrets(error instanceof Error ? error.message : String(error))}\n`);
  process.exitCode = error instanceof CliError ? 2 : 1;
}
