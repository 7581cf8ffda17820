/**
 * Tests the logs that docs/alarms.md refers to. The deployed bundles have outages, each bundle in its own process as
 * Lambda runs it. The log must contain the words by which the page distinguishes the causes.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FUNCTIONS } from "../../infra/build.ts";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { Front } from "../../infra/local/http/http-message.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf } from "../../shared/webhook/server/path-secret.ts";
import { prepareSubjects, type Subject } from "../bench/lambda-subjects.ts";
import { startFunction } from "../lambda/runtime-process.ts";

const TIMEOUT_MS = 20_000;
/** Longer than the pod webhook waits for a read when it already has a list. */
const SLOW_MS = 3_000;

let folder: string;
let cluster: LocalCluster;
let subjects: readonly Subject[];
/** The answer that replaces the API server's; undefined: its own answer. */
let trouble: ((...asked: Parameters<Front>) => ReturnType<Front> | undefined) | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-runbook-"));
  cluster = await startLocalCluster({ front: (request, ask) => trouble?.(request, ask) ?? ask(request) });
  subjects = await prepareSubjects(folder, cluster, ["mutate-pod", "rollout"]);
});
afterAll(async () => {
  await cluster?.close();
  await rm(folder, { recursive: true, force: true });
});

const refusing = (code: number, reason: string) => async () => ({
  code,
  body: { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message: reason },
});
const otherSecret = () => ({
  PATH_SECRETS: undefined,
  PATH_DIGESTS: printPathDigests(pathDigestsOf(["o".repeat(43)], ["/mutate-pod", "/readyz"])),
});

/** The words of kube-apiserver. */
const UNREACHED = `Internal error occurred: failed calling webhook "vsidecarset.kb.io": failed to call webhook: Post "https://x.example.com/s/${"s".repeat(43)}/announce-apps-kruise-io-sidecarset?timeout=5s": dial tcp: i/o timeout`;

interface Outage {
  readonly outage: string;
  readonly alarm: string;
  /** words of the alarm's section that name this cause */
  readonly told: readonly string[];
  readonly name: "mutate-pod" | "rollout";
  /** words that the log must contain */
  readonly logged: RegExp;
  readonly variables?: Readonly<Record<string, string | undefined>>;
  readonly event?: object;
  /** fault that comes after a first call, or at the start if the function starts in it */
  readonly trouble?: typeof trouble;
  readonly isCold?: true;
}

const OUTAGES: readonly Outage[] = [
  {
    outage: "a registration with another secret",
    alarm: "CallersRefused",
    told: ["`refusedPath`", "`mpod.kb.io` has `Fail`"],
    name: "mutate-pod",
    logged: /"refusedPath":"\/mutate-pod"/,
    variables: otherSecret(),
  },
  {
    outage: "an API server that answers after three seconds",
    alarm: "StaleView",
    told: ["`LOG mutate-pod` says why it could not be read"],
    name: "mutate-pod",
    logged: /cannot be read now: the API server has not answered within 1 s/,
    trouble: async (request, ask) => {
      await sleep(SLOW_MS);
      return ask(request);
    },
  },
  {
    outage: "an expired token",
    alarm: "PodErrors",
    told: ["`LOG mutate-pod` names failed reads", "[expired token](#tokenends)"],
    name: "mutate-pod",
    logged: /"level":"error".*the token or certificate is expired or not valid there, renew it/,
    trouble: refusing(401, "Unauthorized"),
    isCold: true,
  },
  {
    outage: "a missing right to read pods",
    alarm: "PassProblems",
    told: ["`PassRefused` (a right is missing"],
    name: "rollout",
    logged: /"cause":"PassRefused"/,
    trouble: (request) => (request.path.includes("/pods") ? refusing(403, "Forbidden")() : undefined),
  },
  {
    outage: "API servers that cannot call the functions",
    alarm: "SidecarSetErrors",
    told: ["`LOG rollout` has `unreached`", "If pods cannot be created either"],
    name: "rollout",
    // The API server quotes the registered address, which has the callers' secret.
    logged: /"unreached":"(?!.*ssss).*\[not shown\].*i\/o timeout/,
    trouble: (request) => (request.path.endsWith("/status") ? refusing(500, UNREACHED)() : undefined),
  },
  {
    outage: "a message of the queue whose pass fails",
    alarm: "FailedWorkWaiting",
    told: ["`LOG rollout` says why"],
    name: "rollout",
    logged: /"level":"(?:error|ERROR)".*ServiceUnavailable/,
    event: { Records: [{ body: JSON.stringify({ kind: "tick", sidecarSet: "log-agent", minute: 1 }) }] },
    trouble: refusing(503, "ServiceUnavailable"),
    isCold: true,
  },
];

/** Returns lines of level warn and above, which the log has at every setting. */
async function linesOf({ name, variables, event, isCold, trouble: after }: Outage): Promise<readonly string[]> {
  const subject = subjects.find((one) => one.name === name);
  if (subject === undefined) throw new Error(`no function ${name}`);
  const all = Object.entries({ ...subject.env, LOG_LEVEL: "warn", ...variables });
  const env = Object.fromEntries(all.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
  const { invoke, logLines, kill } = await startFunction({ folder: subject.folder, env });
  try {
    if (isCold === undefined) await invoke(subject.event, TIMEOUT_MS);
    trouble = after;
    await invoke(event ?? subject.event, TIMEOUT_MS).catch((error: Error) => error);
    return logLines().map((line) => JSON.stringify(line));
  } finally {
    trouble = undefined;
    await kill();
  }
}

async function sectionOf(alarm: string): Promise<string> {
  const [, section = ""] = new RegExp(`\n### ${alarm}\n\n([^\n]+)\n`).exec(await page()) ?? [];
  return section;
}

const page = () => readFile("docs/alarms.md", "utf8");

test.each(OUTAGES)("$outage: the log has what the section $alarm of the runbook looks for", async (outage) => {
  const section = await sectionOf(outage.alarm);
  for (const words of outage.told) expect(section).toContain(words);
  expect(await linesOf(outage)).toContainEqual(expect.stringMatching(outage.logged));
});

test("the runbook asks for logs of functions that exist", async () => {
  const asked = [...(await page()).matchAll(/`LOG ([a-z-]+)`/g)].map(([, name]) => name);
  expect(asked.length).toBeGreaterThan(8);
  for (const name of asked) expect(FUNCTIONS).toContain(name);
});
