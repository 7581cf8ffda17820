/** An admission or conversion webhook over HTTPS. A case decides its answers, and it records the requests. */
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { createCertificates } from "../../infra/local/http/https-server.ts";
import type { AdmissionRequest } from "../../shared/api/admission.ts";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";

/** Every field that a kube-apiserver sends. */
export interface SentRequest extends AdmissionRequest {
  readonly requestKind?: object;
  readonly requestResource?: object;
  readonly userInfo?: { readonly username: string; readonly groups?: readonly string[] };
  readonly options?: { readonly kind: string };
  /** the field of a ConversionReview */
  readonly desiredAPIVersion?: string;
  /** the field of a ConversionReview */
  readonly objects?: readonly KubernetesObject[];
}

/** A response without its uid. "hang": no answer; `text`: is sent unchanged; a number: an HTTP code. */
export type Reaction = Readonly<Record<string, unknown>> | "hang" | number;

/** The credentials of a request's sender. */
interface Caller {
  /** common name of the client certificate */
  readonly certificate: string | undefined;
  readonly authorization: string | undefined;
}

export interface WebhookServer {
  /** returns the address of one path */
  url(path: string): string;
  /** base64 of the PEM that signs the server's certificate */
  readonly caBundle: string;
  /** returns the requests to `path` so far */
  requests(path: string): readonly SentRequest[];
  /** returns the callers of `path` so far */
  callers(path: string): readonly Caller[];
  /** Sets the later answers at `path`; before, every request is allowed. */
  answer(path: string, react: (request: SentRequest) => Reaction): void;
  close(): Promise<void>;
}

interface Review {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request: SentRequest;
}

function bodyOf(reaction: Exclude<Reaction, "hang">, { apiVersion, kind, request }: Review): string {
  if (typeof reaction === "number") return "no";
  if (typeof reaction["text"] === "string") return reaction["text"];
  return JSON.stringify({ apiVersion, kind, response: { uid: request.uid, ...reaction } });
}

function callerOf({ socket, headers }: IncomingMessage): Caller {
  const { subject } = (socket as TLSSocket).getPeerCertificate();
  const name = subject?.CN;
  return { certificate: typeof name === "string" ? name : undefined, authorization: headers.authorization };
}

/** `host`: the address under which API servers reach this machine. */
export async function startWebhookServer(host = "127.0.0.1"): Promise<WebhookServer> {
  const { authority, certificate, key } = await createCertificates(host);
  const asked = new Map<string, SentRequest[]>();
  const callers = new Map<string, Caller[]>();
  const reactions = new Map<string, (request: SentRequest) => Reaction>();
  const tls = { key, cert: certificate, requestCert: true, rejectUnauthorized: false };
  const server = createServer(tls, async (incoming, outgoing) => {
    const path = new URL(incoming.url ?? "/", "https://localhost").pathname;
    const review = JSON.parse(await text(incoming));
    asked.set(path, [...(asked.get(path) ?? []), review.request]);
    callers.set(path, [...(callers.get(path) ?? []), callerOf(incoming)]);
    const reaction = reactions.get(path)?.(review.request) ?? { allowed: true };
    if (reaction === "hang") return;
    outgoing.writeHead(typeof reaction === "number" ? reaction : 200, { "content-type": "application/json" });
    outgoing.end(bodyOf(reaction, review));
  });
  const isLocal = host === "127.0.0.1";
  await new Promise<void>((resolve) => server.listen({ port: 0, ...(isLocal ? { host } : {}) }, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: (path) => `https://${host}:${port}${path}`,
    caBundle: Buffer.from(authority).toString("base64"),
    requests: (path) => asked.get(path) ?? [],
    callers: (path) => callers.get(path) ?? [],
    answer: (path, react) => void reactions.set(path, react),
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Returns a reaction that patches. */
export function patching(...operations: readonly object[]): Reaction {
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  return { allowed: true, patchType: "JSONPatch", patch };
}
