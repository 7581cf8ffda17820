/**
 * Measures what each optimization saves, with a Lambda function's share of a processor: with it and without it, in
 * turn.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { startLocalCluster } from "../../../infra/local/cluster.ts";
import { type FunctionProcess, startFunction } from "../../lambda/runtime-process.ts";
import { openShare, type ProcessorShare, shareOf } from "../../support/processor-share.ts";
import { measureCold, type Spread, spread } from "../cold-start.ts";
import { reviewBody } from "../fixture.ts";
import { prepareSubjects, type Subject } from "../lambda-subjects.ts";
import { startProcess } from "../process/start-process.ts";
import { bundleEager, bundleSingle } from "./builds.ts";
import type { PodStorePlan, PodStoreRun } from "./pod-store-process.ts";
import { type Reviews, type ReviewsPlan, wholeBody } from "./whole-body.ts";

export interface RoomsOptions {
  /** megabytes of the function, which set its share of a processor */
  readonly megabytes: number;
  readonly rounds: number;
  /** number of listed pods on which a tick decides */
  readonly pods: number;
}

/** One way of doing the work, with its measurements. */
export interface Way {
  readonly name: string;
  readonly figures: Readonly<Record<string, Spread>>;
}

export interface Room {
  readonly name: string;
  /** the figure that decides whether the optimization stays; absent: none does */
  readonly decidedBy?: string;
  readonly shipped: Way;
  readonly without: readonly Way[];
  /** a way that does only the unavoidable work */
  readonly floor?: Way;
}

const FIRST_ANSWER = "first answer, ms";
const TEXT_TO_TEXT = "text to text, µs";
const PEAK = "peak, MB";
const DECISIONS = 3;
const REVIEWS = 1_000;
const INVOCATIONS = 100;
const TIMEOUT_MS = 10_000;

/** @throws Error if this machine cannot share processors out */
export async function measureRooms(options: RoomsOptions): Promise<readonly Room[]> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-rooms-"));
  const limit = await openShare(shareOf(options.megabytes));
  try {
    const functions = await measureFunctions(folder, limit, options);
    const reviews = await measureReviews(limit, options);
    const podStore = await measurePodStore(folder, limit, options);
    return [...functions, reviews, podStore];
  } finally {
    await limit.remove();
    await rm(folder, { recursive: true, force: true });
  }
}

function roomOf(name: string, [shipped, ...without]: readonly Way[], decidedBy?: string): Room {
  if (shipped === undefined) throw new Error(`nothing was measured: ${name}`);
  return { name, shipped, without, ...(decidedBy === undefined ? {} : { decidedBy }) };
}

/** Measures only the pod store, with the whole machine: a share of it would take half an hour for 150,000 pods. */
export async function measureLargePodStore(pods: number, rounds: number): Promise<readonly Room[]> {
  const folder = await mkdtemp(join(tmpdir(), "sidecarset-rooms-"));
  try {
    const room = await measurePodStore(folder, undefined, { pods, rounds });
    return [{ ...room, decidedBy: PEAK }];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Measures cold starts of the builds in turn, then reviews in one warm process. */
async function measureFunctions(
  folder: string,
  share: ProcessorShare,
  { rounds }: RoomsOptions,
): Promise<readonly Room[]> {
  const local = await startLocalCluster();
  try {
    const [empty, shipped] = await prepareSubjects(folder, local, ["empty", "mutate-pod"]);
    if (!(empty && shipped)) throw new Error("nothing to start");
    const built = (name: string): Subject => ({ ...shipped, name, folder: join(folder, name), share });
    const ways = [
      { ...shipped, name: "as shipped", share },
      built("all modules eager"),
      built("one file, deferred"),
      built("one file, all eager"),
      { ...empty, name: "empty handler", share },
    ];
    await bundleEager("mutate-pod", join(folder, "all modules eager"));
    await bundleSingle("mutate-pod", join(folder, "one file, deferred"), true);
    await bundleSingle("mutate-pod", join(folder, "one file, all eager"), false);
    const cold = await measureCold(ways, rounds);
    const measured = [...cold].map(([name, { wall, cpu }]) => ({
      name,
      figures: { [FIRST_ANSWER]: spread(wall), "of computing, ms": spread(cpu) },
    }));
    const builds = roomOf("build of mutate-pod, cold start", measured.slice(0, -1), FIRST_ANSWER);
    const floor = measured.at(-1);
    const warm = await measureInvocations({ ...shipped, share }, rounds);
    return [floor ? { ...builds, floor } : builds, roomOf("managed fields, an invocation of mutate-pod", warm)];
  } finally {
    await local.close();
  }
}

async function measureInvocations(subject: Subject, rounds: number): Promise<readonly Way[]> {
  const started = await startFunction(subject);
  const bodies = [reviewBody(), wholeBody(reviewBody())] as const;
  const events = bodies.map((body) => ({ ...(subject.event as object), body }));
  const times = events.map((): number[] => []);
  try {
    // The first rounds compile, and do not count.
    for (let round = -2; round < rounds; round++)
      for (const [at, event] of events.entries()) {
        const taken = await invocations(started, event);
        if (round >= 0) times[at]?.push(taken);
      }
  } finally {
    await started.kill();
  }
  const names = ["cut", "parsed"];
  return times.map((of, at) => ({ name: names[at] ?? "", figures: { "computing, µs": spread(of) } }));
}

/** Returns the microseconds of computing for each call. */
async function invocations({ invoke, cpuMs }: FunctionProcess, event: object): Promise<number> {
  const before = await cpuMs();
  for (let call = 0; call < INVOCATIONS; call++) {
    const answer = JSON.stringify(await invoke(event, TIMEOUT_MS));
    if (!answer.includes("JSONPatch")) throw new Error(`mutate-pod answered ${answer}`);
  }
  return (((await cpuMs()) - before) * 1000) / INVOCATIONS;
}

async function measureReviews(share: ProcessorShare, { rounds }: RoomsOptions): Promise<Room> {
  const child = startProcess(new URL("review-process.ts", import.meta.url), share);
  try {
    const plan: ReviewsPlan = { rounds, calls: REVIEWS };
    const { cut, parsed } = await child.call<Reviews>("time", plan);
    const figuresOf = ({ read, answered }: Reviews["cut"]) => ({
      "read, µs": spread(read),
      [TEXT_TO_TEXT]: spread(answered),
    });
    const ways = [
      { name: "cut", figures: figuresOf(cut) },
      { name: "parsed", figures: figuresOf(parsed) },
    ];
    return roomOf(`managed fields, a review of ${Buffer.byteLength(reviewBody())} bytes`, ways, TEXT_TO_TEXT);
  } finally {
    await child.stop();
  }
}

async function measurePodStore(
  folder: string,
  share: ProcessorShare | undefined,
  { pods, rounds }: { readonly pods: number; readonly rounds: number },
): Promise<Room> {
  const ways = [
    { name: "columns", file: await bundlePodStore(folder, "columns", []) },
    { name: "objects, shared parts", file: await bundlePodStore(folder, "shared", [objectsOf(true)]) },
    { name: "objects", file: await bundlePodStore(folder, "objects", [objectsOf(false)]) },
  ];
  const runs = ways.map((): PodStoreRun[] => []);
  const plan: PodStorePlan = { pods, decisions: DECISIONS };
  for (let round = 0; round < rounds; round++)
    for (const [at, { file }] of ways.entries()) {
      const child = startProcess(file, share);
      runs[at]?.push(await child.call<PodStoreRun>("run", plan));
      await child.stop();
    }
  const figuresOf = (of: readonly PodStoreRun[] = []) => ({
    [PEAK]: spread(of.map(({ peakMegabytes }) => peakMegabytes)),
    "computing, ms": spread(of.map(({ cpuMs }) => cpuMs)),
  });
  const measured = ways.map(({ name }, at) => ({ name, figures: figuresOf(runs[at]) }));
  return roomOf(`pod store, ${pods} pods listed and decided on ${DECISIONS} times`, measured);
}

async function bundlePodStore(folder: string, name: string, plugins: readonly Plugin[]): Promise<URL> {
  const outfile = join(folder, `${name}.mjs`);
  await build({
    entryPoints: ["test/bench/rooms/pod-store-process.ts"],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    plugins: [...plugins],
  });
  return pathToFileURL(outfile);
}

function objectsOf(sharesParts: boolean): Plugin {
  return {
    name: "objects",
    setup: ({ onResolve, initialOptions }) => {
      initialOptions.define = { SHARES_PARTS: String(sharesParts) };
      onResolve({ filter: /\/pod-table\.ts$/ }, ({ resolveDir }) => ({
        path: join(resolveDir, "../../../test/bench/rooms/objects-table.ts"),
      }));
    },
  };
}
