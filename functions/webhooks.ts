/** All webhooks as one function of a request, which platforms call. An adapter is in test/platforms/fetch.ts. */
import { connect } from "../shared/kube/connect.ts";
import type { Cluster } from "../shared/kube/port.ts";
import { createLog, type Log } from "../shared/log.ts";
import type { AuthenticationSettings } from "../shared/settings/authentication-settings.ts";
import {
  type Config,
  type Environment,
  readAuthentication,
  readAwsAccess,
  readCluster,
  readConfig,
} from "../shared/settings/config.ts";
import { allWebhooks, podsView } from "../shared/webhook/handlers/all-webhooks.ts";
import type { Send } from "../shared/webhook/handlers/hints.ts";
import { type AuthenticateOptions, type Authenticator, authenticator } from "../shared/webhook/server/authenticate.ts";
import type { Answerer } from "../shared/webhook/server/http.ts";
import type { ViewState } from "../shared/webhook/view/cluster-view.ts";

/** Absent members are taken from the environment. */
export interface WebhooksInput {
  /** path of a kubeconfig */
  readonly kubeconfig?: string | undefined;
  /** The API servers' proof of identity. */
  readonly authentication?: AuthenticationSettings;
  readonly freshnessMs?: number | undefined;
  readonly log?: Log;
  /** Receives announcements of changed SidecarSets, and of pods that turn ready or fail; absent: no announcements. */
  readonly send?: Send;
}

export interface Webhooks extends Pick<Authenticator, "isKept" | "ready"> {
  readonly answer: Answerer;
  readonly connect: () => Promise<Cluster>;
  readonly config: Config;
  readonly identify: AuthenticateOptions;
  /** the present source of decisions on pods */
  readonly viewState: () => ViewState;
}

/** @throws ConfigError for a setting that cannot be used, or where none says how API servers prove who they are */
export function webhooksFrom(env?: Environment, input: WebhooksInput = {}): Webhooks {
  const config = { ...readConfig(env), ...(input.freshnessMs === undefined ? {} : { freshnessMs: input.freshnessMs }) };
  const { authentication = readAuthentication(env), log = createLog(config.logLevel), send } = input;
  const cluster = input.kubeconfig ?? readCluster(env);
  const toCluster = () => connect(cluster);
  const identify = { aws: () => readAwsAccess(env), log, now: Date.now };
  const { isKnown, isKept, ready } = authenticator(authentication, identify, { hasConversions: true });
  const view = podsView({ ...config, connect: toCluster, now: Date.now, log });
  const options = { ...config, connect: toCluster, now: Date.now, log, isKnown, view, ...(send ? { send } : {}) };
  return { answer: allWebhooks(options), connect: toCluster, config, identify, isKept, ready, viewState: view.state };
}
