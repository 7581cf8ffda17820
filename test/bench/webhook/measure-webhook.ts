/**
 * Measures the cost of the pod webhook over HTTPS. A server that does nothing and a minimal injector are the
 * comparison, in turn.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCertificates, kubeconfigText } from "../../../infra/local/http/https-server.ts";
import { registeredPath } from "../../../shared/webhook/server/path-secret.ts";
import { reviewBody } from "../fixture.ts";
import { median } from "../measure.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";
import { type BenchProcess, startProcess } from "../process/start-process.ts";
import type { Load, LoadPlan } from "./load-process.ts";
import type { Reads, ServerPlan } from "./server-process.ts";

export interface WebhookOptions {
  readonly rounds: number;
  /** milliseconds of one load */
  readonly milliseconds: number;
  readonly callers: readonly number[];
  readonly sidecarSets: readonly number[];
  /** the numbers of SidecarSets at which the other ways to read SidecarSets are measured too */
  readonly keptToo: readonly number[];
}

/** Medians over the rounds. */
export interface WebhookRow {
  /** no-op, minimal, ours; ours with lists; ours with a list that is kept for a second; an empty GET */
  readonly subject: string;
  /** number of SidecarSets, of which one matches; only for the product */
  readonly sidecarSets?: number;
  readonly callers: number;
  readonly requests: number;
  /** median milliseconds of a request */
  readonly p50: number;
  readonly p99: number;
  readonly requestsPerSecond: number;
  /** milliseconds of computing for one request */
  readonly cpu: number;
  /** bytes of the JSON patch */
  readonly patchBytes: number;
  /**
   * ratio to the product's webhook that keeps a list for a second, with as many SidecarSets, in the same round;
   * medians. `emptyGets`: the difference of p50, in empty GETs of the same round
   */
  readonly ofKept?: { readonly requestsPerSecond: number; readonly emptyGets: number };
  /** ratio to the minimal injector in the same round; medians */
  readonly ofMinimal: { readonly requestsPerSecond: number; readonly p50: number; readonly cpu: number };
}

export interface WebhookFigures {
  readonly rounds: number;
  readonly bodyBytes: number;
  readonly rows: readonly WebhookRow[];
}

interface Subject {
  readonly name: string;
  readonly sidecarSets?: number;
  readonly process: BenchProcess;
  readonly port: number;
  readonly path: string;
  /** the authority's certificate as PEM; an API server gets requests without a body */
  readonly authority?: string;
}

interface Sample {
  readonly requests: number;
  readonly p50: number;
  readonly p99: number;
  readonly requestsPerSecond: number;
  readonly cpu: number;
  readonly patchBytes: number;
}

export const SECRET = "benchmark-path-secret-of-exactly-43-letters";
/** Milliseconds until everything is compiled. */
export const WARM_MS = 4_000;

interface Stage {
  readonly folder: string;
  readonly authority: string;
  readonly tls: Pick<ServerPlan, "certificate" | "key" | "pathSecrets">;
  readonly processes: BenchProcess[];
}

export async function openStage(): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-bench-"));
  const { authority, certificate, key } = await createCertificates();
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const tls = {
    certificate: await write("tls.crt", certificate),
    key: await write("tls.key", key),
    pathSecrets: await write("path-secrets", `${SECRET}\n`),
  };
  return { folder, authority, tls, processes: [] };
}

export function begin(stage: Stage, file: string): BenchProcess {
  const process = startProcess(new URL(file, import.meta.url));
  stage.processes.push(process);
  return process;
}

async function floor(stage: Stage, name: "no-op" | "minimal"): Promise<Subject> {
  const process = begin(stage, "server-process.ts");
  const port = await process.call<number>("start", { kind: name, kubeconfig: "", ...stage.tls } satisfies ServerPlan);
  return { name, process, port, path: "/mutate-pod?timeout=10s" };
}

/** Measures the product with each way of reading SidecarSets, and an empty GET to the API server. */
async function ours(stage: Stage, sidecarSets: number, isKeptToo: boolean): Promise<readonly Subject[]> {
  const apiProcess = begin(stage, "../process/made-up-api.ts");
  const api = await apiProcess.call<MadeUpApi>("start", { sidecarSets, pods: 0 });
  const kubeconfig = join(stage.folder, `kubeconfig-${sidecarSets}`);
  const access = { url: api.server, caCertificate: api.certificateAuthority, token: "benchmark" };
  await writeFile(kubeconfig, kubeconfigText(access));
  const subject = async (reads: Reads): Promise<Subject> => {
    const process = begin(stage, "server-process.ts");
    const plan = { kind: "ours", reads, kubeconfig, ...stage.tls } as const satisfies ServerPlan;
    const port = await process.call<number>("start", plan);
    return {
      name: NAMES[reads],
      sidecarSets,
      process,
      port,
      path: `${registeredPath(SECRET, "/mutate-pod")}?timeout=10s`,
    };
  };
  if (!isKeptToo) return [await subject("announced")];
  const get: Subject = {
    name: EMPTY_GET,
    sidecarSets,
    process: apiProcess,
    port: Number(new URL(api.server).port),
    path: "/api/v1/namespaces/shop",
    authority: api.certificateAuthority,
  };
  return [await subject("announced"), await subject("listed"), await subject("kept"), get];
}

const EMPTY_GET = "empty GET";
const NAMES: Readonly<Record<Reads, string>> = {
  announced: "ours",
  listed: "ours, listed",
  kept: "ours, kept 1 s",
};

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function patchBytesOf(answer: string, { name, authority }: Subject): number {
  if (authority !== undefined) return 0;
  const { response } = JSON.parse(answer) as { response: { allowed: boolean; patch?: string } };
  const patch = Buffer.from(response.patch ?? "", "base64").toString("utf8");
  if (!response.allowed || (name !== "no-op") !== patch.includes("fluent-bit")) throw new Error(`answered ${answer}`);
  return patch.length;
}

async function sample(load: BenchProcess, subject: Subject, plan: Omit<LoadPlan, "port" | "path">): Promise<Sample> {
  const before = await subject.process.usage();
  const { port, path, authority } = subject;
  const own = authority === undefined ? {} : { authority, body: "" };
  const result = await load.call<Load>("run", { ...plan, port, path, ...own } satisfies LoadPlan);
  const after = await subject.process.usage();
  return {
    requests: result.requests,
    p50: quantile(result.milliseconds, 0.5),
    p99: quantile(result.milliseconds, 0.99),
    requestsPerSecond: result.requests / result.seconds,
    cpu: (after.cpu - before.cpu) / 1000 / (result.requests + plan.callers),
    patchBytes: patchBytesOf(result.lastAnswer, subject),
  };
}

type Samples = Map<Subject, Sample[]>;

function rowOf(subject: Subject, callers: number, samples: Samples): WebhookRow {
  const own = samples.get(subject) ?? [];
  const minimal = named(samples, "minimal");
  const middle = (pick: (sample: Sample) => number) => median(own.map(pick));
  const against = (pick: (sample: Sample) => number) =>
    median(own.map((sample, round) => pick(sample) / pick(minimal[round] ?? sample)));
  return {
    subject: subject.name,
    ...(subject.sidecarSets === undefined ? {} : { sidecarSets: subject.sidecarSets }),
    callers,
    requests: own.reduce((sum, { requests }) => sum + requests, 0),
    p50: middle(({ p50 }) => p50),
    p99: middle(({ p99 }) => p99),
    requestsPerSecond: middle(({ requestsPerSecond }) => requestsPerSecond),
    cpu: middle(({ cpu }) => cpu),
    patchBytes: own[0]?.patchBytes ?? Number.NaN,
    ...ofKept(subject, samples),
    ofMinimal: {
      requestsPerSecond: against(({ requestsPerSecond }) => requestsPerSecond),
      p50: against(({ p50 }) => p50),
      cpu: against(({ cpu }) => cpu),
    },
  };
}

function named(samples: Samples, name: string, sidecarSets?: number): readonly Sample[] {
  return [...samples].find(([one]) => one.name === name && one.sidecarSets === sidecarSets)?.[1] ?? [];
}

function ofKept(subject: Subject, samples: Samples): Pick<WebhookRow, "ofKept"> {
  const own = samples.get(subject) ?? [];
  const kept = named(samples, NAMES.kept, subject.sidecarSets);
  const gets = named(samples, EMPTY_GET, subject.sidecarSets);
  if (kept.length === 0 || subject.name === EMPTY_GET) return {};
  const pairs = own.flatMap((one, round) => {
    const [before, get] = [kept[round], gets[round]];
    return before && get ? [{ one, before, get }] : [];
  });
  return {
    ofKept: {
      requestsPerSecond: median(pairs.map(({ one, before }) => one.requestsPerSecond / before.requestsPerSecond)),
      emptyGets: median(pairs.map(({ one, before, get }) => (one.p50 - before.p50) / get.p50)),
    },
  };
}

interface Loading {
  readonly load: BenchProcess;
  readonly subjects: readonly Subject[];
  readonly plan: Omit<LoadPlan, "port" | "path">;
}

/** The order rotates, so that no server always follows the same one. */
async function takeSamples({ load, subjects, plan }: Loading, rounds: number): Promise<Samples> {
  const samples: Samples = new Map(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < rounds; round++) {
    for (const subject of round % 2 === 0 ? subjects : subjects.toReversed())
      samples.get(subject)?.push(await sample(load, subject, plan));
  }
  return samples;
}

async function measureRows(stage: Stage, subjects: readonly Subject[], options: WebhookOptions) {
  const { rounds, milliseconds } = options;
  const load = begin(stage, "load-process.ts");
  const plan = { body: reviewBody(), authority: stage.authority, callers: 16, milliseconds: WARM_MS };
  await takeSamples({ load, subjects, plan }, 1);
  const rows: WebhookRow[] = [];
  for (const callers of options.callers) {
    const samples = await takeSamples({ load, subjects, plan: { ...plan, callers, milliseconds } }, rounds);
    rows.push(...subjects.map((subject) => rowOf(subject, callers, samples)));
  }
  return rows;
}

/** Figures of the pod webhook of `serve` with 16 callers; medians over the rounds. */
export interface PassesFigures {
  readonly pods: number;
  readonly rows: readonly (Pick<WebhookRow, "p50" | "p99" | "requestsPerSecond"> & { readonly passes: PassesRow })[];
  /** p99 divided by the p99 without passes in the same round; medians */
  readonly p99OfNone: { readonly beside: number; readonly behind: number };
}
type PassesRow = (typeof WAYS)[number];

/**
 * Measures reviews while a pass over these pods begins each second: no passes, passes in the webhooks' thread, passes
 * in their own thread.
 */
export async function measurePasses({ pods, rounds }: { readonly pods: number; readonly rounds: number }) {
  const stage = await openStage();
  try {
    const api = await begin(stage, "../process/made-up-api.ts").call<MadeUpApi>("start", { sidecarSets: 10, pods });
    const kubeconfig = join(stage.folder, "kubeconfig-passes");
    const access = { url: api.server, caCertificate: api.certificateAuthority, token: "benchmark" };
    await writeFile(kubeconfig, kubeconfigText(access));
    const samples: Record<PassesRow, Sample[]> = { none: [], beside: [], behind: [] };
    for (let round = 0; round < rounds; round++)
      for (const passes of round % 2 === 0 ? WAYS : WAYS.toReversed())
        samples[passes].push(await samplePasses(stage, kubeconfig, passes));
    return passesFigures(pods, samples);
  } finally {
    for (const process of stage.processes) await process.stop();
    await rm(stage.folder, { recursive: true, force: true });
  }
}

const WAYS = ["none", "beside", "behind"] as const;

/** The server is stopped after its measurement, because its passes would slow down the others. */
async function samplePasses(stage: Stage, kubeconfig: string, passes: PassesRow): Promise<Sample> {
  const process = begin(stage, "server-process.ts");
  const load = begin(stage, "load-process.ts");
  const server: ServerPlan = { kind: "ours", kubeconfig, ...stage.tls, ...(passes === "none" ? {} : { passes }) };
  const port = await process.call<number>("start", server);
  const path = `${registeredPath(SECRET, "/mutate-pod")}?timeout=10s`;
  const subject: Subject = { name: passes, process, port, path };
  const plan = { body: reviewBody(), authority: stage.authority, callers: 16, pauseMs: PAUSE_MS };
  await sample(load, subject, { ...plan, milliseconds: WARM_MS });
  const taken = await sample(load, subject, { ...plan, milliseconds: PASSES_MS });
  await Promise.all([process.stop(), load.stop()]);
  return taken;
}

/** Milliseconds between reviews: an API server that creates pods sends about 150 a second. */
const PAUSE_MS = 100;
/** Milliseconds for some passes. */
const PASSES_MS = 8_000;

function passesFigures(pods: number, samples: Readonly<Record<PassesRow, readonly Sample[]>>): PassesFigures {
  const against = (way: readonly Sample[]) =>
    median(way.map(({ p99 }, round) => p99 / (samples.none[round]?.p99 ?? Number.NaN)));
  const rows = WAYS.map((passes) => {
    const middle = (pick: (one: Sample) => number) => median(samples[passes].map(pick));
    const [p50, p99] = [middle((one) => one.p50), middle((one) => one.p99)];
    return { passes, p50, p99, requestsPerSecond: middle((one) => one.requestsPerSecond) };
  });
  return { pods, rows, p99OfNone: { beside: against(samples.beside), behind: against(samples.behind) } };
}

/** Starts separate processes for the API server, each webhook and the callers. */
export async function measureWebhook(options: WebhookOptions): Promise<WebhookFigures> {
  const stage = await openStage();
  try {
    const subjects = [await floor(stage, "no-op"), await floor(stage, "minimal")];
    for (const count of options.sidecarSets)
      subjects.push(...(await ours(stage, count, options.keptToo.includes(count))));
    const rows = await measureRows(stage, subjects, options);
    return { rounds: options.rounds, bodyBytes: reviewBody().length, rows };
  } finally {
    for (const process of stage.processes) await process.stop();
    await rm(stage.folder, { recursive: true, force: true });
  }
}
