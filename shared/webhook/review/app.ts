/** HTTP in, reviews out: every request gets an answer within its time, with its uid if it has one. */
import type { AdmissionRequest } from "../../api/admission.ts";
import type { Admission } from "../../core/admission/admission.ts";
import { type Log, rateLimited } from "../../log.ts";
import { type Authenticate, splitPath } from "../server/authenticate.ts";
import {
  type Answerer,
  carried,
  type HttpAnswer,
  type HttpRequest,
  isRead,
  jsonAnswer,
  printedAnswer,
  ReviewError,
  textAnswer,
  within,
} from "../server/http.ts";
import { READY_PATH } from "../server/ready-path.ts";
import { sizeProblem } from "./object-size.ts";
import { type Readiness, type ReadinessOptions, readiness } from "./readiness.ts";
import { answerOther, refuseMethod, refusingStrangers } from "./refusals.ts";
import { admissionResponse, failure, printReview, publicMessage, refuse } from "./response.ts";
import { readAdmissionReview, requireJson } from "./review.ts";

/** Makes one admission decision. If it throws, the answer has code 500, and the registration's failurePolicy applies. */
export type Admit = (request: AdmissionRequest) => Admission | Promise<Admission>;

export interface WebhookOptions extends ReadinessOptions {
  /** Checked before anything else of a request. */
  readonly isKnown: Authenticate;
  /** path → who decides there */
  readonly admissions?: Readonly<Record<string, Admit>>;
  /** path → the result of `answerConversions` for its converter */
  readonly conversions?: Readonly<Record<string, (log: Log) => ReviewAnswerer>>;
  /** True where only the cluster's own probes can ask: /readyz is answered for anybody then, as /healthz always is. */
  readonly isReadinessOpen?: boolean;
}

/** Answers one review's text, and turns a failure after its uid was known into an answer of the same form. */
export type ReviewAnswerer = (request: HttpRequest, body: string) => HttpAnswer | Promise<HttpAnswer>;

/**
 * Limit of a request, above anything that an API server sends. It accepts objects of 3 MiB of JSON, and Go writes each
 * `<` as six characters. A lower limit would leave a pod without its sidecars, under `failurePolicy: Ignore`.
 */
const MAX_BODY_BYTES = 20 * 1024 * 1024;

/** The timeout of API servers without a configured one. */
const DEFAULT_TIMEOUT_SECONDS = 10;

/** An app that can be mounted alone: it needs nothing but what its handlers need. No secret of a path goes beyond here. */
export function webhookApp(options: WebhookOptions): Answerer {
  const { log, admissions = {}, conversions = {} } = options;
  const reviews = new Map<string, ReviewAnswerer>([
    ...Object.entries(admissions).map(([path, admit]): [string, ReviewAnswerer] => [path, admission(admit, log)]),
    ...Object.entries(conversions).map(([path, convert]): [string, ReviewAnswerer] => [path, convert(log)]),
  ]);
  const purposeOf = (path: string) => (Object.hasOwn(conversions, path) ? "conversion" : "admission");
  const recognize = recognizer(options);
  // In Lambda's webhooks both are separate files, which few requests need.
  let refuseStranger: ReturnType<typeof refusingStrangers> = (...refused) => {
    refuseStranger = refusingStrangers(log, reviews);
    return refuseStranger(...refused);
  };
  let isReady: Readiness = (isStranger) => {
    isReady = readiness(options);
    return isReady(isStranger);
  };
  const answerKnown = (request: HttpRequest): Promise<HttpAnswer> => {
    const review = reviews.get(request.path);
    return review === undefined ? answerOther(request, isReady) : answerReview(request, review);
  };
  return async (request) => {
    let inner = request;
    try {
      const probe = openProbe(request, options.isReadinessOpen === true, isReady);
      if (probe !== undefined) return await probe;
      const split = splitPath(request.path);
      inner = { ...request, path: split.path };
      const recognition = recognize(request, split, purposeOf(split.path));
      const known = recognition instanceof Promise ? await recognition : recognition;
      if (known !== true) return refuseStranger(known, inner);
      return await answerKnown(inner);
    } catch (error) {
      return answerError(error, inner, log);
    }
  };
}

/** Answers probes, which do not authenticate. */
function openProbe({ method, path }: HttpRequest, isReadinessOpen: boolean, isReady: Readiness) {
  if (!isRead(method)) return undefined;
  if (path === "/healthz") return ofStranger(textAnswer(200, "ok"));
  return path === READY_PATH && isReadinessOpen ? isReady(true).then(ofStranger) : undefined;
}

/** Closes the connection after an answer to an unauthenticated caller. */
function ofStranger(answer: HttpAnswer): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, connection: "close" } };
}

type Recognition = boolean | "cannot be told";

/** Why a caller is not known is for our log, not for the caller. */
function recognizer({
  log,
  isKnown,
}: WebhookOptions): (...asked: Parameters<Authenticate>) => Recognition | Promise<Recognition> {
  const say = rateLimited<unknown>((requests, error) => {
    log.error("callers cannot be told from strangers", { requests, error });
  });
  const down = (error: unknown): Recognition => {
    say(error);
    return "cannot be told";
  };
  return (...asked) => {
    try {
      const known = isKnown(...asked);
      return known instanceof Promise ? known.catch(down) : known;
    } catch (error) {
      return down(error);
    }
  };
}

async function answerReview(request: HttpRequest, review: ReviewAnswerer): Promise<HttpAnswer> {
  const { method, headers } = request;
  if (method !== "POST") return refuseMethod(request);
  requireJson(headers["content-type"]);
  const body = await request.readBody(MAX_BODY_BYTES);
  if (body !== undefined) return review(request, body);
  throw new ReviewError(`the body is too large, the limit is ${MAX_BODY_BYTES} bytes`, {
    code: 413,
    reason: "RequestEntityTooLarge",
  });
}

function admission(admit: Admit, log: Log): ReviewAnswerer {
  return (http, body) => {
    const begin = performance.now();
    const { apiVersion, request, isPlain } = readAdmissionReview(body);
    const answer = (decided: Admission) => {
      const response = admissionResponse(request, decided);
      const { allowed, status, warnings, patch } = response;
      log[warnings ? "warn" : "info"]("admission", {
        ...describe(http, request),
        allowed,
        code: status?.code,
        denial: status?.message,
        warnings,
        patchBytes: patch?.length ?? 0,
        ms: Math.round(performance.now() - begin),
      });
      return carried(http, printedAnswer(printReview(apiVersion, response)));
    };
    const fail = (error: unknown) => {
      log.error("request failed", { ...describe(http, request), error });
      return jsonAnswer(500, failure(500, "InternalError", publicMessage(error)));
    };
    try {
      const message = isPlain ? undefined : sizeProblem(request.object);
      if (message !== undefined) return answer({ kind: "denied", code: 413, reason: "RequestEntityTooLarge", message });
      const decided = admit(request);
      if (!(decided instanceof Promise)) return answer(decided);
      return within(timeoutMs(http), () => decided)
        .then(answer)
        .catch(fail);
    } catch (error) {
      return fail(error);
    }
  };
}

function answerError(error: unknown, { path }: HttpRequest, log: Log): HttpAnswer {
  if (error instanceof ReviewError) {
    log.warn("request refused", { path, code: error.code, error: error.message });
    return refuse(error.code, error.reason, error.message);
  }
  log.error("request failed", { path, error });
  return refuse(500, "InternalError", publicMessage(error));
}

/** API servers put their timeout into the URL. A tenth of it is left to carry the answer. */
function timeoutMs({ query }: HttpRequest): number {
  const seconds = /(?:^|&)timeout=(\d{1,2})s(?:&|$)/.exec(query)?.[1];
  return Number(seconds ?? DEFAULT_TIMEOUT_SECONDS) * 900;
}

function describe({ path }: HttpRequest, request: AdmissionRequest) {
  const { uid, operation, resource, namespace, name, dryRun } = request;
  return { path, uid, operation, resource: resource.resource, namespace, name, dryRun: dryRun || undefined };
}
