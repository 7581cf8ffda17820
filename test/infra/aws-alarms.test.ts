/** Tests which metrics alarms watch, for each front door of the webhooks and with --param more-alarms. */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { alarms, countAlarmMetrics } from "../../infra/aws/alarms.ts";
import { readSettings } from "../../infra/aws/settings.ts";
import { rungBy } from "./alarmed.ts";

type Parameters = Readonly<Record<string, string>>;

const settings = (parameters: Parameters) => readSettings("sidecarset", "test", async (name) => parameters[name] ?? "");

/** Returns for each alarm the metrics that it watches, as `Namespace MetricName of dimension`. */
async function watched(parameters: Parameters): Promise<Readonly<Record<string, readonly string[]>>> {
  const all = alarms(await settings(parameters));
  return Object.fromEntries(
    Object.entries(all).map(([id, alarm]) => {
      const text = JSON.stringify(alarm);
      const found = text.matchAll(/"Namespace":"([^"]+)","MetricName":"(\w+)","Dimensions":(\[[^\]]*\])/g);
      return [id, [...found].map(([, space, name, dimensions]) => `${space} ${name} ${dimensions}`)];
    }),
  );
}

const one = (parameters: Parameters, id: string) => watched(parameters).then((all) => all[id] ?? []);
const DOMAIN = {
  "domain-name": "webhooks.example.com",
  "domain-certificate": "arn:aws:acm:eu-central-1:123456789012:certificate/c",
  "function-urls": "false",
};
const BALANCER = { ...DOMAIN, "load-balancer-subnets": "subnet-1,subnet-2", "load-balancer-security-groups": "sg-1" };

describe("alarms for outages outside the functions:", () => {
  test("the alarm PodErrors watches the 5xx answers of the Function URL of mutate-pod and the logged errors", async () => {
    expect(await one({}, "PodErrors")).toEqual([
      expect.stringMatching(/^AWS\/Lambda Url5xxCount .*sidecarset-test-mutate-pod/),
      expect.stringMatching(/^sidecarset-test-logs PodErrors/),
    ]);
    expect(await one({}, "DoorErrors")).toEqual([]);
  });

  test.each([
    ["an HTTP API", { "http-api": "true", "function-urls": "false" }, /^AWS\/ApiGateway 5xx .*"ApiId".*WebhookApi/],
    ["a domain", DOMAIN, /^AWS\/ApiGateway 5xx .*"ApiId".*WebhookApi/],
    ["a load balancer", BALANCER, /^AWS\/ApplicationELB HTTPCode_ELB_5XX_Count .*"LoadBalancer".*WebhookBalancer/],
  ])(
    "the alarm DoorErrors watches the 5xx answers of %s, and PodErrors watches the errors of mutate-pod",
    async (_, parameters, metric) => {
      expect(await one(parameters, "DoorErrors")).toEqual([expect.stringMatching(metric)]);
      expect((await one(parameters, "PodErrors"))[0]).toMatch(/^AWS\/Lambda Errors .*sidecarset-test-mutate-pod/);
    },
  );

  test("without Function URLs and other front doors there is no alarm DoorErrors", async () => {
    expect(Object.keys(await watched({ "function-urls": "false" }))).not.toContain("DoorErrors");
    expect((await one({ "function-urls": "false" }, "PodErrors"))[0]).toMatch(/Errors/);
  });
});

test("an alarm about missing ticks is raised after five minutes and stays on as long as no tick comes", async () => {
  const metric = "AWS/Lambda Invocations FunctionName=sidecarset-test-rollout";
  const ticks = (minute: number) => (minute < 0 ? { [metric]: [1] } : {});
  const rung = rungBy(ticks, 120, await settings({}));
  expect(rung).toEqual([{ alarm: "NoTicks", minute: expect.any(Number) }]);
  expect(rung[0]?.minute).toBeLessThanOrEqual(7);
});

describe("--param more-alarms:", () => {
  const MORE = { "more-alarms": "true" };

  test("docs/deploy-parameters.md names the alarms that --param more-alarms adds, and their price", async () => {
    const [few, many] = [await settings({}), await settings(MORE)];
    const price = (countAlarmMetrics(many) - countAlarmMetrics(few)) * 0.1;
    const row = (await readFile("docs/deploy-parameters.md", "utf8"))
      .split("\n")
      .find((line) => line.startsWith("- `more-alarms`"));
    expect(row).toContain(`($${price.toFixed(2)} a month)`);
    const added = Object.keys(alarms(many)).filter((id) => !(id in alarms(few)));
    expect(added.toSorted()).toEqual([
      "PassProblems",
      "PodsSlow",
      "SidecarSetThrottles",
      "StaleView",
      "TicksDropped",
      "TurnedAway",
      "UndeliveredTicksWaiting",
      "UnusualDuration",
      "UnusualLoad",
    ]);
    for (const id of [...added, "SidecarSetErrors"]) expect(row).toContain(`\`${id}\``);
  });

  test("the alarm PodsSlow watches the longest answer time of mutate-pod with a threshold of 4 seconds", async () => {
    expect(alarms(await settings(MORE))["PodsSlow"]).toMatchObject({
      Properties: { Metrics: [{ MetricStat: { Stat: "Maximum" } }, {}], Threshold: 4_000, DatapointsToAlarm: 2 },
    });
    expect(await one({ ...MORE, ...DOMAIN }, "PodsSlow")).toEqual([expect.stringMatching(/^AWS\/Lambda Duration/)]);
  });

  test("the alarm TurnedAway watches the 4xx answers of the front door", async () => {
    expect(await one(MORE, "TurnedAway")).toEqual([expect.stringMatching(/Url4xxCount .*mutate-pod/)]);
    expect(await one({ ...MORE, ...DOMAIN }, "TurnedAway")).toEqual([expect.stringMatching(/ApiGateway 4xx/)]);
    expect(await one({ ...MORE, ...BALANCER }, "TurnedAway")).toEqual([expect.stringMatching(/Target_4XX/)]);
  });

  test("the alarm SidecarSetErrors watches three webhooks, and always watches the Function URL of convert-sidecarset", async () => {
    const names = (metrics: readonly string[]) =>
      metrics.map((metric) => metric.replace(/^\S+ (\w+) .*sidecarset-test-([\w-]+)".*$/, "$1 $2"));
    expect(names((await one(MORE, "SidecarSetErrors")).slice(1))).toEqual([
      "Url5xxCount mutate-sidecarset",
      "Url5xxCount validate-sidecarset",
      "Url5xxCount convert-sidecarset",
    ]);
    expect(names((await one({ ...MORE, ...DOMAIN }, "SidecarSetErrors")).slice(1))).toEqual([
      "Errors mutate-sidecarset",
      "Errors validate-sidecarset",
      "Url5xxCount convert-sidecarset",
    ]);
    expect(await one(MORE, "SidecarSetThrottles")).toHaveLength(3);
  });

  test("the alarm NoOrderedTicks exists only with --param ordered-sets", async () => {
    const ordered = { ...MORE, "ordered-sets": "true" };
    expect(await one(ordered, "NoOrderedTicks")).toEqual([expect.stringMatching(/Invocations .*-ordered-set/)]);
    expect(await one(MORE, "NoOrderedTicks")).toEqual([]);
  });

  test("--param more-alarms must be true or false", async () => {
    await expect(settings({ "more-alarms": "yes" })).rejects.toThrow(
      "--param more-alarms=yes is neither true nor false",
    );
  });
});
