/** Calls the webhook addresses: reads their certificates, and tests whether unknown callers are answered. */
import { X509Certificate } from "node:crypto";
import { request } from "node:https";
import { isIP } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import type { Answer, Handshake, Probe } from "../../../shared/core/inspect/check/facts.ts";
import type { Address } from "../../../shared/core/inspect/check/webhooks.ts";

const PATIENCE_MS = 5_000;
/** The secret part of a registered path. */
const PATH_SECRET = /\/s\/[^/]+(?=\/)/;

/** Calls an address. It never rejects: a failure is its result. */
export async function probe(address: Address): Promise<Probe> {
  const { origin, url, caBundle } = address;
  const ca = caBundle ? pemOf(caBundle) : undefined;
  const isCaBroken = caBundle !== undefined && caBundle !== "" && !isCertificate(caBundle);
  const handshake = await shakeHands(origin, isCaBroken ? undefined : ca).catch((error: unknown) => ({
    unreachable: textOf(error),
  }));
  if ("unreachable" in handshake) return { origin, isCaBroken, handshake };
  const toStranger = await post(url.replace(PATH_SECRET, ""), address);
  // The secret goes only to a server whose certificate is right.
  const isTold = handshake.problem === undefined && PATH_SECRET.test(url);
  return { origin, isCaBroken, handshake, toStranger, ...(isTold ? { toRegistered: await post(url, address) } : {}) };
}

function pemOf(caBundle: string): string {
  return Buffer.from(caBundle, "base64").toString();
}

/** True if the text is a certificate. `caBundle`: PEM in base64. */
export function isCertificate(caBundle: string): boolean {
  try {
    return new X509Certificate(pemOf(caBundle)).subject !== undefined;
  } catch {
    return false;
  }
}

function shakeHands(origin: string, ca: string | undefined): Promise<Handshake> {
  const { hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(port || 443),
      ...(isIP(host) ? {} : { servername: host }),
      ...(ca === undefined ? {} : { ca }),
      // The probe reads the certificate itself, so TLS must accept an invalid one.
      rejectUnauthorized: false,
    });
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`no answer within ${PATIENCE_MS / 1000} s`)));
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      resolve(handshakeOf(socket));
      socket.destroy();
    });
  });
}

function handshakeOf(socket: TLSSocket): Handshake {
  const { valid_from: from, valid_to: to, subjectaltname = "" } = socket.getPeerCertificate();
  const problem = socket.authorizationError as Error | string | undefined | null;
  const names = subjectaltname.split(", ").flatMap((one) => /^(?:DNS|IP Address):(.+)$/.exec(one)?.[1] ?? []);
  return {
    certificate: { validFrom: timeOf(from), validTo: timeOf(to), names },
    problem: problem ? codeOf(problem) : undefined,
  };
}

function codeOf(problem: Error | string): string {
  if (typeof problem === "string") return problem;
  return (problem as NodeJS.ErrnoException).code ?? problem.message;
}

function timeOf(text: string | undefined): string {
  const date = new Date(text ?? "");
  return Number.isNaN(date.getTime()) ? "" : `${date.toISOString().slice(0, 19)}Z`;
}

function textOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined ? message : `${code}${message.includes(code) ? "" : `, ${message}`}`;
}

/** A request that is valid except for the caller's proof of identity, so only the proof can cause a refusal. */
function bodyFor({ url, isConversion }: Address): object {
  if (isConversion)
    return {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "ConversionReview",
      request: { uid: "check", desiredAPIVersion: "apps.kruise.io/v1beta1", objects: [] },
    };
  const isPod = url.endsWith("pod");
  const resource = isPod
    ? { group: "", version: "v1", resource: "pods" }
    : { group: "apps.kruise.io", version: "v1beta1", resource: "sidecarsets" };
  const metadata = { name: "sidecarset-check", ...(isPod ? { namespace: "default" } : {}) };
  const containers = [{ name: "check", image: "check:1" }];
  const object = isPod
    ? { apiVersion: "v1", kind: "Pod", metadata, spec: { containers } }
    : { apiVersion: "apps.kruise.io/v1beta1", kind: "SidecarSet", metadata, spec: { containers } };
  const { name, namespace } = { namespace: undefined, ...metadata };
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: { uid: "check", operation: "CREATE", dryRun: true, resource, name, namespace, object },
  };
}

function post(url: string, address: Address): Promise<Answer> {
  const begin = performance.now();
  const answer = (code: number): Answer => ({ code, ms: Math.round(performance.now() - begin) });
  return new Promise((resolve) => {
    const outgoing = request(url, {
      method: "POST",
      agent: false,
      rejectUnauthorized: false,
      timeout: PATIENCE_MS,
      headers: { "Content-Type": "application/json", "User-Agent": "sidecarset-check" },
    });
    outgoing.on("timeout", () => outgoing.destroy());
    outgoing.on("error", () => resolve(answer(0)));
    outgoing.on("response", (incoming) => {
      incoming.resume();
      resolve(answer(incoming.statusCode ?? 0));
    });
    outgoing.end(JSON.stringify(bodyFor(address)));
  });
}
