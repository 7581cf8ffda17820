/**
 * Tests the table of outages in infra/aws/outages.md. The deployed bundles have faults, each bundle in its own process
 * as Lambda runs it. Their answers and logs give metrics for each minute. The test checks which alarms of the template
 * fire, as CloudWatch decides, and for how many minutes.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { logReport } from "../../functions/lambda/rollout.ts";
import { alarms } from "../../infra/aws/alarms.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { type AwsSettings, readSettings } from "../../infra/aws/settings.ts";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { Front } from "../../infra/local/http/http-message.ts";
import { VALIDATING_CONFIGURATION } from "../../shared/api/names.ts";
import type { PassReport, SidecarSetReport } from "../../shared/controller/rollout/report.ts";
import { natureOf, ROLLOUT_VERDICTS, type RolloutVerdict } from "../../shared/core/rollout/conditions/verdict.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { connectCluster } from "../../shared/kube/client.ts";
import { logTokenEnd } from "../../shared/kube/token-access.ts";
import { createLog, type Log } from "../../shared/log.ts";
import { printPathDigests } from "../../shared/settings/authentication-settings.ts";
import { pathDigestsOf } from "../../shared/webhook/server/path-secret.ts";
import { prepareSubjects, type Subject } from "../bench/lambda-subjects.ts";
import { httpEvent } from "../lambda/http-event.ts";
import { startFunction } from "../lambda/runtime-process.ts";
import { countedBy, metricOf } from "../support/metric-filter.ts";
import { type Moved, movedBy, rungBy, together } from "./alarmed.ts";

const TIMEOUT_MS = 20_000;
const SSM = "arn:aws:ssm:eu-central-1:123456789012:parameter/x";
/** More minutes than the window of any alarm. */
const LONG = 40;
const NOW = Date.parse("2026-11-26T00:00:00Z");

let folder: string;
let cluster: LocalCluster;
let subjects: readonly Subject[];
let aws: Server;
/** The answer of the fake AWS to every call. */
let answerOfAws: readonly [status: number, body: object] = [500, {}];
/** The answer that replaces the API server's; undefined: its own answer. */
let trouble: ((...asked: Parameters<Front>) => ReturnType<Front> | undefined) | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-outages-"));
  cluster = await startLocalCluster({ front: (request, ask) => trouble?.(request, ask) ?? ask(request) });
  subjects = await prepareSubjects(folder, cluster);
  aws = createServer((_, answer) => {
    const [status, body] = answerOfAws;
    answer.writeHead(status, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify(body));
  });
  await new Promise<void>((listening) => aws.listen(0, "127.0.0.1", () => listening()));
});
afterAll(async () => {
  await cluster?.close();
  aws?.closeAllConnections();
  await new Promise((closed) => aws.close(closed));
  await rm(folder, { recursive: true, force: true });
});

type Parameters_ = Readonly<Record<string, string>>;
const settings = (parameters: Parameters_ = {}) =>
  readSettings("sidecarset", "test", async (name) => parameters[name] ?? "");

interface Call {
  /** variables that replace the healthy ones */
  readonly variables?: Readonly<Record<string, string | undefined>>;
  /** the event that replaces the healthy one */
  readonly event?: unknown;
  /** runs after a first call; only the call after that counts */
  readonly meanwhile?: () => void;
}

/** Returns the metrics of one call of the function. */
async function call(name: string, { variables, event, meanwhile }: Call = {}): Promise<Moved> {
  const subject = subjects.find((one) => one.name === name);
  if (subject === undefined) throw new Error(`no function ${name}`);
  const endpoint = `http://127.0.0.1:${(aws.address() as AddressInfo).port}`;
  const signing = { AWS_ENDPOINT_URL: endpoint, AWS_ACCESS_KEY_ID: "AKIA", AWS_SECRET_ACCESS_KEY: "x".repeat(40) };
  const all = Object.entries({ ...subject.env, LOG_LEVEL: "warn", ...signing, ...variables });
  const env = Object.fromEntries(all.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
  const { invoke, logLines, kill } = await startFunction({ folder: subject.folder, env });
  try {
    const invoked = () => invoke(event ?? subject.event, TIMEOUT_MS).catch((error: Error) => error);
    if (meanwhile !== undefined) await invoked();
    const before = logLines().length;
    meanwhile?.();
    const answer = await invoked();
    return movedBy({ name, answer, lines: logLines().slice(before) }, await settings(MORE));
  } finally {
    trouble = undefined;
    await kill();
  }
}

/** Returns the metrics of a pass' log about SidecarSets that are not in the cluster. */
async function pass(changed: Partial<PassReport>, ...sets: readonly Partial<SidecarSetReport>[]): Promise<Moved> {
  const healthy = { name: "logs", stop: "settled", why: "", tally: { problems: [] } };
  const sidecarSets = sets.map((one) => ({ ...healthy, ...one }));
  const report = { isDryRun: false, problems: [], notReached: [], unread: [], calls: {}, ...changed, sidecarSets };
  return logged("rollout", (log) => logReport(log, report as unknown as PassReport, undefined, NOW));
}

async function logged(name: string, write: (log: Log) => void, parameters: Parameters_ = MORE): Promise<Moved> {
  const lines: object[] = [];
  write(createLog("warn", (line) => void lines.push(JSON.parse(line))));
  return movedBy({ name, answer: {}, lines }, await settings(parameters));
}

/** Returns metrics that AWS itself writes. */
const byAws = (metric: string, value = 1): Moved => ({ [metric]: [value] });
const ofFunction = (metric: string, name: string, value = 1) =>
  byAws(`AWS/Lambda ${metric} FunctionName=sidecarset-test-${name}`, value);
const ago = (minutes: number) => new Date(NOW - 60_000 * minutes).toISOString();
/** Returns the minutes in order. Each gets the time of minute 0. */
const everyMinute = (made: (since: string) => Promise<Moved>) =>
  Promise.all(Array.from({ length: LONG + 1 }, (_, minute) => made(ago(minute))));
const answered = (code: number, reason: string) => async () => ({
  code,
  body: { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message: reason },
});
const throttled = () => {
  answerOfAws = [400, { __type: "ThrottlingException" }];
  return SSM;
};
const NO_CLUSTER = { CLUSTER_TOKEN: undefined, CLUSTER_SERVER: undefined, CLUSTER_CA: undefined };
const NOTHING_LISTENS = { CLUSTER_SERVER: "https://127.0.0.1:1" };
const otherSecret = () => {
  const paths = ["/mutate-pod", "/validate-apps-kruise-io-sidecarset", "/readyz"];
  return { PATH_SECRETS: undefined, PATH_DIGESTS: printPathDigests(pathDigestsOf(["o".repeat(43)], paths)) };
};
const written = async (name: string, text: string) => {
  await writeFile(join(folder, name), text);
  return join(folder, name);
};
const clusterOfTests = () =>
  connectCluster({
    server: cluster.url,
    certificateAuthority: cluster.caCertificate,
    token: async () => cluster.token,
  });
/** Returns a pod that no webhook has seen. */
const missedPod = (name: string) =>
  clusterOfTests().create(
    { group: "", version: "v1", plural: "pods", namespaced: true },
    {
      metadata: { name, namespace: "default", labels: { app: "web" } },
      spec: { containers: [{ name: "web", image: "nginx:1.29" }] },
    },
  );
const removePod = (name: string) =>
  clusterOfTests().delete(
    { group: "", version: "v1", plural: "pods", namespaced: true },
    { namespace: "default", name },
  );

const REGISTRATIONS = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "validatingwebhookconfigurations",
  namespaced: false,
};
/** Registers this address for SidecarSets, as deployments do, and makes a pass. */
const passWithWebhookAt = async (url: string, options: Call = {}) => {
  const [, registration] = webhookConfigurations({ url, caBundle: "" });
  await clusterOfTests().create(REGISTRATIONS, registration);
  const moved = await call("rollout", options);
  await clusterOfTests().delete(REGISTRATIONS, { name: VALIDATING_CONFIGURATION });
  return moved;
};
const isProbe = ({ parameters }: Parameters<Front>[0]) => parameters.has("dryRun");

/** Minute, from 0 on → differences from a healthy minute. */
type Minutes = (minute: number) => Moved;
const always =
  (moved: Moved, minutes = Number.POSITIVE_INFINITY): Minutes =>
  (minute) =>
    minute < minutes ? moved : {};

interface Outage {
  /** first cell of the row in infra/aws/outages.md */
  readonly outage: string;
  /** last cell of the row */
  readonly rings: string;
  readonly minutes: () => Promise<Minutes>;
  readonly parameters?: Parameters_;
  /** metrics before minute 0 */
  readonly before?: Moved;
  /** a metric that has no data from minute 0 on */
  readonly without?: string;
}

const WORKERS = { "rollout-workers": "10" };
const MORE = { "more-alarms": "true" };
const FAILED_WORK = 'AWS/SQS ApproximateNumberOfMessagesVisible QueueName={"Fn::GetAtt":["FailedWork","QueueName"]}';
const DOMAIN = {
  "domain-name": "webhooks.example.com",
  "domain-certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/c",
  "function-urls": "false",
};

const OUTAGES: readonly Outage[] = [
  {
    outage: "the webhooks are registered with another secret than the functions know, `failurePolicy: Fail`",
    rings: "`CallersRefused` 2",
    minutes: async () => always(await call("mutate-pod", { variables: otherSecret() })),
  },
  {
    outage: "the same with `Ignore`",
    rings: "`CallersRefused` 2, `PodsMissed` 2",
    minutes: async () => {
      await missedPod("web-missed");
      const moved = together(await call("mutate-pod", { variables: otherSecret() }), await call("rollout"));
      await removePod("web-missed");
      return always(moved);
    },
  },
  {
    outage: "mutate-pod cannot start, or ends without an answer",
    rings: "`PodErrors` 3",
    minutes: async () => always(await call("mutate-pod", { variables: { FEATURE_GATES: "None=true" } })),
  },
  {
    outage: "mutate-sidecarset or validate-sidecarset cannot start",
    rings: "`SidecarSetErrors` 3",
    minutes: async () => always(await call("validate-sidecarset", { variables: { AUTHENTICATION: undefined } })),
  },
  {
    outage: "convert-sidecarset cannot start",
    rings: "`SidecarSetErrors` 3",
    minutes: async () => always(await call("convert-sidecarset", { variables: { AUTHENTICATION: undefined } })),
  },
  {
    outage:
      "API servers cannot call validate-sidecarset, and perhaps no function (DNS, routes, certificates, the front door)",
    rings: "`SidecarSetErrors` 3",
    minutes: async () => always(await passWithWebhookAt("https://127.0.0.1:1")),
  },
  {
    outage: "SSM throttles, or has no valid secret, without `path-digests`",
    rings: "`PodErrors` 3, `SidecarSetErrors` 3",
    minutes: async () => {
      const variables = { PATH_SECRETS: throttled() };
      const calls = ["mutate-pod", "convert-sidecarset"].map((name) => call(name, { variables }));
      return always(together(...(await Promise.all(calls))));
    },
  },
  {
    outage: "rollout cannot start",
    rings: "`TickErrors` 4",
    minutes: async () => always(await call("rollout", { variables: { FEATURE_GATES: "None=true" } })),
  },
  {
    outage: "the API server cannot be reached; mutate-pod starts again",
    rings: "`PodErrors` 3, `TickErrors` 4",
    minutes: async () => {
      const calls = ["mutate-pod", "rollout"].map((name) => call(name, { variables: NOTHING_LISTENS }));
      return always(together(...(await Promise.all(calls))));
    },
  },
  {
    outage: "the API server answers no read, and mutate-pod goes on by what it knows, with `more-alarms`",
    rings: "`StaleView` 3",
    parameters: MORE,
    minutes: async () =>
      always(
        await call("mutate-pod", {
          meanwhile: () => {
            trouble = answered(503, "down");
          },
        }),
      ),
  },
  {
    outage: "the token of the cluster has expired, or SSM, which has it, cannot be asked",
    rings: "`PodErrors` 3, `TickErrors` 4",
    minutes: async () => {
      const variables = { CLUSTER_TOKEN: await written("old-token", "of-yesterday") };
      const ofSsm = { CLUSTER_TOKEN: throttled() };
      return always(together(await call("mutate-pod", { variables }), await call("rollout", { variables: ofSsm })));
    },
  },
  {
    outage: "EKS does not say where the API server is, without `cluster-server`",
    rings: "`PodErrors` 3, `TickErrors` 4",
    minutes: async () => {
      answerOfAws = [429, { __type: "TooManyRequestsException" }];
      const variables = { ...NO_CLUSTER, EKS_CLUSTER: "demo" };
      return always(together(await call("mutate-pod", { variables }), await call("rollout", { variables })));
    },
  },
  {
    outage: "a token of the cluster expires in a week",
    rings: "`TokenEnds` 2",
    parameters: {
      "cluster-server": "https://10.0.0.1:6443",
      "cluster-ca": "LS0t",
      ...Object.fromEntries(["cluster", "webhooks", "viewer"].map((use) => [`${use}-token`, SSM])),
    },
    minutes: async () => {
      const claims = { iat: NOW / 1000 - 864_000, exp: NOW / 1000 + 86_400 };
      const token = `x.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.x`;
      return always(await logged("mutate-pod", (log) => logTokenEnd(token, NOW, log), OUTAGES_TOKEN));
    },
  },
  {
    outage: "mutate-pod is throttled: the concurrency is used up",
    rings: "`PodThrottles` 3",
    minutes: async () => always(ofFunction("Throttles", "mutate-pod", 50)),
  },
  {
    outage: "the front door answers with errors of its own",
    rings: "`DoorErrors` 3",
    parameters: DOMAIN,
    minutes: async () => always(byAws('AWS/ApiGateway 5xx ApiId={"Ref":"WebhookApi"}')),
  },
  {
    outage: "the schedule is gone or off",
    rings: "`NoTicks` 6",
    without: "AWS/Lambda Invocations FunctionName=sidecarset-test-rollout",
    minutes: async () => always({}),
  },
  {
    outage: "the schedule is gone, and workers still take messages",
    rings: "`NoTicks` 6",
    parameters: WORKERS,
    without: 'AWS/Scheduler InvocationAttemptCount ScheduleGroup={"Ref":"ScheduleGroup"}',
    minutes: async () => always({}),
  },
  {
    outage: "rollout is throttled, so that Lambda drops its ticks, with `more-alarms`",
    rings: "`TicksDropped` 4, `NoTicks` 6",
    without: "AWS/Lambda Invocations FunctionName=sidecarset-test-rollout",
    parameters: MORE,
    minutes: async () => always(ofFunction("AsyncEventsDropped", "rollout")),
  },
  {
    outage: "the Scheduler may not call rollout any more, and workers still take messages",
    rings: "`UndeliveredTicksWaiting` 4",
    parameters: WORKERS,
    without: "AWS/Lambda Invocations FunctionName=sidecarset-test-rollout",
    minutes: async () => (minute) =>
      byAws(
        'AWS/SQS ApproximateNumberOfMessagesVisible QueueName={"Fn::GetAtt":["UndeliveredTicks","QueueName"]}',
        minute + 1,
      ),
  },
  {
    outage: "no worker takes the messages of the queue",
    rings: "`WorkWaits` 20",
    parameters: WORKERS,
    minutes: async () => (minute) =>
      byAws('AWS/SQS ApproximateAgeOfOldestMessage QueueName={"Fn::GetAtt":["RolloutQueue","QueueName"]}', 60 * minute),
  },
  {
    outage: "a SidecarSet failed five times, while older ones lie in the queue of failed work",
    rings: "`FailedWorkWaiting` 12",
    parameters: WORKERS,
    before: byAws(FAILED_WORK, 3),
    minutes: async () => (minute) => byAws(FAILED_WORK, minute < 10 ? 3 : 4),
  },
  {
    outage: "the API server refuses what passes write, with `more-alarms`",
    rings: "`PassProblems` 4",
    parameters: MORE,
    minutes: async () => always(await pass({}, { stop: "refused", state: "Updating" })),
  },
  {
    outage: "passes cannot read the pods of a SidecarSet, or have too little time for it",
    rings: "`NeedsAttention` 13",
    minutes: async () => {
      trouble = (request) => (request.path.endsWith("/pods") ? answered(403, "Forbidden")() : undefined);
      const failing = await everyMinute((since) => pass({ failing: { logs: since } }, {}));
      const all = [await call("rollout"), ...failing.slice(1)];
      return (minute) => all[minute] ?? {};
    },
  },
  {
    outage: "a pod is created without its sidecars, while an old one has none",
    rings: "`PodsMissed` 12",
    minutes: async () => {
      const old = await pass({}, { missed: { count: 1, recent: 0, pods: [] } });
      const more = await pass({}, { missed: { count: 2, recent: 1, pods: [] } });
      return (minute) => (minute < 10 ? old : more);
    },
  },
  {
    outage: "a SidecarSet is in trouble, while another one has been for a week",
    rings: "`NeedsAttention` 13",
    minutes: async () => {
      const old: Partial<SidecarSetReport> = { state: "Blocked", troubleSince: ago(10_000) };
      const all = await everyMinute((since) => pass({}, old, { name: "other", state: "Halted", troubleSince: since }));
      return (minute) => all[minute] ?? {};
    },
  },
  {
    outage: "a flood of requests, with `more-alarms`",
    rings: "`UnusualLoad` 6",
    parameters: MORE,
    minutes: async () => always(ofFunction("Invocations", "mutate-pod", 60_000)),
  },
  {
    outage: "pods wait for a slow API server for long, with `more-alarms`",
    rings: "`UnusualDuration` 6",
    parameters: MORE,
    minutes: async () =>
      always({ "AWS/Lambda Duration FunctionName=sidecarset-test-mutate-pod": Array(400).fill(1_000) }),
  },
  {
    outage: "the API server is not there for a minute, as when EKS is upgraded",
    rings: "nothing",
    minutes: async () => {
      const stale = await call("mutate-pod", {
        meanwhile: () => {
          trouble = answered(503, "down");
        },
      });
      return always(together(stale, await call("rollout", { variables: NOTHING_LISTENS })), 1);
    },
  },
  {
    outage: "the API server has trouble of its own when a pass asks it to call a webhook",
    rings: "nothing",
    minutes: async () => {
      let probes = 0;
      const meanwhile = () => {
        trouble = (request) => {
          if (!isProbe(request)) return undefined;
          probes += 1;
          return answered(503, "ServiceUnavailable")();
        };
      };
      const moved = await passWithWebhookAt("https://127.0.0.1:1", { meanwhile });
      expect(probes).toBeGreaterThan(0);
      return always(moved);
    },
  },
  {
    outage: "six seconds of 429",
    rings: "nothing",
    minutes: async () => {
      const busy = () => {
        trouble = answered(429, "TooManyRequests");
      };
      const warm = await call("mutate-pod", { meanwhile: busy });
      busy();
      return always(together(warm, await call("rollout")), 1);
    },
  },
  {
    outage: "strangers try addresses",
    rings: "nothing",
    minutes: async () => always(await call("mutate-pod", { event: httpEvent("/.env", "{}") })),
  },
  {
    outage: "`sidecarset check` and `deploy:all` ask whether strangers are refused",
    rings: "nothing",
    minutes: async () => {
      const asked = httpEvent("/mutate-pod", "{}");
      const headers = { ...asked.headers, "user-agent": "sidecarset-check" };
      return always(await call("mutate-pod", { event: { ...asked, headers } }));
    },
  },
];
const OUTAGES_TOKEN = OUTAGES.find(({ rings }) => rings.includes("TokenEnds"))?.parameters ?? {};

/** Returns the metrics of a minute without faults. */
async function healthyMinute(): Promise<Moved> {
  const [pods, passes] = await Promise.all([call("mutate-pod"), call("rollout")]);
  return together(pods, passes, byAws('AWS/Scheduler InvocationAttemptCount ScheduleGroup={"Ref":"ScheduleGroup"}'));
}

async function rungIn({ minutes, before = {}, without }: Outage, given: AwsSettings) {
  const [healthy, at] = [await healthyMinute(), await minutes()];
  const { [without ?? ""]: _, ...rest } = healthy;
  const kept = without === undefined ? healthy : rest;
  const moved = (minute: number) => (minute < 0 ? { ...healthy, ...before } : { ...kept, ...at(minute) });
  return rungBy(moved, LONG, given);
}

test("no call of a healthy function sets off an alarm", async () => {
  const others = ["mutate-sidecarset", "validate-sidecarset", "convert-sidecarset"].map((name) => call(name));
  const moved = together(await healthyMinute(), ...(await Promise.all(others)));
  expect(rungBy(() => moved, LONG, await settings())).toEqual([]);
});

describe("docs/alarms.md and infra/aws/outages.md:", () => {
  test.each(OUTAGES)("the outage ($outage) raises the alarms $rings", async (outage) => {
    const rung = await rungIn(outage, await settings(outage.parameters));
    const text = rung.map(({ alarm, minute }) => `\`${alarm}\` ${minute}`).join(", ");
    expect(text || "nothing").toBe(outage.rings);
  });

  test("the table of outages has exactly the outages of this test, with the alarms and their minutes", async () => {
    const text = await readFile("infra/aws/outages.md", "utf8");
    const [, table = ""] = /\| outage \|[^\n]*\n[^\n]*\n((?:\|[^\n]*\n)+)/.exec(text) ?? [];
    const rows = table
      .trim()
      .split("\n")
      .map((row) => row.split(" | "));
    expect(rows.map((cells) => [cells[0]?.slice(2), cells.at(-1)?.replace(/ \|$/, "")])).toEqual(
      OUTAGES.map(({ outage, rings }) => [outage, rings]),
    );
  });

  test("each alarm has a section that its description names, and the section begins with a command", async () => {
    const text = await readFile("docs/alarms.md", "utf8");
    const all = { "more-alarms": "true", "ordered-sets": "true", ...OUTAGES_TOKEN, ...WORKERS };
    for (const given of [await settings({ ...all, ...DOMAIN }), await settings(all)])
      for (const [id, alarm] of Object.entries(alarms(given))) {
        expect(JSON.stringify(alarm)).toContain(`docs/alarms.md#${id.toLowerCase()}"`);
        expect(text, id).toMatch(new RegExp(`\n### ${id}\n\n(?:[^\n\`]*)\`(?:[a-z]|LOG )`));
      }
  });

  test("with the address of the site, descriptions of alarms link to their sections there", async () => {
    const given = await settings({ ...MORE, site: "https://docs.example.com/sidecarset" });
    const all = Object.entries(alarms(given));
    expect(all.length).toBeGreaterThan(15);
    for (const [id, alarm] of all)
      expect(JSON.stringify(alarm)).toContain(
        ` What to do: https://docs.example.com/sidecarset/docs/alarms#${id.toLowerCase()}"`,
      );
  });

  test("the first command for each alarm needs only aws and kubectl", async () => {
    const page = await readFile("docs/alarms.md", "utf8");
    const [, log = ""] = /`LOG NAME` is `(\w+ logs tail) /.exec(page) ?? [];
    const text = page.replaceAll("`LOG ", `\`${log} `);
    const first = [...text.matchAll(/\n### \w+\n\n[^\n`]*`(\w+)/g)].map(([, program]) => program);
    expect(first.length).toBeGreaterThan(15);
    for (const program of first) expect(["aws", "kubectl"]).toContain(program);
  });
});

describe("alarms end:", () => {
  const endOf = async (minutes: Minutes, alarm: string) => {
    const healthy = await healthyMinute();
    const rung = rungBy(
      (minute) => (minute < 0 ? healthy : { ...healthy, ...minutes(minute) }),
      LONG,
      await settings(),
    );
    return rung.filter((one) => one.alarm === alarm).map(({ over }) => over);
  };

  test("PodErrors and PodsMissed end a quarter of an hour after the last error and the last missed pod", async () => {
    const failed = await call("mutate-pod", { variables: { FEATURE_GATES: "None=true" } });
    expect(await endOf(always(failed, 5), "PodErrors")).toEqual([15]);
    const missed = await pass({}, { missed: { count: 2, recent: 1, pods: [] } });
    expect(await endOf(always(missed, 5), "PodsMissed")).toEqual([11]);
  });

  test("a SidecarSet with a lasting problem raises the alarm for only ten minutes", async () => {
    const all = await everyMinute((since) => pass({}, { state: "Blocked", troubleSince: since }));
    expect(await endOf((minute) => all[minute] ?? {}, "NeedsAttention")).toEqual([30]);
  });
});

test.each(ROLLOUT_VERDICTS.map((state) => [state]))(
  "a SidecarSet in state %s for ten minutes raises the alarm exactly if natureOf calls the state trouble",
  async (state: RolloutVerdict) => {
    const moved = await pass({}, { state, troubleSince: ago(10) });
    const isTrouble = natureOf(state).isTrouble === true;
    expect(Object.keys(moved).includes("sidecarset-test-logs Attention")).toBe(isTrouble);
    // OpenKruise's definition stores no times.
    const timeless = await pass({}, { state });
    expect(Object.keys(timeless).includes("sidecarset-test-logs Attention")).toBe(isTrouble);
  },
);

test("an alarm watches every metric of a log filter, and no filter counts lines of level info", async () => {
  const given = await settings({ ...OUTAGES_TOKEN, ...MORE });
  const watched = JSON.stringify(alarms(given));
  const metrics = new Set(Object.values(logFilters(given)).map(metricOf));
  expect(metrics.size).toBe(8);
  for (const metric of metrics) expect(watched).toContain(`"MetricName":"${metric}"`);
  expect(Object.values(logFilters(given)).some((filter) => countedBy(filter, [{ level: "info" }]) > 0)).toBe(false);
});
