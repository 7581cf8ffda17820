/**
 * Tests notifications, pass by pass: each is sent once, and killed passes lose none. The receivers are real servers.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { troubleOf } from "../../functions/server/tick.ts";
import type { Notification, SidecarSet } from "../../shared/api/sidecarset.ts";
import { batchGates, type Gates } from "../../shared/approval/batch-gates.ts";
import { mapLimited } from "../../shared/controller/loop/concurrency-limit.ts";
import { newPassMemory, type PassOptions, runPass } from "../../shared/controller/pass.ts";
import { failureOf } from "../../shared/controller/serve-work.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import type { Log } from "../../shared/log.ts";
import { offTheClock } from "../support/virtual-time.ts";
import { type Fault, faultyCluster } from "./faults.ts";
import {
  deploy,
  eventually,
  fastClock,
  KRUISE_NAMESPACE,
  readPods,
  readSet,
  release,
  startTestCluster,
  type TestCluster,
  versionsOf,
} from "./fixture.ts";

interface Got {
  readonly id: string;
  readonly event: string;
  readonly message: string;
  readonly sidecarSet: { readonly name: string; readonly generation: number };
}

let test: TestCluster;
let cluster: Cluster;
let server: Server;
let folder: string;
let got: Got[] = [];
/** the receiver's present answer */
let answer: RequestListener;
const taken: RequestListener = (_request, response) => void response.writeHead(204).end();
const lines: string[] = [];
const log: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

beforeAll(async () => {
  test = await startTestCluster();
  cluster = test.cluster;
  folder = await mkdtemp(join(tmpdir(), "notifications-"));
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      got.push(JSON.parse(body));
      answer(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  lines.push(`* json http://127.0.0.1:${(server.address() as AddressInfo).port}/hook-s3cret=private`);
  await writeFile(join(folder, "receivers"), `# all of them\n${lines.join("\n")}\n`);
});
afterAll(async () => {
  await test.close();
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  got = [];
  answer = taken;
});

/** Starts a new process, which remembers nothing of earlier processes. */
function gates(): Gates {
  const { notify, ...others } = batchGates(log, { env: { NOTIFICATIONS: join(folder, "receivers") } });
  if (!notify) throw new Error("nobody is sent anything");
  return { ...others, notify: (...sent) => offTheClock(() => notify(...sent)) };
}

const options = (name: string, more: Partial<PassOptions> = {}): PassOptions => ({
  deadlineMs: 600_000,
  kruiseNamespace: KRUISE_NAMESPACE,
  sidecarSet: name,
  settings: DEFAULT_ROLLOUT_SETTINGS,
  follow: true,
  clock: fastClock(20),
  memory: newPassMemory(),
  gates: gates(),
  ...more,
});

/** Returns the cluster as it is that many minutes later. */
const later = (minutes: number): Cluster => ({ ...cluster, serverTimeMs: () => Date.now() + minutes * 60_000 });

async function prepare(name: string): Promise<void> {
  await deploy(cluster, name, 2, { maxUnavailable: 1 });
  await runPass(cluster, options(name, { gates: undefined }));
  await release(cluster, name, 2, { maxUnavailable: 1 });
}

const eventsOf = (name: string) => got.filter(({ sidecarSet }) => sidecarSet.name === name).map(({ event }) => event);
const waitingIn = async (name: string) =>
  (await readSet(cluster, name)).status?.notifications?.filter(({ id }) => id !== "told") ?? [];

/** Returns every notification that was ever stored. */
function recorded(name: string): readonly Notification[] {
  const all = test
    .history()
    .filter((write) => write.resource === "sidecarsets" && write.name === name)
    .flatMap(({ object }) => (object as unknown as SidecarSet).status?.notifications ?? []);
  return [...new Map(all.map((one) => [one.id, one])).values()];
}

it("a rollout sends one notification when it starts and one when it finishes, and nothing waits afterwards", async () => {
  await prepare("plain");
  const report = await runPass(cluster, options("plain"));
  expect(eventsOf("plain")).toEqual(["RolloutStarted", "RolloutFinished"]);
  expect(got.map(({ id }) => id)).toEqual(recorded("plain").map(({ id }) => id));
  expect(report.sidecarSets[0]?.tally.notified).toBe(2);
  expect(report.problems).toEqual([]);
  expect((await readSet(cluster, "plain")).status).not.toHaveProperty("notifications");
  await runPass(cluster, options("plain"));
  expect(got).toHaveLength(2);
});

it("a SidecarSet without a receiver in the settings counts no notification as sent, and none waits", async () => {
  await prepare("unnamed");
  const file = join(folder, "others");
  await writeFile(file, "somebody-else json https://receiver.example/hook\n");
  const report = await runPass(
    cluster,
    options("unnamed", { gates: batchGates(log, { env: { NOTIFICATIONS: file } }) }),
  );
  expect(report.sidecarSets[0]?.tally.notified).toBeUndefined();
  expect([report.problems, await waitingIn("unnamed")]).toEqual([[], []]);
});

it("three passes at once send each notification once", async () => {
  await prepare("three");
  await Promise.all([1, 2, 3].map(() => runPass(cluster, options("three"))));
  await runPass(later(2), options("three"));
  expect(eventsOf("three")).toEqual(["RolloutStarted", "RolloutFinished"]);
});

it("no notification is stored if no receiver is configured", async () => {
  await prepare("silent");
  await runPass(cluster, options("silent", { gates: batchGates(log, { env: {} }) }));
  expect(recorded("silent")).toEqual([]);
});

it("every pod is updated while a receiver has not answered yet", async () => {
  await prepare("patient");
  const seen: (readonly string[])[] = [];
  const notify: Gates["notify"] = async () => {
    await eventually(async () => expect(versionsOf(await readPods(cluster, "patient"))).toEqual(["2", "2"]));
    seen.push(versionsOf(await readPods(cluster, "patient")));
    return undefined;
  };
  const clock = fastClock(1);
  await runPass(cluster, options("patient", { clock, gates: { refusals: new Map(), notify } }));
  expect(seen[0]).toEqual(["2", "2"]);
});

it("the report names a SidecarSet definition that does not keep waiting notifications", async () => {
  await prepare("pruned");
  const pruning: Cluster = {
    ...cluster,
    patch: async (resource, key, patch, more) => {
      const written = await cluster.patch<SidecarSet>(resource, key, patch, more);
      const { notifications: _, ...status } = written.status ?? {};
      return (resource.plural === "sidecarsets" ? { ...written, status } : written) as never;
    },
  };
  const report = await runPass(pruning, options("pruned", { follow: false }));
  expect(report.problems).toEqual([expect.stringContaining("install the one of this version (sidecarset install)")]);
});

it("a later pass sends the notifications about a SidecarSet even if no pass has the time to read its pods", async () => {
  await prepare("unread");
  // The queue is emptied first, so that older notifications do not hide the new one.
  await runPass(cluster, options("unread"));
  got = [];
  const never = new Promise<never>(() => undefined);
  const slow = (minutes: number): Cluster => ({
    ...later(minutes),
    list: (resource, query) => (resource.plural === "pods" ? never : cluster.list(resource, query)),
  });
  for (const minutes of [2, 4, 6, 8]) await runPass(slow(minutes), options("unread", { deadlineMs: 20_000 }));
  const { conditions = [] } = (await readSet(cluster, "unread")).status ?? {};
  expect(conditions.find(({ type }) => type === "Blocked")).toMatchObject({ status: "True", reason: "Unread" });
  expect(eventsOf("unread")).toEqual(["Blocked"]);
  expect(await waitingIn("unread")).toEqual([]);
});

it("the report names OpenKruise's definition, which keeps neither conditions nor waiting notifications", async () => {
  const pruned = ({
    status: { matchedPods = 0, updatedPods = 0, readyPods = 0, ...more } = {},
    ...rest
  }: SidecarSet) => {
    const { observedGeneration, updatedReadyPods, latestRevision, collisionCount } = more;
    const kept = { observedGeneration, updatedReadyPods, latestRevision, collisionCount };
    return { ...rest, status: { matchedPods, updatedPods, readyPods, ...kept } } as SidecarSet;
  };
  await deploy(cluster, "foreign", 2, { maxUnavailable: 1 });
  const openKruise: Cluster = {
    ...cluster,
    get: async (resource, key) => {
      const read = await cluster.get(resource, key);
      return (resource.plural === "sidecarsets" ? pruned(read as SidecarSet) : read) as never;
    },
    patch: async (resource, key, patch, more) => {
      if (resource.plural !== "sidecarsets" || patch.type !== "merge") return cluster.patch(resource, key, patch, more);
      const { status } = pruned(patch.body as SidecarSet);
      return pruned(
        await cluster.patch<SidecarSet>(
          resource,
          key,
          { ...patch, body: { ...(patch.body as SidecarSet), status } },
          more,
        ),
      ) as never;
    },
  };
  await runPass(openKruise, options("foreign", { gates: undefined }));
  await release(cluster, "foreign", 2, { maxUnavailable: 1 });
  const report = await runPass(openKruise, options("foreign"));
  expect(versionsOf(await readPods(cluster, "foreign"))).toEqual(["2", "2"]);
  expect(got).toEqual([]);
  expect(report.problems).toEqual([expect.stringContaining("install the one of this version (sidecarset install)")]);
});

describe("a receiver that fails:", () => {
  it.each<readonly [string, RequestListener, RegExp]>([
    ["answers 500", (_request, response) => void response.writeHead(500).end(), /127\.0\.0\.1:\d+ answered 500$/],
    [
      "redirects",
      (_request, response) => void response.writeHead(302, { location: "/hook-s3cret" }).end(),
      /answered 302$/,
    ],
    ["hangs", () => undefined, /did not answer within [\d.]+ s$/],
    ["closes the connection", (request) => void request.socket.destroy(), /cannot be reached: ECONNRESET$/],
  ])(
    "a receiver that %s delays no pod, is named in the report, and gets the notifications later",
    async (how, fails, why) => {
      const name = `fails-${how.split(" ")[0]}`;
      await prepare(name);
      answer = fails;
      const report = await runPass(cluster, options(name));
      expect(versionsOf(await readPods(cluster, name))).toEqual(["2", "2"]);
      expect(report.problems).toEqual([expect.stringMatching(why)]);
      expect(JSON.stringify(report)).not.toContain("s3cret");
      // A failed message of the queue returns, and the other messages of its SidecarSet wait.
      expect([failureOf(report), troubleOf(report)]).toEqual([undefined, []]);
      expect((await waitingIn(name)).map(({ event }) => event)).toEqual(["RolloutStarted", "RolloutFinished"]);
      // The process does not call the receiver for some time, and its claim blocks others.
      const before = got.length;
      await runPass(cluster, options(name));
      expect(got).toHaveLength(before);
      answer = taken;
      got = [];
      await runPass(later(2), options(name));
      expect(eventsOf(name)).toEqual(["RolloutStarted", "RolloutFinished"]);
      expect(await waitingIn(name)).toEqual([]);
    },
  );

  it("after a day without a receiver only the newest notification is sent, and it and the report count the dropped ones", async () => {
    await prepare("old");
    answer = (_request, response) => void response.writeHead(500).end();
    await runPass(cluster, options("old"));
    expect(await waitingIn("old")).toHaveLength(2);
    answer = taken;
    got = [];
    const report = await runPass(later(25 * 60), options("old"));
    expect(got).toEqual([expect.objectContaining({ event: "RolloutFinished", givenUp: 1 })]);
    expect(report.problems).toEqual([
      "SidecarSet old: 1 notification was given up: no receiver took any for a day, or the newest for a week",
    ]);
    expect(await waitingIn("old")).toEqual([]);
  });
});

describe("a pass that is killed:", () => {
  async function countCalls(name: string): Promise<number> {
    await prepare(name);
    const counting = faultyCluster(cluster, "unavailable", () => false);
    await runPass(counting, options(name));
    return counting.calls.length;
  }

  it.each(["killAfter", "killLate"] as const)(
    "no notification is lost after %s at any call of a pass, and a repeated notification has the same id",
    async (fault: Fault) => {
      const calls = await countCalls(`count-${fault.toLowerCase()}`);
      expect(calls).toBeGreaterThan(25);
      await mapLimited([...new Array(calls).keys()], 8, async (at) => {
        const name = `${fault.toLowerCase()}-${at}`;
        await prepare(name);
        const faulty = faultyCluster(cluster, fault, (index) => index === at);
        await Promise.race([runPass(faulty, options(name)), faulty.struck]);
        await runPass(cluster, options(name));
        await faulty.releaseLate();
        await runPass(later(2), options(name));
        const ids = got.filter(({ sidecarSet }) => sidecarSet.name === name).map(({ id }) => id);
        expect([...new Set(ids)].toSorted(), name).toEqual(
          recorded(name)
            .map(({ id }) => id)
            .toSorted(),
        );
        expect(new Set(eventsOf(name)), name).toEqual(new Set(["RolloutStarted", "RolloutFinished"]));
        // A notification may come twice only if it was sent and not yet marked.
        expect(ids.length - new Set(ids).size, name).toBeLessThanOrEqual(1);
        expect(await waitingIn(name), name).toEqual([]);
      });
    },
  );
});
