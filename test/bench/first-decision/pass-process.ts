/** Reads a list of SidecarSets in its own process: only page by page, or as a pass does before its first decision. */

import { runPass } from "../../../shared/controller/pass.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../../shared/core/rollout/rollout-settings.ts";
import { connectCluster } from "../../../shared/kube/client.ts";
import { type Cluster, SIDECARSETS } from "../../../shared/kube/port.ts";
import { answerCalls } from "../process/answer-calls.ts";
import type { MadeUpApi } from "../process/made-up-api.ts";

export interface FirstPlan {
  readonly kind: "bare" | "ours";
  readonly api: MadeUpApi;
}

export interface First {
  /** seconds until the last page was read (bare list), or until the first decision would be carried out */
  readonly seconds: number;
  /** seconds of computing until the same moment */
  readonly cpuSeconds: number;
  /** number of LISTs of SidecarSets until the same moment */
  readonly pages: number;
}

const PAGE_SIZE = 500;
/** Milliseconds until the pass ends; it would continue with other SidecarSets. */
const DEADLINE_MS = 120_000;

async function readPages(cluster: Cluster): Promise<void> {
  for (let token: string | undefined; ; ) {
    const page = await cluster.list(SIDECARSETS, {
      limit: PAGE_SIZE,
      ...(token === undefined ? {} : { continue: token }),
    });
    token = page.metadata.continue || undefined;
    if (token === undefined) return;
  }
}

async function run({ kind, api }: FirstPlan): Promise<First> {
  const over = new AbortController();
  const begin = performance.now();
  const cpuBegin = process.cpuUsage();
  let first: First | undefined;
  let pages = 0;
  const take = () => {
    const { user, system } = process.cpuUsage(cpuBegin);
    first ??= { seconds: (performance.now() - begin) / 1000, cpuSeconds: (user + system) / 1e6, pages };
    over.abort();
  };
  const cluster = connectCluster({
    ...api,
    onRequest: ({ verb, resource }) => {
      if (verb === "LIST" && resource === "sidecarsets") pages++;
      // The first write of a decision creates the revision.
      if (verb === "CREATE" && resource === "controllerrevisions") take();
    },
  });
  if (kind === "bare") {
    await readPages(cluster);
    take();
  } else
    await runPass(cluster, {
      kruiseNamespace: "kruise-system",
      settings: DEFAULT_ROLLOUT_SETTINGS,
      follow: true,
      deadlineMs: DEADLINE_MS,
      signal: over.signal,
    });
  if (first === undefined) throw new Error("the pass decided nothing");
  return first;
}

answerCalls({ run });
