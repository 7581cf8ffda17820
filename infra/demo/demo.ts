/**
 * `npm run demo`: injection and a rollout on an embedded cluster, printed line by line and summed up from the API's
 * record.
 */

import { once } from "node:events";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { counted } from "../../shared/go/counted.ts";
import {
  applyAll,
  changeImages,
  changeLevel,
  followTicks,
  look,
  nextImage,
  promote,
  type Scene,
  showUntil,
  untilPodsStand,
  withLevel,
} from "./rollout.ts";
import { type Manifest, mayBeUnavailable, readManifests, type Stage, setStage } from "./stage.ts";
import { type ProgressView, progressView, replay } from "./summary.ts";

export interface DemoOptions {
  /** the summary as one JSON object on stdout, everything else on stderr */
  readonly json: boolean;
  /** stays until SIGINT or SIGTERM, for kubectl */
  readonly keep: boolean;
  /** manifest files; none: the sample */
  readonly files: readonly string[];
}

interface DemoSummary {
  readonly pods: number;
  readonly injected: number;
  readonly updated: number;
  readonly updatedReady: number;
  readonly ticks: number;
  /** rounds of the ticks that wrote to pods */
  readonly batches: number;
  readonly maxUnavailable: number;
  readonly maxUnavailableObserved: number;
  readonly appContainerRestarts: number;
  /** calls by the product's functions, since the start */
  readonly apiCalls: Readonly<Record<string, number>>;
  readonly seconds: number;
}

/** After this time a rollout counts as stuck, such as one with an image that cannot be pulled. */
const ROLLOUT_TIMEOUT_MS = 30_000;
const FUNCTIONS_USER_AGENT = "sidecarset-serverless";
const SAMPLE = ["log-agent.yaml", "web.yaml"].map((name) => fileURLToPath(new URL(name, import.meta.url)));

async function inject(stage: Stage, view: ProgressView, manifests: readonly Manifest[]): Promise<Scene> {
  await applyAll(stage, manifests);
  const scene = await untilPodsStand(stage);
  const { pods, injected, ready } = scene.counts;
  view.note(
    `Injected ${injected} of ${counted(pods, "pod")} as ${pods === 1 ? "it was" : "they were"} created, ${ready} ready. One of them:`,
  );
  const example = scene.pods.find(({ metadata }) => metadata?.annotations?.["kruise.io/sidecarset-injected-list"]);
  for (const { name, image } of example?.spec.containers ?? []) view.note(`  ${name.padEnd(12)}${image}`);
  return scene;
}

async function rollOut(stage: Stage, view: ProgressView, scene: Scene): Promise<void> {
  const deadline = performance.now() + ROLLOUT_TIMEOUT_MS;
  for (const change of await changeImages(stage, scene)) view.note(`\n${change}`);
  let isDone = await followTicks(stage, view, deadline);
  view.done();
  for (const step of await promote(stage, await look(stage))) {
    view.note(`\nThe partition keeps the others. Promote ${step}`);
    isDone = await followTicks(stage, view, deadline);
    view.done();
  }
  if (!isDone)
    view.note("\nThe rollout is not over, and the demo does not wait longer for it. Here is how far it came.");
}

async function summarise(
  stage: Stage,
  since: { sequence: number; tick: number; startedMs: number },
): Promise<DemoSummary> {
  const { sidecarSets, counts } = await look(stage);
  const { pods, injected, updated, updatedReady } = counts;
  const reports = stage.reports.slice(since.tick);
  const record = replay(stage.local.history(), since.sequence, sidecarSets);
  return {
    pods,
    injected,
    updated,
    updatedReady,
    ticks: reports.length,
    batches: reports.flatMap(({ sidecarSets: sets }) => sets).reduce((sum, { tally }) => sum + tally.batches, 0),
    ...record,
    apiCalls: stage.local.apiCalls(FUNCTIONS_USER_AGENT),
    seconds: Math.round((performance.now() - since.startedMs) / 100) / 10,
  };
}

function tell(view: ProgressView, summary: DemoSummary): void {
  const { apiCalls, ...rest } = summary;
  view.note(`
Summary, from the API server's own record
  pods                     ${rest.pods}
  injected                 ${rest.injected}
  updated                  ${rest.updated}, ${rest.updatedReady} of them ready
  batches                  ${rest.batches}, in ${counted(rest.ticks, "tick")}
  unavailable at once      ${rest.maxUnavailableObserved} at most, ${rest.maxUnavailable} allowed
  app container restarts   ${rest.appContainerRestarts}
  time                     ${rest.seconds} s
  API calls`);
  const calls = Object.entries(apiCalls).sort();
  const width = Math.max(...calls.map(([call]) => call.length)) + 2;
  for (const [call, count] of calls) view.note(`    ${call.padEnd(width)}${count}`);
}

/** The last lines on the screen. The next rollout works, also after an image that could not be pulled. */
export function bannersOf(stage: Pick<Stage, "kubeconfig" | "page" | "isPullable">) {
  let pulled = "";
  return ({ sidecarSets: [first] }: Pick<Scene, "sidecarSets">) => {
    const image = first?.spec.containers?.[0]?.image ?? "";
    if (stage.isPullable(image)) pulled = image;
    return bannerOf(stage, first?.metadata?.name ?? "", nextImage(pulled));
  };
}

/** The command line that starts this file again: npm in a checkout, or else its own name. */
export function programName(file = ""): string {
  const called = basename(file);
  if (called.startsWith("kubectl-")) return "kubectl sidecarset";
  return called.startsWith("sidecarset") ? "sidecarset" : "npm run sidecarset --";
}

function bannerOf(stage: Pick<Stage, "kubeconfig" | "page">, name: string, image: string): string {
  const release = (value: string) => {
    const patch = JSON.stringify([{ op: "replace", path: "/spec/containers/0/image", value }]);
    return `kubectl patch sidecarset ${name} --type=json -p '${patch}'`;
  };
  const program = programName(process.argv[1]);
  return `
The cluster stays until Ctrl-C. In another terminal:
  export KUBECONFIG=${stage.kubeconfig}
  kubectl get pods
The next rollout:
  ${release(image)}
One that fails, because nobody can pull that tag; then why, and back:
  ${release(`${image.replace(/:[^:/]*$/, "")}:no-such-tag`)}
  ${program} status ${name}
  ${program} undo ${name}
In a browser, which warns once of the demo's own certificate:
  ${stage.page}
`;
}

async function stay(stage: Stage, view: ProgressView): Promise<void> {
  await mayBeUnavailable(stage);
  const stop = new AbortController();
  const signalled = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]).then(() => stop.abort());
  await Promise.all([signalled, showUntil(stage, view, { banner: bannersOf(stage), signal: stop.signal })]);
}

function imagesIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) =>
    key === "image" && typeof one === "string" ? [one] : imagesIn(one),
  );
}

/** @throws CliError for what the caller can fix, KubeError when the cluster refuses a manifest */
export async function runDemo({ json, keep, files }: DemoOptions): Promise<void> {
  const startedMs = performance.now();
  const view = progressView(json ? process.stderr : process.stdout);
  const isSample = files.length === 0;
  const read = await readManifests(isSample ? SAMPLE : files);
  const manifests = isSample ? read.map(withLevel) : read;
  const stage = await setStage(manifests.flatMap(({ object }) => imagesIn(object)));
  try {
    view.note(
      `An embedded cluster at ${stage.local.url}\nOur webhooks are registered there, and a tick runs every second.`,
    );
    const scene = await inject(stage, view, manifests);
    const since = { sequence: stage.local.history().at(-1)?.sequence ?? 0, tick: stage.reports.length, startedMs };
    await rollOut(stage, view, scene);
    const summary = await summarise(stage, since);
    tell(view, summary);
    const deadline = performance.now() + ROLLOUT_TIMEOUT_MS;
    const quiet = { ...view, show: () => undefined };
    if (isSample) view.note(`\n${await changeLevel(stage, () => followTicks(stage, quiet, deadline))}`);
    if (json) process.stdout.write(`${JSON.stringify(summary)}\n`);
    if (keep) await stay(stage, view);
  } finally {
    await stage.close();
  }
}
