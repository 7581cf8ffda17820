/** HTTP in, reviews out: every request is answered within its time, with its uid where it has one, whatever happens. */
import type { Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { Hono } from "hono/tiny";
import type { AdmissionRequest } from "../api/admission.ts";
import type { KubernetesObject } from "../api/kubernetes.ts";
import type { Admission } from "../core/lib/admission.ts";
import type { Log } from "../log.ts";
import { within } from "./deadline.ts";
import { admissionResponse, failure } from "./response.ts";
import {
  type ConversionRequest,
  ReviewError,
  readAdmissionReview,
  readConversionReview,
  requireJson,
} from "./review.ts";

/** Decides one admission. What it throws becomes a denial with code 500. */
export type Admit = (request: AdmissionRequest) => Admission | Promise<Admission>;

/** All objects of the request in its desired version, in order. What it throws becomes a failed conversion. */
type Convert = (request: ConversionRequest) => readonly KubernetesObject[];

export interface WebhookOptions {
  readonly log: Log;
  /** path → who decides there */
  readonly admissions?: Readonly<Record<string, Admit>>;
  /** path → who converts there */
  readonly conversions?: Readonly<Record<string, Convert>>;
  /** Rejects while admissions could not be decided; what it says is the answer of /readyz. */
  readonly checkReady?: () => Promise<unknown>;
}

/** What an error needs to be answered in the form that was asked for. */
interface Env {
  Variables: { answerError: (message: string) => Response };
}

/** As controller-runtime: twice what an object in etcd may have, an update carries two, and some. */
const MAX_BODY_BYTES = 7 * 1024 * 1024;

/** What API servers wait when a configuration does not say. */
const DEFAULT_TIMEOUT_MS = 10_000;
const READY_TIMEOUT_MS = 5_000;

/** An app that can be mounted alone: it needs nothing but what its handlers need. */
export function webhookApp(options: WebhookOptions): Hono<Env> {
  const { log } = options;
  const app = new Hono<Env>();
  app.use(bodyLimit({ maxSize: MAX_BODY_BYTES, onError: () => refuseLargeBody() }));
  for (const [path, admit] of Object.entries(options.admissions ?? {})) {
    app.post(path, (c) => answerAdmission(c, admit, log));
    app.all(path, refuseMethod);
  }
  for (const [path, convert] of Object.entries(options.conversions ?? {})) {
    app.post(path, (c) => answerConversion(c, convert, log));
    app.all(path, refuseMethod);
  }
  app.get("/healthz", (c) => c.text("ok"));
  app.get("/readyz", (c) => answerReady(c, options));
  app.notFound((c) => refuse(c, 404, "NotFound", `there is no webhook at ${c.req.path}`));
  app.onError((error, c) => answerError(error, c, log));
  return app;
}

async function answerAdmission(c: Context<Env>, admit: Admit, log: Log): Promise<Response> {
  const begin = performance.now();
  requireJson(c.req.header("content-type"));
  const { apiVersion, request } = readAdmissionReview(await c.req.text());
  const answer = (admission: Admission) => {
    const response = admissionResponse(request, admission);
    log[response.warnings ? "warn" : "info"]("admission", {
      path: c.req.path,
      ...describe(request),
      allowed: response.allowed,
      ...(response.status ? { code: response.status.code, denial: response.status.message } : {}),
      ...(response.warnings ? { warnings: response.warnings } : {}),
      patchBytes: response.patch?.length ?? 0,
      ms: Math.round(performance.now() - begin),
    });
    return c.json({ apiVersion, kind: "AdmissionReview", response });
  };
  c.set("answerError", (message) => answer({ kind: "denied", code: 500, reason: "InternalError", message }));
  return answer(await within(timeoutMs(c), async () => admit(request)));
}

async function answerConversion(c: Context<Env>, convert: Convert, log: Log): Promise<Response> {
  requireJson(c.req.header("content-type"));
  const { apiVersion, request } = readConversionReview(await c.req.text());
  const { uid, desiredAPIVersion } = request;
  const answer = (convertedObjects: readonly KubernetesObject[], result: object) =>
    c.json({ apiVersion, kind: "ConversionReview", response: { uid, convertedObjects, result } });
  c.set("answerError", (message) => answer([], { status: "Failure", message }));
  const converted = convert(request);
  log.info("conversion", { uid, desiredAPIVersion, objects: converted.length });
  return answer(converted, { status: "Success" });
}

async function answerReady(c: Context<Env>, { checkReady, log }: WebhookOptions): Promise<Response> {
  try {
    await within(READY_TIMEOUT_MS, async () => checkReady?.());
    return c.text("ok");
  } catch (error) {
    log.warn("not ready", { error });
    return c.text(messageOf(error), 503);
  }
}

function answerError(error: Error, c: Context<Env>, log: Log): Response {
  if (error instanceof ReviewError) {
    log.warn("request refused", { path: c.req.path, code: error.code, error: error.message });
    return refuse(c, error.code, error.reason, error.message);
  }
  log.error("request failed", { path: c.req.path, error });
  const answer = c.get("answerError") as Env["Variables"]["answerError"] | undefined;
  return answer?.(messageOf(error)) ?? refuse(c, 500, "InternalError", messageOf(error));
}

/** What is left of the body is not read, so the connection cannot be used again. */
function refuse(c: Context, code: 400 | 404 | 405 | 413 | 415 | 500, reason: string, message: string): Response {
  return c.json(failure(code, reason, message), code, { Connection: "close" });
}

function refuseLargeBody(): never {
  throw new ReviewError(`the body is too large, the limit is ${MAX_BODY_BYTES} bytes`, {
    code: 413,
    reason: "RequestEntityTooLarge",
  });
}

function refuseMethod(c: Context): Response {
  c.header("Allow", "POST");
  return refuse(c, 405, "MethodNotAllowed", `${c.req.method} is not allowed at ${c.req.path}, expected POST`);
}

/** API servers say in the URL how long they wait. A tenth of it is left to carry the answer. */
function timeoutMs(c: Context): number {
  const seconds = /^(\d{1,2})s$/.exec(c.req.query("timeout") ?? "")?.[1];
  return (seconds === undefined ? DEFAULT_TIMEOUT_MS : Number(seconds) * 1000) * 0.9;
}

function describe({ uid, operation, resource, namespace, name, dryRun }: AdmissionRequest) {
  return { uid, operation, resource: resource.resource, namespace, name, ...(dryRun ? { dryRun } : {}) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
