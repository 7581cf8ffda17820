/** Tests notifications over real connections: receivers, contents, and that no text shows an address. */
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Notification, SidecarSet, SidecarSetStatus } from "../../shared/api/sidecarset.ts";
import { notifier } from "../../shared/approval/notifier.ts";
import {
  CLAIM_MS,
  claimed,
  type News,
  notificationBody,
  waitingFor,
  withNews,
  withoutTaken,
} from "../../shared/core/rollout/notifications.ts";
import { createLog } from "../../shared/log.ts";
import { parseReceiver } from "../../shared/settings/called-services.ts";
import { seededChance } from "../simulation/chance.ts";
import { PATIENT } from "../support/patient.ts";

const SET = { name: "log-agent", uid: "u", generation: 7 };
const BLOCKED = {
  id: "u.48.0",
  at: "2026-11-30T05:00:00Z",
  event: "Blocked",
  cause: "Halted",
  message: "3 pods fail",
} as const;

const NEWS = { type: "Normal", reason: "RolloutFinished", message: "m" } as const;

let server: Server;
const seen: { readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: unknown }[] = [];
let code = 200;
/** the path that is answered with 429 */
let busyPath: string | undefined;
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      seen.push({ url: request.url ?? "", headers: request.headers, body: JSON.parse(body) });
      response.writeHead(busyPath && request.url?.startsWith(busyPath) ? 429 : code);
      if (request.url?.startsWith("/endless")) response.write("o");
      else response.end("ok");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterAll(() => {
  server?.closeAllConnections();
  server?.close();
});
beforeEach(() => {
  seen.length = 0;
  code = 200;
  busyPath = undefined;
});

const at = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}=private`;
const tell = (lines: readonly string[], name = SET.name, now: () => number = () => 0) =>
  notifier(async () => lines, { now })({ ...SET, name }, BLOCKED, PATIENT.timeout);

test("a cause that comes and goes has only one waiting notification, so that it displaces no other notification", () => {
  const news = (reason: string, cause: string) => ({ type: "Warning", reason, cause, message: "m" }) as const;
  const stored = (status: SidecarSetStatus, resourceVersion: number): SidecarSet => ({
    metadata: { name: "log-agent", uid: "u", resourceVersion: `${resourceVersion}` },
    spec: {},
    status,
  });
  let status = withNews(stored({}, 1), {}, [news("Blocked", "Halted")], "2026-11-30T05:00:00Z");
  for (let flap = 2; flap < 40; flap++) {
    const next = withNews(stored(status, flap), {}, [news("Degraded", "PodsFailing")], "2026-11-30T05:01:00Z");
    status = { ...status, ...next };
  }
  status = { ...status, ...withNews(stored(status, 40), {}, [news("Blocked", "Gate")], "2026-11-30T05:02:00Z") };
  expect(status.notifications?.map(({ event, cause }) => `${event} ${cause}`)).toEqual([
    "Blocked Halted",
    "Degraded PodsFailing",
    "Blocked Gate",
  ]);
});

describe("an obstacle that comes and goes:", () => {
  const START = Date.parse("2026-11-30T05:00:00Z");
  const set = (status: SidecarSetStatus, resourceVersion = 1): SidecarSet => ({
    metadata: { name: "log-agent", uid: "u", resourceVersion: `${resourceVersion}` },
    spec: {},
    status,
  });
  const condition = (type: string, isThere: boolean, reason = "PodsFailing") =>
    ({ type, status: isThere ? "True" : "False", reason, message: "m", lastTransitionTime: "" }) as const;
  const degraded = (isThere: boolean) => ({ conditions: [condition("Degraded", isThere)] });

  /** Runs passes over one SidecarSet, whose receiver accepts each notification at once. */
  function passes() {
    let status: SidecarSetStatus = {};
    const sent: string[] = [];
    return {
      sent,
      at: (seconds: number, conditions: Partial<SidecarSetStatus>, ...news: readonly News[]) => {
        const now = new Date(START + seconds * 1_000).toISOString();
        status = { ...status, ...withNews(set(status, seconds), { ...status, ...conditions }, news, now) };
        const all = claimed(set(status), now) ?? [];
        status = { ...status, notifications: all.length > 0 ? all : (status.notifications ?? []) };
        for (const { id, event, cause } of all.filter(({ claimedAt }) => claimedAt !== undefined)) {
          sent.push(`${seconds} ${event} ${cause ?? ""}`.trim());
          status = { ...status, notifications: withoutTaken(set(status), id, now) ?? [] };
        }
      },
    };
  }
  const fails: News = { type: "Warning", reason: "Degraded", cause: "PodsFailing", message: "m" };
  const halts: News = { type: "Warning", reason: "Blocked", cause: "Halted", message: "m" };

  test("a repeated notification is sent at most every ten minutes, and the notification of a halt is sent at once", () => {
    const { at, sent } = passes();
    for (let seconds = 0; seconds < 3_600; seconds += 10) {
      const isThere = seconds % 20 === 0;
      const news = [...(isThere ? [fails] : []), ...(seconds === 1_010 ? [halts] : [])];
      at(seconds, degraded(isThere), ...news);
    }
    const own = sent.filter((one) => one.includes("Degraded"));
    expect(own).toEqual([0, 600, 1_200, 1_800, 2_400, 3_000].map((seconds) => `${seconds} Degraded PodsFailing`));
    expect(sent.filter((one) => one.includes("Halted"))).toEqual(["1010 Blocked Halted"]);
  });

  test("a notification is sent again after ten minutes only if its cause is still there", () => {
    const back = passes();
    back.at(0, degraded(true), fails);
    back.at(60, degraded(false));
    back.at(120, degraded(true), fails);
    back.at(599, degraded(true));
    back.at(600, degraded(true));
    expect(back.sent).toEqual(["0 Degraded PodsFailing", "600 Degraded PodsFailing"]);
    const over = passes();
    over.at(0, degraded(true), fails);
    over.at(120, degraded(true), fails);
    over.at(600, degraded(false));
    over.at(1_300, degraded(true), fails);
    expect(over.sent).toEqual(["0 Degraded PodsFailing", "1300 Degraded PodsFailing"]);
  });

  test("a notification is sent at once after a new release began, and if another cause blocks the rollout", () => {
    const { at, sent } = passes();
    const blocked = (cause: string): News => ({ ...halts, cause });
    at(0, {}, halts);
    at(10, {}, blocked("Gate"));
    at(20, {}, { type: "Normal", reason: "RolloutStarted", message: "m" });
    at(30, {}, halts);
    expect(sent).toEqual(["0 Blocked Halted", "10 Blocked Gate", "20 RolloutStarted", "30 Blocked Halted"]);
  });

  test("a cause that has ended is not sent before a release, because it would delay the notification of the release", () => {
    const { at, sent } = passes();
    at(0, degraded(true), fails);
    at(60, degraded(false));
    at(120, degraded(true), fails);
    at(180, degraded(false));
    at(300, degraded(false), { type: "Normal", reason: "RolloutStarted", message: "m" });
    at(410, degraded(true), fails);
    expect(sent).toEqual(["0 Degraded PodsFailing", "300 RolloutStarted", "410 Degraded PodsFailing"]);
  });

  test("a cause that begins hours after the last one is sent, even if it ended before its turn", () => {
    const one = { id: "u.2.0", at: "2026-11-30T10:00:00Z", event: "Degraded", cause: "PodsFailing", message: "m" };
    const told = { ...one, id: "told", at: "2026-11-30T05:00:00Z" };
    const now = "2026-11-30T10:00:30Z";
    expect(claimed(set({ ...degraded(false), notifications: [told, one] }), now)).toEqual([{ ...one, claimedAt: now }]);
  });

  test("check counts a notification as waiting for a receiver only after its time has come", () => {
    const one = { id: "1", at: "2026-11-30T05:00:00Z", event: "Degraded", cause: "PodsFailing", message: "m" };
    const told = { ...one, id: "told" };
    expect(waitingFor({ notifications: [told, { ...one, id: "2" }] })).toEqual([]);
    expect(waitingFor({ notifications: [told, BLOCKED] })).toEqual([BLOCKED]);
  });
});

describe("receivers:", () => {
  test("the first line that names a SidecarSet counts, by its name or by the beginning of names", async () => {
    const lines = ["# comment", `log-* json ${at("/one")}`, `log-agent json ${at("/two")}`, `web json ${at("/three")}`];
    expect(await tell(lines)).toBeUndefined();
    expect(await tell(lines, "web")).toBeUndefined();
    expect(await tell(lines, "other")).toBeNull();
    expect(seen.map(({ url }) => url)).toEqual(["/one", "/three"]);
  });

  test("a receiver of JSON gets the notification, its SidecarSet and cluster, and its id as a header", async () => {
    await tell([`* json ${at("/hook?key=s3cret")} production eu`]);
    const [{ url, headers, body } = { url: "", headers: {}, body: undefined }] = seen;
    expect(url).toBe("/hook?key=s3cret");
    expect(headers["idempotency-key"]).toBe(BLOCKED.id);
    expect(body).toEqual({ ...BLOCKED, where: "production eu", sidecarSet: SET });
  });

  test("a receiver has taken a notification once it answers 200, even if its answer never ends", async () => {
    const notify = notifier(async () => [`* json ${at("/endless")}`], { now: () => 0 });
    expect(await notify(SET, BLOCKED, 2_000)).toBeUndefined();
  });

  test("a receiver that failed is left alone for half a minute, and its sentence holds no path", async () => {
    code = 503;
    let nowMs = 0;
    const notify = notifier(async () => [`* json ${at("/s3cret-path")}`], { now: () => nowMs });
    const send = () => notify(SET, BLOCKED, PATIENT.timeout);
    expect(await send()).toMatch(/^127\.0\.0\.1:\d+ answered 503$/);
    code = 200;
    expect(await send()).toMatch(/answered 503$/);
    nowMs = 30_000;
    expect(await send()).toBeUndefined();
    expect(seen).toHaveLength(2);
  });

  test("a receiver that is busy does not keep another one of the same host waiting", async () => {
    busyPath = "/busy";
    const notify = notifier(async () => [`web json ${at("/busy")}`, `log-agent json ${at("/other")}`], {
      now: () => 0,
    });
    expect(await notify({ ...SET, name: "web" }, BLOCKED, PATIENT.timeout)).toMatch(/answered 429$/);
    expect(await notify(SET, BLOCKED, PATIENT.timeout)).toBeUndefined();
    expect(seen.map(({ url }) => url?.split("=")[0])).toEqual(["/busy", "/other"]);
  });

  test("a notification that a receiver refuses does not stop notifications of other SidecarSets", async () => {
    code = 400;
    const notify = notifier(async () => [`* json ${at("/hook")}`], { now: () => 0 });
    expect(await notify(SET, BLOCKED, PATIENT.timeout)).toMatch(/answered 400$/);
    code = 200;
    expect(await notify({ ...SET, name: "web" }, BLOCKED, PATIENT.timeout)).toBeUndefined();
    expect(seen).toHaveLength(2);
  });

  test("a notification is taken by an answer of 200 to 299, and by no other", async () => {
    const taken: number[] = [];
    const notify = notifier(async () => [`* json ${at("/hook")}`], { now: () => code * 60_000 });
    for (code = 200; code < 600; code++) {
      const why = await notify(SET, BLOCKED, PATIENT.timeout);
      if (why === undefined) taken.push(code);
      else expect(why).toMatch(new RegExp(`answered ${code}$`));
    }
    expect(taken).toEqual(Array.from({ length: 100 }, (_, index) => 200 + index));
    expect(seen).toHaveLength(400);
  });

  test("a receiver in a private network gets no notification unless its line says private", async () => {
    const { port } = server.address() as AddressInfo;
    const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
    const lines = [`* json https://receiver.example:${port}/s3cret-path`];
    const why = await notifier(async () => lines, { now: () => 0, resolve })(SET, BLOCKED, PATIENT.timeout);
    expect(why).toBe(`receiver.example:${port} may not be told: it is in a private network (NOTIFICATIONS)`);
    expect(seen).toEqual([]);
  });

  test("receivers that cannot be read are reported in one sentence", async () => {
    const broken = notifier(() => Promise.reject(new Error("/receivers cannot be read")), { now: () => 0 });
    expect(await broken(SET, BLOCKED, 1_000)).toBe("the receivers cannot be read: /receivers cannot be read");
  });

  test.each([
    ["no format", "log-agent https://hooks.example/s3cret-path"],
    ["an unknown format", "log-agent xml https://hooks.example/s3cret-path"],
    ["no address", "log-agent slack"],
    ["an address with a password", "log-agent slack https://me:pw@hooks.example/s3cret-path"],
    ["a star in the middle", "log-*-agent slack https://hooks.example/s3cret-path"],
    ["an address over http that is not private", "log-agent slack http://hooks.example/s3cret-path"],
  ])("a line with %s is refused by a sentence that repeats no part of it", (_of, line) => {
    expect(parseReceiver(line)).toMatch(/^is /);
    expect(parseReceiver(line)).not.toContain("s3cret");
  });

  test("the log never holds the path of a receiver", () => {
    parseReceiver("* slack https://hooks.slack.com/services/T0/B0/s3cret-path");
    const printed: string[] = [];
    createLog("info", (line) => printed.push(line)).error("failed", {
      url: "https://hooks.slack.com/services/T0/B0/s3cret-path",
    });
    expect(printed.join()).toContain("failed");
    expect(printed.join()).not.toContain("s3cret");
  });
});

const told = ({ givenUp = 0 }: Pick<Notification, "givenUp">) => 1 + givenUp;

test("every notification is delivered, waits, or is counted as given up in another notification", () => {
  const { below, isLucky } = seededChance(54);
  const pick = <T>(chance: number, lucky: T, other: T): T => (isLucky(chance) ? lucky : other);
  let [written, taken, seconds] = [0, 0, Date.parse("2026-11-30T00:00:00Z") / 1_000];
  let waiting: readonly Notification[] = [];
  const counted = () => waiting.reduce((sum, one) => sum + told(one), taken);
  for (let step = 0; step < 5_000; step++) {
    seconds += pick(0.05, 100_000, below(10_000));
    const now = new Date(seconds * 1_000).toISOString();
    const stored = () => ({
      metadata: { uid: "u", resourceVersion: `${step}` },
      spec: {},
      status: { notifications: waiting },
    });
    const news = Array.from({ length: below(pick(0.1, 30, 3)) }, () => NEWS);
    written += news.length;
    waiting = withNews(stored(), {}, news, now).notifications ?? waiting;
    expect(counted()).toBe(written);
    waiting = (claimed(stored(), now) ?? []).map(({ claimedAt: _, ...one }) => one);
    expect(counted()).toBe(written);
    const left = withoutTaken(stored(), pick(0.3, waiting[0]?.id, undefined) ?? "", now) ?? waiting;
    taken += waiting.slice(0, waiting.length - left.length).reduce((sum, one) => sum + told(one), 0);
    waiting = left;
  }
});

describe("what Slack is sent:", () => {
  const slack = (message: string) => {
    const { text, blocks } = JSON.parse(notificationBody("slack", SET, { ...BLOCKED, message }, "production"));
    return { text: String(text), blocks };
  };

  test("a notification of a halted rollout says so, with its message, its time and its id", () => {
    const { text, blocks } = slack("3 pods fail");
    expect(text).toBe("production: SidecarSet log-agent: rollout stopped itself\n```\n3 pods fail\n```");
    expect(blocks.map(({ type }: { readonly type: string }) => type)).toEqual(["section", "section", "context"]);
    expect(blocks[2].elements[0].text).toBe("Halted · generation 7 · 2026-11-30T05:00:00Z · u.48.0");
  });

  test.each([
    ["names a group", "<!channel> pods fail", "&lt;!channel&gt; pods fail"],
    ["has a link", "see <https://evil.example|the report>", "see &lt;https://evil.example|the report&gt;"],
    ["has a reference", "a &amp; b", "a &amp;amp; b"],
    ["ends the code block", "```\n@channel", "''' @channel"],
  ])("a text of the cluster that %s is shown unchanged", (_of, message, shown) => {
    const { text, blocks } = slack(message);
    expect(text.split("\n")[2]).toBe(shown);
    expect(blocks[1].text).toEqual({ type: "plain_text", text: shown, emoji: false });
    expect(text.split("\n")).toHaveLength(4);
  });
});

describe("claims:", () => {
  const NOW = Date.parse("2026-11-30T06:00:00Z");
  const claimedAfter = (claimedAt: string | undefined) => {
    const one = { ...BLOCKED, ...(claimedAt === undefined ? {} : { claimedAt }) };
    return claimed({ status: { notifications: [one] } } as never, new Date(NOW).toISOString());
  };
  const ago = (milliseconds: number) => new Date(NOW - milliseconds).toISOString();

  test.each([
    ["that nobody claimed", undefined],
    ["whose claim is over", ago(CLAIM_MS)],
    ["whose claim has a time hours in the future", ago(-3_600_000)],
    ["whose claim nobody can read", "yesterday"],
  ])("a pass sends a notification %s", (_, claimedAt) => {
    expect(claimedAfter(claimedAt)).toEqual([{ ...BLOCKED, claimedAt: new Date(NOW).toISOString() }]);
  });

  test.each([
    ["sent for a week", 7 * 86_400_000, 1],
    ["given up after a week", 7 * 86_400_000 + 1_000, 0],
  ])("the newest notification, which no receiver takes, is %s", (_, ageMs, count) => {
    const status = { notifications: [{ ...BLOCKED, at: ago(ageMs) }] };
    expect(claimed({ status } as never, ago(0))).toHaveLength(count);
  });

  test("a pass leaves a notification to the pass that claimed it just before", () => {
    expect(claimedAfter(ago(CLAIM_MS - 1_000))).toBeUndefined();
  });
});
