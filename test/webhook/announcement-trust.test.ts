import { beforeEach, describe, expect, test } from "vitest";
import { ANNOUNCEMENTS_CONFIG_MAP, VALIDATING_CONFIGURATION } from "../../shared/api/names.ts";
import { isEveryWriteAnnounced } from "../../shared/core/injection/match/announced-writes.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import { KubeError } from "../../shared/kube/error.ts";
import type { Cluster, Resource } from "../../shared/kube/port.ts";
import { IN_FORCE_MS, trustedNotice } from "../../shared/webhook/view/announcement-trust.ts";
import { LANDS_MS } from "../../shared/webhook/view/announcements.ts";

type Webhooks = Parameters<typeof isEveryWriteAnnounced>[0];

const ADDRESS = { url: "https://webhooks.example.com", pathSecret: "s".repeat(43) };
const validation = (options = {}) => (webhookConfigurations(ADDRESS, options)[1]?.webhooks ?? []) as Webhooks;
const changed = (more: object): Webhooks => validation().map((webhook) => ({ ...webhook, ...more }));
const [rule] = validation()[0]?.rules ?? [];

describe("every write is announced", () => {
  test.each([
    ["as we register it", validation(), true],
    [
      "at a Service of the cluster",
      changed({ clientConfig: { service: { path: "/x/announce-apps-kruise-io-sidecarset" } } }),
      true,
    ],
    ["beside another webhook", [{ name: "other" }, ...validation()], true],
    [
      "with more resources",
      changed({ rules: [{ ...rule, resources: ["*/*"], apiVersions: ["*"], operations: ["*"] }] }),
      true,
    ],
    ["not by OpenKruise's registration", validation({ likeOpenKruise: true }), false],
    ["not by nobody", [], false],
    ["not where failures are ignored", changed({ failurePolicy: "Ignore" }), false],
    ["not without deletions", changed({ rules: [{ ...rule, operations: ["CREATE", "UPDATE"] }] }), false],
    ["not without the status", changed({ rules: [{ ...rule, resources: ["sidecarsets"] }] }), false],
    ["not for some only", changed({ objectSelector: { matchLabels: { a: "b" } } }), false],
    ["not under another condition", changed({ matchConditions: [{ name: "x", expression: "false" }] }), false],
    ["not where other versions pass by", changed({ matchPolicy: "Exact" }), false],
    ["not for namespaced ones", changed({ rules: [{ ...rule, scope: "Namespaced" }] }), false],
    ["not at another path", changed({ clientConfig: { url: "https://x/validate-apps-kruise-io-sidecarset" } }), false],
  ] as const)("%s", (_, webhooks, expected) => {
    expect(isEveryWriteAnnounced(webhooks)).toBe(expected);
  });
});

const NOW = Date.parse("2026-11-23T12:00:00Z");
const at = (minutesAgo: number) => new Date(NOW - minutesAgo * 60_000).toISOString();

/** A process that has run for long. */
const STARTED = 60 * 60_000;

describe("announcements are gone by", () => {
  let steady: number;
  let gets: string[];
  let registration: object | KubeError;
  let notice: object | KubeError;
  let read: ReturnType<typeof trustedNotice>;
  const cluster = {
    get: async ({ plural }: Resource, { name }: { readonly name: string }) => {
      gets.push(plural);
      const answer = { [ANNOUNCEMENTS_CONFIG_MAP]: notice, [VALIDATING_CONFIGURATION]: registration }[name];
      if (answer instanceof KubeError) throw answer;
      return answer;
    },
  } as unknown as Cluster;
  const registered = (createdMinutesAgo: number, more: object = {}) => ({
    metadata: { uid: "r", generation: 1, creationTimestamp: at(createdMinutesAgo), ...more },
    webhooks: validation(),
  });
  const noticed = (createdMinutesAgo: number, uid = "n") => ({
    metadata: { uid, resourceVersion: "1", creationTimestamp: at(createdMinutesAgo) },
  });
  const isTrusted = async () => (await read(cluster)) !== undefined;

  beforeEach(() => {
    [steady, gets] = [STARTED, []];
    [registration, notice] = [registered(60), noticed(60)];
    read = trustedNotice({ kruiseNamespace: "kruise-system", now: () => NOW, steady: () => steady });
  });

  test("at once where both are there for long; the registration is looked at every two seconds", async () => {
    expect(await isTrusted()).toBe(true);
    expect(await isTrusted()).toBe(true);
    expect(gets.sort()).toEqual(["configmaps", "configmaps", "validatingwebhookconfigurations"]);
    steady = STARTED + 2_000;
    await isTrusted();
    expect(gets.filter((plural) => plural !== "configmaps")).toHaveLength(2);
  });

  test("by the clock of this process where no other is given", async () => {
    read = trustedNotice({ kruiseNamespace: "kruise-system", now: () => NOW });
    expect(await isTrusted()).toBe(true);
  });

  test("at once where both are there for long, the ConfigMap for less", async () => {
    notice = noticed(30);
    expect(await isTrusted()).toBe(true);
  });

  test.each([
    [
      "a new registration when nothing is under way that it did not see",
      () => registered(1),
      () => noticed(1),
      IN_FORCE_MS,
    ],
    ["one that is not there for more than five minutes too", () => registered(5), () => noticed(5), IN_FORCE_MS],
    [
      "one that was changed a minute ago too",
      () => registered(60, { managedFields: [{ time: at(1) }] }),
      () => noticed(60),
      IN_FORCE_MS,
    ],
    [
      "a ConfigMap that is newer than the registration when nothing is under way any more",
      () => registered(60),
      () => noticed(1),
      LANDS_MS + 1,
    ],
  ])("%s", async (_, registrationThen, noticeThen, afterMs) => {
    [registration, notice] = [registrationThen(), noticeThen()];
    expect(await isTrusted()).toBe(false);
    steady = STARTED + afterMs - 1;
    expect(await isTrusted()).toBe(false);
    steady = STARTED + afterMs;
    expect(await isTrusted()).toBe(true);
  });

  test("a registration that changes is waited for again", async () => {
    expect(await isTrusted()).toBe(true);
    registration = registered(0, { generation: 2 });
    steady = STARTED + 2_000;
    expect(await isTrusted()).toBe(false);
    steady = STARTED + 2_000 + IN_FORCE_MS;
    expect(await isTrusted()).toBe(true);
  });

  test("one that changes after it was gone by for long is waited for as long", async () => {
    expect(await isTrusted()).toBe(true);
    registration = registered(0, { generation: 2 });
    steady = STARTED + 2 * IN_FORCE_MS;
    expect(await isTrusted()).toBe(false);
    steady = STARTED + 3 * IN_FORCE_MS - 1;
    expect(await isTrusted()).toBe(false);
    steady = STARTED + 3 * IN_FORCE_MS;
    expect(await isTrusted()).toBe(true);
  });

  test("not where the registration has no webhooks, or does not say since when it is there", async () => {
    registration = { metadata: { uid: "r", generation: 1, creationTimestamp: at(60) } };
    expect(await isTrusted()).toBe(false);
    registration = { ...registered(60), metadata: { uid: "r", generation: 1 } };
    steady = STARTED + 2_000;
    expect(await isTrusted()).toBe(false);
  });

  test.each([
    ["there is no ConfigMap", 404],
    ["our role does not let us see it", 403],
  ])("not where %s, and that is no failure", async (_, code) => {
    notice = new KubeError("no", { code, reason: "x" });
    expect(await isTrusted()).toBe(false);
  });

  test("where nothing is announced, only one call in two seconds asks for it", async () => {
    registration = { metadata: {}, webhooks: [] };
    for (let times = 0; times < 10; times++) expect(await isTrusted()).toBe(false);
    expect(gets).toHaveLength(2);
  });

  test("an API server that fails is a failure, not a reason to list", async () => {
    expect(await isTrusted()).toBe(true);
    notice = new KubeError("away", { code: 503, reason: "ServiceUnavailable" });
    await expect(isTrusted()).rejects.toThrow("away");
  });
});
