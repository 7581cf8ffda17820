/**
 * Sets up a deployment: a stand-in for AWS, programs that record their calls, and functions that run after they are
 * deployed.
 */
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tickUntilAborted } from "../../../functions/server/ticks.ts";
import { parametersOutput } from "../../../infra/aws/given-parameters.ts";
import { readSettings } from "../../../infra/aws/settings.ts";
import { createCertificates } from "../../../infra/local/http/https-server.ts";
import { KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import type { Cluster } from "../../../shared/kube/port.ts";
import { createLog } from "../../../shared/log.ts";
import { parseAuthentication } from "../../../shared/settings/authentication-settings.ts";
import { readAwsAccess, readConfig } from "../../../shared/settings/config.ts";
import { allWebhooks } from "../../../shared/webhook/handlers/all-webhooks.ts";
import { authenticator } from "../../../shared/webhook/server/authenticate.ts";
import { serveHttps } from "../../../shared/webhook/server/https-server.ts";
import type { RawTarget } from "../../contract/raw.ts";
import { controlPlane } from "./access.ts";
import { type AwsCall, type AwsStandIn, startAws } from "./aws-stand-in.ts";
import { asServiceAccount, clusterOf, writeKubeconfig } from "./clients.ts";
import { removeAtEnd } from "./processes.ts";

interface Run {
  readonly code: number;
  /** stdout and stderr together */
  readonly text: string;
  readonly killed: boolean;
}

export interface Scene {
  readonly aws: AwsStandIn;
  /** returns the command lines of npm and kubectl so far */
  readonly commands: () => readonly string[];
  /** returns the output of all runs */
  readonly printed: () => string;
  /**
   * runs `npm run deploy:all -- ARGS`; `user`: in the cluster, absent: an administrator; `env`: additional variables
   */
  readonly deploy: (args?: readonly string[], as?: { user?: RawTarget; env?: NodeJS.ProcessEnv }) => Promise<Run>;
  /** kills the present run */
  readonly kill: (signal?: NodeJS.Signals) => void;
  /** the folder whose programs a run finds first */
  readonly folder: string;
  readonly close: () => Promise<void>;
}

const ROLES = ["MutatePodRole", "ValidateSidecarsetRole", "RolloutRole", "DryRunRole", "OrderedSetRole"];
const FUNCTIONS = ["MutateDashpod", "MutateDashsidecarset", "ValidateDashsidecarset", "ConvertDashsidecarset"];
const IN_CLUSTER = new Set(["MutateDashpod", "ValidateDashsidecarset"]);
const CLUSTER = "demo";

/** Writes programs into a folder that is first in PATH. The stand-in for npm only records the call. */
function writePrograms(folder: string): void {
  const kubectl = execFileSync("which", ["kubectl"], { encoding: "utf8" }).trim();
  const command = (name: string, body: string) => {
    writeFileSync(join(folder, name), `#!/usr/bin/env bash\necho "${name} $*" >> ${folder}/commands\n${body}\n`);
    chmodSync(join(folder, name), 0o755);
  };
  command("kubectl", `exec ${kubectl} "$@"`);
  const same = `[ "$*" != "$(cat ${folder}/deployed 2>/dev/null)" ] || { echo "No changes to deploy. Deployment skipped."; exit 0; }`;
  command("npm", `${same}\necho "$*" > ${folder}/deployed`);
  writeFileSync(join(folder, "commands"), "");
}

/** Authenticates callers as the functions do, with the digests of their deployment. */
function knownBy(folder: string, log: ReturnType<typeof createLog>) {
  let digests = "";
  let known: ReturnType<typeof authenticator> | undefined;
  return () => {
    const deployed = existsSync(join(folder, "deployed")) ? readFileSync(join(folder, "deployed"), "utf8") : "";
    const [, now = ""] = /--param=path-digests=(.*?)(?: --param|\n|$)/.exec(deployed) ?? [];
    if (known === undefined || now !== digests) {
      const settings = parseAuthentication({ AUTHENTICATION: "secret-path", PATH_DIGESTS: now });
      known = authenticator(settings, { aws: readAwsAccess, log, now: Date.now }, { hasConversions: true });
      digests = now;
    }
    return known.isKnown;
  };
}

/** Starts the functions. They get their service accounts after these exist. */
async function startDeployed(folder: string) {
  const { authority, certificate, key } = await createCertificates("127.0.0.1");
  const tls = { tlsCert: join(folder, "tls.crt"), tlsKey: join(folder, "tls.key") };
  writeFileSync(tls.tlsCert, certificate);
  writeFileSync(tls.tlsKey, key, { mode: 0o600 });
  writeFileSync(join(folder, "ca.crt"), authority);
  const log = createLog("error", () => undefined);
  const known = knownBy(folder, log);
  const connectAs = async (name: string) => clusterOf(await asServiceAccount(controlPlane(), KRUISE_NAMESPACE, name));
  const config = readConfig({});
  const serve = (connect: () => Promise<Cluster>) => {
    const webhooks = allWebhooks({ ...config, connect, now: Date.now, log, isKnown: (...asked) => known()(...asked) });
    return serveHttps(webhooks, { ...tls, port: 0, host: "127.0.0.1" });
  };
  const inCluster = await serve(() => connectAs("sidecarset-webhooks"));
  // Functions without rights in the cluster start before any rights exist.
  const outside = await serve(async () => clusterOf(controlPlane()));
  const end = new AbortController();
  const ticks = tickUntilAborted({
    connect: () => connectAs("sidecarset-reconciler"),
    kruiseNamespace: KRUISE_NAMESPACE,
    settings: config.featureGates,
    tickMs: 1_000,
    log,
    onReport: undefined,
    signal: end.signal,
  });
  const close = async () => {
    end.abort();
    await ticks;
    await inCluster.close();
    await outside.close();
  };
  const urlOf = (name: string) => `https://127.0.0.1:${(IN_CLUSTER.has(name) ? inCluster : outside).port}/`;
  return { urlOf, close };
}

export async function deploymentScene(): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), "deployment-"));
  removeAtEnd(folder);
  writePrograms(folder);
  const plane = controlPlane();
  const kubeconfig = join(folder, "kubeconfig");
  const [aws, functions] = [await startAws(), await startDeployed(folder)];
  aws.state.cluster = {
    name: CLUSTER,
    status: "ACTIVE",
    endpoint: plane.url,
    certificateAuthority: { data: Buffer.from(plane.caCertificate ?? "").toString("base64") },
    resourcesVpcConfig: { endpointPublicAccess: true, publicAccessCidrs: ["0.0.0.0/0"] },
    accessConfig: { authenticationMode: "API" },
  };
  const outputs = Object.fromEntries([
    ...ROLES.map((role) => [role, `arn:aws:iam::123456789012:role/sidecarset-prod-${role}-ABC`]),
    ...FUNCTIONS.map((name) => [`${name}LambdaFunctionUrl`, functions.urlOf(name)]),
  ]);
  // The stack of CloudFormation exists after npm's call.
  const onCall = async ({ service }: AwsCall) => {
    if (service !== "cloudformation" || !existsSync(join(folder, "deployed"))) return;
    const given = readFileSync(join(folder, "deployed"), "utf8").matchAll(/--param=(.*?)=(.*?)(?= --param|\n)/g);
    const parameters = new Map([...given].map(([, name = "", value = ""]) => [name, value]));
    const { Parameters } = parametersOutput(
      await readSettings("sidecarset", "prod", async (name) => parameters.get(name) ?? ""),
    );
    aws.state.stack = { status: "CREATE_COMPLETE", outputs: { ...outputs, Parameters: Parameters.Value } };
  };
  aws.state.onCall = onCall;
  const env = {
    ...process.env,
    PATH: `${folder}:${process.env["PATH"]}`,
    KUBECONFIG: kubeconfig,
    AWS_ENDPOINT_URL: aws.endpoint,
    AWS_ACCESS_KEY_ID: "AKIAEXAMPLE",
    AWS_SECRET_ACCESS_KEY: "not-a-secret-of-anybody",
    HOME: folder,
  };
  let printed = "";
  let running: ReturnType<typeof execFile> | undefined;
  const deploy: Scene["deploy"] = async (args = [], { user = plane, env: added } = {}) => {
    await writeKubeconfig(kubeconfig, user);
    return await new Promise<Run>((resolve) => {
      const all = ["--region", "eu-central-1", "--cluster", CLUSTER, "--ca-bundle", join(folder, "ca.crt"), ...args];
      running = execFile(
        process.execPath,
        ["infra/aws/deploy/main.ts", ...all],
        { env: { ...env, ...added } },
        (error, stdout, stderr) => {
          printed += stdout + stderr;
          resolve({
            code: error ? Number(error.code ?? 1) : 0,
            text: stdout + stderr,
            killed: error?.signal === "SIGKILL" || error?.code === 143,
          });
        },
      );
    });
  };
  return {
    aws,
    deploy,
    printed: () => printed,
    kill: (signal = "SIGKILL") => void running?.kill(signal),
    folder,
    commands: () => readFileSync(join(folder, "commands"), "utf8").trimEnd().split("\n").filter(Boolean),
    close: async () => {
      await functions.close();
      aws.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
