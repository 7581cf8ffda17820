/** Tests the world's API server with the contract of the embedded cluster and a real kube-apiserver. */
import { describe, expect, it } from "vitest";
import type { Cluster } from "../../shared/kube/port.ts";
import { NAMESPACES } from "../../shared/kube/port.ts";
import type { Context, ContractCase } from "../contract/contract.ts";
import { SUBJECTS } from "../contract/subjects.ts";
import { ApiServer } from "./api-server.ts";
import { seededChance } from "./chance.ts";
import { connectProcess } from "./network.ts";
import { Process } from "./process.ts";
import type { Timeline } from "./scheduler.ts";

/** Tests that need kinds, admission or controllers which the world does not have. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  "running pods",
  "custom resource schemas",
  "custom resources",
  "conversion",
  "admission",
  "admission that fails",
]);

class NotHere extends Error {}
const notHere = () => {
  throw new NotHere("the world speaks no HTTP");
};

/** The real time. */
const realTime: Timeline = {
  get nowMs() {
    return Date.now();
  },
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Returns the port of a process without faults. */
function fairCluster(server: ApiServer): Cluster {
  const chance = seededChance(1);
  const weather = { faults: [], faultRate: 0, slowRate: 0, expireRate: 0, eventRate: 0, forbiddenNamespace: undefined };
  const nothing = () => undefined;
  const site = { scheduler: realTime, server, chance, counts: new Map(), weather, trace: nothing };
  return connectProcess({ ...site, violated: nothing, blowAt: nothing }, new Process(realTime, chance, "contract"));
}

async function run(one: ContractCase, index: number): Promise<"passed" | "elsewhere"> {
  const server = new ApiServer({
    scheduler: realTime,
    random: Math.random,
    onWrite: () => undefined,
    pageSize: Number.MAX_SAFE_INTEGER,
  });
  const cluster = fairCluster(server);
  const namespace = `contract-${index}`;
  for (const name of ["default", namespace]) await cluster.create(NAMESPACES, { metadata: { name } });
  const unable = { raw: notHere, shared: notHere, close: async () => undefined, access: {} };
  const able = { cluster, namespace, compact: async () => server.compact(), runsPods: false, collectsGarbage: false };
  try {
    await one.run({ ...able, ...unable } as unknown as Context);
    return "passed";
  } catch (error) {
    if (error instanceof NotHere) return "elsewhere";
    throw error;
  }
}

const subjects = Object.entries(SUBJECTS).filter(([subject]) => !ELSEWHERE.has(subject));
let passed = 0;

// Every case has its own server, and waits most of the time.
describe.each(subjects)("the world's API server: %s", { concurrent: true }, (_, cases) => {
  const mine = cases.filter(({ needs }) => needs === undefined || needs === "compact");
  it.for(mine.map((one, index) => [one.sentence, one, index] as const))("%s", async ([, one, index], { skip }) => {
    if ((await run(one, index)) === "elsewhere") skip("needs HTTP");
    passed++;
  });
});

it("most cases of the contract apply to the simulated API server", () => {
  expect(passed).toBeGreaterThanOrEqual(90);
});
