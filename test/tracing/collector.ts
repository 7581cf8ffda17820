/** A fake OpenTelemetry collector that receives OTLP/HTTP on loopback. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { vi } from "vitest";
import { PATIENT } from "../support/patient.ts";

type Value = string | number | boolean | readonly string[];
type Values = Readonly<Record<string, Value>>;

export interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** id of the parent; absent: a root span */
  readonly parentSpanId: string | undefined;
  readonly name: string;
  /** the span's kind, from OTLP's numbers */
  readonly kind: "internal" | "server" | "client";
  readonly beganAtMs: number;
  readonly endedAtMs: number;
  readonly values: Values;
  readonly problems: readonly string[];
  /** the error; absent: none */
  readonly failure: string | undefined;
  /** attributes of the process */
  readonly resource: Values;
}

export interface Collector {
  readonly url: string;
  readonly spans: () => readonly SentSpan[];
  /** returns the received texts */
  readonly text: () => string;
  readonly requests: () => number;
  /** resolves with all spans when `areEnough` returns true */
  readonly until: (areEnough: (spans: readonly SentSpan[]) => boolean) => Promise<readonly SentSpan[]>;
  readonly close: () => Promise<void>;
}

interface KeyValue {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: number | string;
    readonly boolValue?: boolean;
    readonly doubleValue?: number;
    readonly arrayValue?: { readonly values: readonly { readonly stringValue: string }[] };
  };
}
interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly events: readonly { readonly name: string; readonly attributes: readonly KeyValue[] }[];
  readonly status: { readonly code: number; readonly message?: string };
}
interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

const KINDS: Readonly<Record<number, SentSpan["kind"]>> = { 1: "internal", 2: "server", 3: "client" };
const ERROR = 2;

/** Starts a collector. One that "hangs" accepts requests and never answers. */
export async function startCollector(mode: "answers" | "hangs" = "answers"): Promise<Collector> {
  const texts: string[] = [];
  let requests = 0;
  const server = createServer(async (request, response) => {
    requests++;
    const body = await read(request);
    if (mode === "hangs") return;
    const isOtlp = request.method === "POST" && request.url === "/v1/traces";
    if (isOtlp && request.headers["content-type"] === "application/json") texts.push(body);
    response.writeHead(isOtlp ? 200 : 404, { "content-type": "application/json" }).end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const spans = () => texts.flatMap((text) => spansIn(JSON.parse(text) as Export));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    text: () => texts.join("\n"),
    requests: () => requests,
    until: async (areEnough) => {
      await vi.waitUntil(() => areEnough(spans()), PATIENT);
      return spans();
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function read(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const all = Buffer.concat(parts);
  return (request.headers["content-encoding"] === "gzip" ? gunzipSync(all) : all).toString();
}

function spansIn({ resourceSpans }: Export): readonly SentSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => spanOf(span, valuesOf(resource.attributes)))),
  );
}

function spanOf(span: OtlpSpan, resource: Values): SentSpan {
  const { traceId, spanId, parentSpanId, name, kind, attributes, events, status } = span;
  const known = KINDS[kind];
  if (known === undefined || !/^[\da-f]{32}$/.test(traceId) || !/^[\da-f]{16}$/.test(spanId))
    throw new Error(`no span: ${JSON.stringify(span)}`);
  return {
    traceId,
    spanId,
    parentSpanId: parentSpanId || undefined,
    name,
    kind: known,
    beganAtMs: Number(BigInt(span.startTimeUnixNano) / 1_000n) / 1_000,
    endedAtMs: Number(BigInt(span.endTimeUnixNano) / 1_000n) / 1_000,
    values: valuesOf(attributes),
    problems: events.map((event) => String(valuesOf(event.attributes)["sidecarset.problem"])),
    failure: status.code === ERROR ? (status.message ?? "") : undefined,
    resource,
  };
}

function valuesOf(attributes: readonly KeyValue[]): Values {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, toValue(value)]));
}

function toValue({ stringValue, intValue, boolValue, doubleValue, arrayValue }: KeyValue["value"]): Value {
  if (arrayValue !== undefined) return arrayValue.values.map((one) => one.stringValue);
  return stringValue ?? boolValue ?? Number(intValue ?? doubleValue);
}

export function childrenOf(parent: SentSpan, spans: readonly SentSpan[]): readonly SentSpan[] {
  return spans.filter(({ traceId, parentSpanId }) => traceId === parent.traceId && parentSpanId === parent.spanId);
}
