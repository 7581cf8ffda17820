/**
 * Each outage of a function that docs/deploy.md lists: the bundle that is deployed, in a process of its
 * own as Lambda runs it, called during the outage; and the alarms that its answer and its log set off.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { logReport } from "../../functions/lambda/rollout-log.ts";
import { alarms } from "../../infra/aws/alarms.ts";
import { logFilters } from "../../infra/aws/log-filters.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { type LocalCluster, startLocalCluster } from "../../infra/local/cluster.ts";
import type { PassReport, SidecarSetReport } from "../../shared/controller/rollout/report.ts";
import { natureOf, ROLLOUT_VERDICTS, type RolloutVerdict } from "../../shared/core/rollout/conditions/verdict.ts";
import { createLog } from "../../shared/log.ts";
import { printPathDigests } from "../../shared/settings/path-digests.ts";
import { pathDigestsOf } from "../../shared/webhook/server/path-secret.ts";
import { prepareSubjects, type Subject } from "../bench/lambda-subjects.ts";
import { startFunction } from "../lambda/runtime-process.ts";
import { countedBy, metricOf } from "../support/metric-filter.ts";
import { type Moved, movedBy, setOff } from "./alarmed.ts";

const TIMEOUT_MS = 20_000;
const SSM = "arn:aws:ssm:eu-central-1:123456789012:parameter/x";

let folder: string;
let cluster: LocalCluster;
let subjects: readonly Subject[];
let aws: Server;
/** The answer of the fake AWS to every call. */
let answerOfAws: readonly [status: number, body: object] = [500, {}];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sidecarset-outages-"));
  cluster = await startLocalCluster();
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

const settings = () => readSettings("sidecarset", "test", async () => "");

type Environment = Readonly<Record<string, string | undefined>>;

/** The result of one call of the function with these variables instead of the healthy ones. */
async function called(name: string, variables: Environment): Promise<Moved> {
  const subject = subjects.find((one) => one.name === name);
  if (subject === undefined) throw new Error(`no function ${name}`);
  const endpoint = `http://127.0.0.1:${(aws.address() as AddressInfo).port}`;
  const signing = { AWS_ENDPOINT_URL: endpoint, AWS_ACCESS_KEY_ID: "AKIA", AWS_SECRET_ACCESS_KEY: "x".repeat(40) };
  const all = Object.entries({ ...subject.env, LOG_LEVEL: "warn", ...signing, ...variables });
  const env = Object.fromEntries(all.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
  const { invoke, logLines, kill } = await startFunction({ folder: subject.folder, env });
  try {
    const answer = await invoke(subject.event, TIMEOUT_MS).catch((error: Error) => error);
    return movedBy({ name, answer, lines: logLines() }, await settings());
  } finally {
    await kill();
  }
}

const throttled = () => {
  answerOfAws = [400, { __type: "ThrottlingException" }];
};

interface Outage {
  /** in docs/deploy.md, the beginning of the row */
  readonly row: string;
  readonly what: string;
  /** function → the alarms that its call sets off */
  readonly of: Readonly<Record<string, readonly string[]>>;
  readonly variables: () => Environment | Promise<Environment>;
}

const ALL_WEBHOOKS = {
  "mutate-pod": ["PodErrors"],
  "mutate-sidecarset": ["SidecarSetErrors"],
  "validate-sidecarset": ["SidecarSetErrors"],
  "convert-sidecarset": ["SidecarSetErrors"],
};
const NONE = { CLUSTER_TOKEN: undefined, CLUSTER_SERVER: undefined, CLUSTER_CA: undefined };
const written = async (name: string, text: string) => {
  await writeFile(join(folder, name), text);
  return join(folder, name);
};

const OUTAGES: readonly Outage[] = [
  {
    row: "mutate-pod",
    what: "mutate-pod cannot start",
    of: { "mutate-pod": ["PodErrors"] },
    variables: () => ({ FEATURE_GATES: "None=true" }),
  },
  {
    row: "mutate-sidecarset, validate-sidecarset",
    what: "mutate-sidecarset and validate-sidecarset cannot start",
    of: { "mutate-sidecarset": ["SidecarSetErrors"], "validate-sidecarset": ["SidecarSetErrors"] },
    variables: () => ({ AUTHENTICATION: undefined }),
  },
  {
    row: "convert-sidecarset",
    what: "convert-sidecarset cannot start",
    of: { "convert-sidecarset": ["SidecarSetErrors"] },
    variables: () => ({ AUTHENTICATION: undefined }),
  },
  {
    row: "rollout",
    what: "the rollout function cannot start",
    of: { rollout: ["TickErrors"] },
    variables: () => ({ FEATURE_GATES: "None=true" }),
  },
  {
    row: "the API server",
    what: "nothing listens at the address of the API server",
    of: { "mutate-pod": ["PodErrors"], rollout: ["TickErrors"] },
    variables: () => ({ CLUSTER_SERVER: "https://127.0.0.1:1" }),
  },
  {
    row: "the token of the cluster",
    what: "the API server refuses the token",
    of: { "mutate-pod": ["PodErrors"], rollout: ["TickErrors"] },
    variables: async () => ({ CLUSTER_TOKEN: await written("old-token", "of-yesterday") }),
  },
  {
    row: "the token of the cluster",
    what: "SSM throttles the reading of the token",
    of: { "mutate-pod": ["PodErrors"], rollout: ["TickErrors"] },
    variables: () => {
      throttled();
      return { CLUSTER_TOKEN: SSM };
    },
  },
  {
    row: "EKS",
    what: "EKS throttles",
    of: { "mutate-pod": ["PodErrors"], rollout: ["TickErrors"] },
    variables: () => {
      answerOfAws = [429, { __type: "TooManyRequestsException" }];
      return { ...NONE, EKS_CLUSTER: "demo" };
    },
  },
  {
    row: "SSM",
    what: "SSM throttles the reading of the path secrets",
    of: ALL_WEBHOOKS,
    variables: () => {
      throttled();
      return { PATH_SECRETS: SSM };
    },
  },
  {
    row: "SSM",
    what: "SSM returns an invalid path secret",
    of: ALL_WEBHOOKS,
    variables: () => {
      answerOfAws = [200, { Parameter: { Value: "hunter2" } }];
      return { PATH_SECRETS: SSM };
    },
  },
  {
    row: "the secret",
    what: "the functions know another secret than the API server",
    of: { "mutate-pod": ["NeedsAttention"], "validate-sidecarset": ["NeedsAttention"] },
    variables: () => {
      const paths = ["/mutate-pod", "/validate-apps-kruise-io-sidecarset", "/readyz"];
      return { PATH_SECRETS: undefined, PATH_DIGESTS: printPathDigests(pathDigestsOf(["o".repeat(43)], paths)) };
    },
  },
];

/** Outages that only AWS reports. */
const BY_AWS: readonly { readonly row: string; readonly alarm: string; readonly metric: string }[] = [
  { row: "mutate-pod", alarm: "PodThrottles", metric: "AWS/Lambda Throttles mutate-pod" },
  { row: "rollout", alarm: "NoTicks", metric: "AWS/Lambda Invocations rollout" },
];
/** Alarms that the report of the next pass sets off, see below. */
const BY_THE_NEXT_PASS: readonly (readonly [row: string, alarm: string])[] = [
  ["mutate-pod", "PodsMissed"],
  ["the secret", "PodsMissed"],
  ["a rollout", "NeedsAttention"],
];

describe("functions without an outage:", () => {
  test.each(["mutate-pod", "mutate-sidecarset", "validate-sidecarset", "convert-sidecarset", "rollout"])(
    "a call of %s sets off no alarm without an outage",
    async (name) => {
      expect(setOff(await called(name, {}), await settings())).toEqual([]);
    },
  );
});

describe.each(OUTAGES)("$row:", ({ what, of, variables }) => {
  test.each(Object.entries(of))(`a call of %s sets off %j when ${what}`, async (name, expected) => {
    expect(setOff(await called(name, await variables()), await settings())).toEqual(expected);
  });
});

test("each row of the table of outages in docs/deploy.md names exactly the alarms that the outage sets off", async () => {
  const text = await readFile("docs/deploy.md", "utf8");
  const [, table = ""] = /## When a function is down\n[\s\S]*?(\| down \|[\s\S]*?)\n\n/.exec(text) ?? [];
  const rows = table.split("\n").slice(2);
  expect(rows.length).toBeGreaterThan(8);
  const tried = [
    ...OUTAGES.flatMap(({ row, of }) => Object.values(of).flatMap((all) => all.map((alarm) => [row, alarm] as const))),
    ...BY_AWS.map(({ row, alarm }) => [row, alarm] as const),
    ...BY_THE_NEXT_PASS,
  ];
  for (const row of rows) {
    const cells = row.split("|").map((cell) => cell.trim());
    const own = tried.filter(
      ([name]) => cells[1] === name || cells[1]?.startsWith(`${name}:`) || cells[1]?.startsWith(`${name},`),
    );
    const named = [...(cells.at(-2) ?? "").matchAll(/`(\w+)`/g)].map(([, alarm]) => alarm);
    expect({ row: cells[1], alarms: named.toSorted() }).toEqual({
      row: cells[1],
      alarms: [...new Set(own.map(([, alarm]) => alarm))].toSorted(),
    });
  }
});

test.each(BY_AWS)("the alarm $alarm watches the metric $metric", async ({ alarm, metric }) => {
  const given = await settings();
  expect(setOff(new Set([metric.replace(/(\S+)$/, "sidecarset-test-$1")]), given)).toEqual([alarm]);
  if (alarm === "NoTicks")
    expect(alarms(given)[alarm]).toMatchObject({ Properties: { TreatMissingData: "breaching" } });
});

describe("alarms of a pass:", () => {
  const report = (sidecarSet: Partial<SidecarSetReport>): PassReport =>
    ({
      startedAt: "2026-11-26T00:00:00Z",
      durationMs: 1,
      isDryRun: false,
      problems: [],
      notReached: [],
      unread: [],
      calls: {},
      sidecarSets: [{ name: "logs", stop: "settled", why: "", tally: { problems: [] }, ...sidecarSet }],
    }) as unknown as PassReport;
  const alarmsOf = async (given: PassReport) => {
    const lines: object[] = [];
    logReport(
      createLog("warn", (line) => void lines.push(JSON.parse(line))),
      given,
    );
    const all = await settings();
    return setOff(movedBy({ name: "rollout", answer: given, lines }, all), all);
  };

  test.each(ROLLOUT_VERDICTS.map((state) => [state]))(
    "a SidecarSet in state %s sets off the alarm NeedsAttention exactly if natureOf calls the state trouble",
    async (state: RolloutVerdict) => {
      const isTrouble = natureOf(state).isTrouble === true;
      expect(await alarmsOf(report({ state }))).toEqual(isTrouble ? ["NeedsAttention"] : []);
    },
  );

  test("missed pods set off the alarm PodsMissed, and an unread SidecarSet sets off NeedsAttention", async () => {
    expect(await alarmsOf(report({ missed: { count: 2, pods: [] } }))).toEqual(["PodsMissed"]);
    expect(await alarmsOf({ ...report({}), unread: ["logs"] })).toEqual(["NeedsAttention"]);
  });
});

test("an alarm watches every metric of a log filter, and no filter counts lines of level info", async () => {
  const given = await settings();
  const watched = JSON.stringify(alarms(given));
  const metrics = new Set(Object.values(logFilters(given)).map(metricOf));
  expect([...metrics].toSorted()).toEqual(["Attention", "MissedPods", "PodErrors", "SidecarSetErrors"]);
  expect(alarms(given)["NeedsAttention"]).toMatchObject({ Properties: { EvaluationPeriods: 3, DatapointsToAlarm: 2 } });
  for (const metric of metrics) expect(watched).toContain(`"MetricName":"${metric}"`);
  expect(Object.values(logFilters(given)).some((filter) => countedBy(filter, [{ level: "info" }]) > 0)).toBe(false);
});
