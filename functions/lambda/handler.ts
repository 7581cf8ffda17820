/** What Lambda calls for an HTTP request, and how one function answers by several sets of settings. */
import type { ALBEvent, APIGatewayProxyEvent, APIGatewayProxyEventV2 } from "aws-lambda";
import type { Log } from "../../shared/log.ts";
import type { Environment } from "../../shared/settings/config.ts";
import type { Authenticate, Authenticator } from "../../shared/webhook/server/authenticate.ts";
import type { HttpResult } from "./body.ts";

/** API Gateway passes the certificate of mutual TLS along; a Function URL has none. */
export type GatewayEvent = APIGatewayProxyEventV2 & {
  readonly requestContext: {
    readonly authentication?: { readonly clientCert?: { readonly clientCertPem?: string } | null } | null;
  };
};
/** The event of a REST API, or of payload format 1.0. */
export type RestEvent = APIGatewayProxyEvent;
export type HttpEvent = GatewayEvent | ALBEvent | RestEvent;

export type HttpHandler = (event: HttpEvent) => Promise<HttpResult>;

/** Answers by these settings, or by the process' own. @throws ConfigError for one that can't be used, or no AUTHENTICATION */
export type Serve = (env?: Environment, log?: Log, knownBy?: (of: Authenticator) => Authenticate) => HttpHandler;
