/** Which metrics are watched, by what stands in front of the webhooks and by what an operator wants to pay for. */
import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { alarms, countAlarmMetrics } from "../../infra/aws/alarms.ts";
import { readSettings } from "../../infra/aws/settings.ts";

type Parameters = Readonly<Record<string, string>>;

const settings = (parameters: Parameters) => readSettings("sidecarset", "test", async (name) => parameters[name] ?? "");

/** Alarm → the metrics that it watches, `Namespace MetricName of dimension`. */
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

describe("an outage that no function sees", () => {
  test("shows in the metrics of the Function URL of mutate-pod", async () => {
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
  ])("shows in the metrics of %s, and a function that fails still does", async (_, parameters, metric) => {
    expect(await one(parameters, "DoorErrors")).toEqual([expect.stringMatching(metric)]);
    expect((await one(parameters, "PodErrors"))[0]).toMatch(/^AWS\/Lambda Errors .*sidecarset-test-mutate-pod/);
  });

  test("is left to another front door where there is one", async () => {
    expect(Object.keys(await watched({ "function-urls": "false" }))).not.toContain("DoorErrors");
    expect((await one({ "function-urls": "false" }, "PodErrors"))[0]).toMatch(/Errors/);
  });
});

describe("more alarms", () => {
  const MORE = { "more-alarms": "true" };

  test("are those that docs/deploy.md names, at the price that it says", async () => {
    const [few, many] = [await settings({}), await settings(MORE)];
    const price = (countAlarmMetrics(many) - countAlarmMetrics(few)) * 0.1;
    const row = (await readFile("docs/deploy.md", "utf8"))
      .split("\n")
      .find((line) => line.startsWith("| `more-alarms`"));
    expect(row).toContain(`($${price.toFixed(2)} a month)`);
    const added = Object.keys(alarms(many)).filter((id) => !(id in alarms(few)));
    expect(added.toSorted()).toEqual(["PodsSlow", "SidecarSetThrottles", "TurnedAway"]);
    for (const id of [...added, "SidecarSetErrors"]) expect(row).toContain(`\`${id}\``);
  });

  test("a webhook that is about to be given up on is seen before it is, cold starts included", async () => {
    expect(alarms(await settings(MORE))["PodsSlow"]).toMatchObject({
      Properties: { MetricName: "UrlRequestLatency", Statistic: "Maximum", Threshold: 4_000, DatapointsToAlarm: 2 },
    });
    expect(await one({ ...MORE, ...DOMAIN }, "PodsSlow")).toEqual([expect.stringMatching(/^AWS\/Lambda Duration/)]);
  });

  test("requests that are turned away are counted at the door", async () => {
    expect(await one(MORE, "TurnedAway")).toEqual([expect.stringMatching(/Url4xxCount .*mutate-pod/)]);
    expect(await one({ ...MORE, ...DOMAIN }, "TurnedAway")).toEqual([expect.stringMatching(/ApiGateway 4xx/)]);
    expect(await one({ ...MORE, ...BALANCER }, "TurnedAway")).toEqual([expect.stringMatching(/Target_4XX/)]);
  });

  test("every webhook of SidecarSets is watched from outside, conversions at their URL whatever the others have", async () => {
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

  test("ordered sets that are not reconciled any more are seen where they were asked for", async () => {
    const ordered = { ...MORE, "ordered-sets": "true" };
    expect(await one(ordered, "NoOrderedTicks")).toEqual([expect.stringMatching(/Invocations .*-ordered-set/)]);
    expect(await one(MORE, "NoOrderedTicks")).toEqual([]);
  });

  test("are asked for by true or false", async () => {
    await expect(settings({ "more-alarms": "yes" })).rejects.toThrow(
      "--param more-alarms=yes is neither true nor false",
    );
  });
});
