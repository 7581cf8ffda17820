/** The session that every command gets: the screen, the cluster, and the format of answers. */

import { systemClock } from "../../shared/controller/loop/clock.ts";
import { announcedSettings, readLease } from "../../shared/controller/loop/lease.ts";
import { DEFAULT_ROLLOUT_SETTINGS, type RolloutSettings } from "../../shared/core/rollout/rollout-settings.ts";
import { accessOf, connect } from "../../shared/kube/connect.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { kubeconfigContext, kubeconfigContexts, kubeconfigNamespace } from "../../shared/kube/kubeconfig.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import type { ClusterAccess } from "../../shared/kube/transport.ts";
import { writeYaml } from "../../shared/kube/yaml.ts";
import { withoutSecrets } from "../../shared/log.ts";
import type { ClusterSettings } from "../../shared/settings/cluster-settings.ts";
import { clusterEnvironment, readClusterTable } from "../../shared/settings/cluster-table.ts";
import {
  type Environment,
  hasClusters,
  readAwsAccess,
  readCallLimits,
  readCluster,
  readConfig,
  readEnvironment,
} from "../../shared/settings/config.ts";
import type { NamedCluster } from "../server/named-cluster.ts";
import { parseDuration } from "../terminal/duration.ts";
import { codeBlock } from "../terminal/markdown.ts";
import { CliError, type Screen } from "../terminal/screen.ts";

/** The feature gates of the last pass. The environment of this command may have others. */
const GATES = Object.keys(DEFAULT_ROLLOUT_SETTINGS) as readonly (keyof RolloutSettings)[];

/** Reads the settings of the passes. If no pass has run, FEATURE_GATES counts, and a warning says what is unknown. */
async function readPassSettings(
  { kruiseNamespace, screen }: { readonly kruiseNamespace: string; readonly screen: Screen },
  cluster: Cluster,
): Promise<RolloutSettings> {
  const own = readConfig().featureGates;
  const site = { cluster, clock: systemClock, namespace: kruiseNamespace, over: new Set<string>() };
  const lease = await readLease(site).catch((error: unknown) => {
    if (isKubeError(error, 403)) return undefined;
    throw error;
  });
  if (lease && !lease.stored) return own;
  const announced = lease && announcedSettings(lease);
  if (announced === undefined) {
    screen.warn(
      "It is not known with which feature gates passes run: those of FEATURE_GATES here are taken for theirs.",
    );
    return own;
  }
  const others = GATES.filter((gate) => own[gate] && !announced[gate]);
  if (others.length > 0)
    screen.warn(
      `The last pass ran without ${others.join(", ")}, which FEATURE_GATES has here: it is told what passes do.`,
    );
  return announced;
}

/** Formats of -o; `table` is for people. */
export type Output = "table" | "json" | "yaml" | "markdown" | "diff" | "patch" | "sarif" | "github";

/** Options that every command takes. */
export interface GlobalOptions {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
  readonly output?: string | undefined;
  readonly requestTimeout?: string | undefined;
  /** no option: the generation of the SidecarSet for which a change was confirmed */
  readonly generation?: number | undefined;
}

export class Session {
  readonly screen: Screen;
  readonly output: Output;
  readonly #options: GlobalOptions;
  #passSettings: Promise<RolloutSettings> | undefined;

  /** @throws CliError for a format that the command does not have */
  constructor(screen: Screen, options: GlobalOptions, outputs: readonly Output[] | "file" | undefined) {
    this.screen = screen;
    this.#options = options;
    this.output = outputs === "file" ? "table" : chosenOutput(options.output, outputs);
  }

  /** The options that name the cluster, as they were given. */
  get globalArguments(): readonly string[] {
    const { kubeconfig, context, namespace, requestTimeout } = this.#options;
    const given = { kubeconfig, context, namespace, "request-timeout": requestTimeout };
    return Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
  }

  /** The only generation that may be changed; undefined: the present one. */
  get generation(): number | undefined {
    return this.#options.generation;
  }

  /** The file of -o, for a command that writes one. */
  get outputFile(): string | undefined {
    return this.#options.output;
  }

  get kubeconfig(): string | undefined {
    return this.#options.kubeconfig;
  }

  /** The namespace of ControllerRevisions, ledgers and the Lease. */
  get kruiseNamespace(): string {
    return readConfig().kruiseNamespace;
  }

  /** Connects to the cluster. @throws KubeError or ConfigError if there is no connection */
  cluster(): Promise<Cluster> {
    return connect(this.#settings(), readAwsAccess, this.#requestTimeoutMs());
  }

  /** Every known cluster: of the table CLUSTERS, or else of the kubeconfig. @throws KubeError or ConfigError */
  async clusters(timeoutMs?: number): Promise<readonly NamedCluster[]> {
    const requestTimeoutMs = this.#requestTimeoutMs() ?? timeoutMs;
    const to = (settings: () => ClusterSettings, env?: () => Environment) => async () =>
      connect(settings(), readAwsAccess, requestTimeoutMs, readCallLimits(env?.()));
    if (this.kubeconfig === undefined && hasClusters()) {
      const env = readEnvironment();
      const table = await readClusterTable(env, readAwsAccess);
      const envOf = (name: string) => () => clusterEnvironment(table, name, { env, use: "passes" });
      return [...table.keys()].map((name) => {
        const own = envOf(name);
        return { name, connect: to(() => readCluster(own()), own), env: own };
      });
    }
    const settings = this.#settings();
    if (settings.kind !== "kubeconfig")
      throw new CliError("--all-clusters: no kubeconfig names several clusters; give --kubeconfig, or set CLUSTERS");
    const contexts = await kubeconfigContexts(settings.path);
    return contexts.map((context) => ({ name: context, connect: to(() => ({ ...settings, context })) }));
  }

  /** The cluster with this name in the table or in the kubeconfig. @throws CliError if no cluster has it */
  async namedCluster(name: string): Promise<NamedCluster> {
    const clusters = await this.clusters();
    const named = clusters.find((one) => one.name === name);
    if (named !== undefined) return named;
    throw new CliError(`--cluster ${name}: write one of ${clusters.map((one) => one.name).join(", ")}`);
  }

  /**
   * The session of another context of the same kubeconfig. Its lines begin with the context's name, and it redraws
   * nothing. `requestTimeout` holds if --request-timeout is not given.
   */
  ofContext(context: string, requestTimeout: string): Session {
    const { screen } = this;
    const own: Screen = {
      ...screen,
      isTerminal: false,
      line: (...parts) => screen.line(`${context}: `, ...parts),
      warn: (sentence) => screen.warn(`${context}: ${sentence}`),
    };
    return new Session(
      own,
      { ...this.#options, requestTimeout: this.#options.requestTimeout ?? requestTimeout, context },
      [this.output],
    );
  }

  /** The contexts of the kubeconfig. @throws KubeError when it cannot be read */
  async contexts(): Promise<readonly string[]> {
    const settings = this.#settings();
    return kubeconfigContexts(settings.kind === "kubeconfig" ? settings.path : undefined);
  }

  /** Names the cluster for people. @throws KubeError or ConfigError */
  async clusterName(): Promise<string> {
    const settings = this.#settings();
    if (settings.kind !== "kubeconfig") return (await this.access()).server;
    return `context ${await kubeconfigContext(settings.path, settings.context)}`;
  }

  /** The feature gates of the passes of that cluster. It warns once. @throws KubeError */
  passSettings(cluster: Cluster): Promise<RolloutSettings> {
    this.#passSettings ??= readPassSettings(this, cluster);
    return this.#passSettings;
  }

  /** The connection to the cluster, for requests that are not about objects. @throws KubeError or ConfigError */
  async access(): Promise<ClusterAccess> {
    const requestTimeoutMs = this.#requestTimeoutMs();
    const access = await accessOf(this.#settings(), readAwsAccess);
    return requestTimeoutMs === undefined ? access : { ...access, requestTimeoutMs };
  }

  #requestTimeoutMs(): number | undefined {
    const { requestTimeout } = this.#options;
    return requestTimeout === undefined ? undefined : parseDuration("request-timeout", requestTimeout);
  }

  /** The namespace of -n, or of the kubeconfig's context, or `default`. */
  async namespace(): Promise<string> {
    if (this.#options.namespace !== undefined) return this.#options.namespace;
    const settings = this.#settings();
    if (settings.kind !== "kubeconfig") return "default";
    return (await kubeconfigNamespace(settings.path, settings.context)) ?? "default";
  }

  /** The namespace of -n; undefined: the option is not given. */
  get givenNamespace(): string | undefined {
    return this.#options.namespace;
  }

  #settings(): ClusterSettings {
    const { kubeconfig, context } = this.#options;
    const settings: ClusterSettings =
      kubeconfig === undefined ? readCluster() : { kind: "kubeconfig", path: kubeconfig };
    if (context === undefined) return settings;
    // Even inside a pod, a context needs a kubeconfig.
    return settings.kind === "kubeconfig" ? { ...settings, context } : { kind: "kubeconfig", context };
  }

  /** Prints one of several values: a line of JSON, or a YAML document. */
  printNext(value: unknown): void {
    const text = this.output === "yaml" ? `---\n${writeYaml(value)}` : `${JSON.stringify(value)}\n`;
    this.screen.text(withoutSecrets(text));
  }

  /** Prints `value` as JSON or YAML if -o asks for it, or else the output of `show`; in Markdown as a block of code. */
  print(value: unknown, show: (screen: Screen) => void): void {
    if (this.output === "json") this.screen.text(withoutSecrets(`${JSON.stringify(value, null, 2)}\n`));
    else if (this.output === "yaml") this.screen.text(withoutSecrets(writeYaml(value)));
    else if (this.output === "markdown") this.screen.text(withoutSecrets(`${codeBlock("text", shownLines(show))}\n`));
    else show(this.screen);
  }
}

/** The lines that `show` prints, without a limit of their width. */
export function shownLines(show: (screen: Screen) => void): readonly string[] {
  const lines: string[] = [];
  const line: Screen["line"] = (...parts) =>
    void lines.push(parts.map((part) => (typeof part === "string" ? part : part.text)).join(""));
  const nothing = () => undefined;
  show({
    width: Number.POSITIVE_INFINITY,
    isTerminal: false,
    line,
    text: line,
    clear: nothing,
    warn: nothing,
    warnings: [],
  });
  return lines;
}

function chosenOutput(given: string | undefined, outputs: readonly Output[] = []): Output {
  const [first = "table"] = outputs;
  if (given === undefined) return first;
  const chosen = outputs.find((one) => one === given);
  if (chosen !== undefined) return chosen;
  if (outputs.length === 0) throw new CliError(`-o ${given}: this command has one form only; leave -o out`);
  throw new CliError(`-o ${given}: write one of ${outputs.join(", ")}`);
}
