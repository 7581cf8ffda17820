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

describe("isEveryWriteAnnounced:", () => {
  test.each([
    ["true for our own registration", validation(), true],
    [
      "true for a registration with a Service of the cluster",
      changed({ clientConfig: { service: { path: "/x/announce-apps-kruise-io-sidecarset" } } }),
      true,
    ],
    ["true for a registration with another webhook beside ours", [{ name: "other" }, ...validation()], true],
    [
      "true for a registration with more resources",
      changed({ rules: [{ ...rule, resources: ["*/*"], apiVersions: ["*"], operations: ["*"] }] }),
      true,
    ],
    ["false for OpenKruise's registration", validation({ likeOpenKruise: true }), false],
    ["false for a registration without webhooks", [], false],
    ["false for a registration that ignores failures", changed({ failurePolicy: "Ignore" }), false],
    [
      "false for a registration without deletions",
      changed({ rules: [{ ...rule, operations: ["CREATE", "UPDATE"] }] }),
      false,
    ],
    [
      "false for a registration without the status",
      changed({ rules: [{ ...rule, resources: ["sidecarsets"] }] }),
      false,
    ],
    [
      "false for a registration with an object selector",
      changed({ objectSelector: { matchLabels: { a: "b" } } }),
      false,
    ],
    [
      "false for a registration with another match condition",
      changed({ matchConditions: [{ name: "x", expression: "false" }] }),
      false,
    ],
    ["false for a registration with matchPolicy Exact", changed({ matchPolicy: "Exact" }), false],
    ["false for a registration of namespaced objects", changed({ rules: [{ ...rule, scope: "Namespaced" }] }), false],
    [
      "false for a registration with another path",
      changed({ clientConfig: { url: "https://x/validate-apps-kruise-io-sidecarset" } }),
      false,
    ],
  ] as const)("isEveryWriteAnnounced is %s", (_, webhooks, expected) => {
    expect(isEveryWriteAnnounced(webhooks)).toBe(expected);
  });
});

const NOW = Date.parse("2026-11-23T12:00:00Z");
const at = (minutesAgo: number) => new Date(NOW - minutesAgo * 60_000).toISOString();

/** Time at which the process has run for an hour. */
const STARTED = 60 * 60_000;

describe("trustedNotice:", () => {
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
  const isTrusted = async () => typeof (await read(cluster)) !== "string";

  beforeEach(() => {
    [steady, gets] = [STARTED, []];
    [registration, notice] = [registered(60), noticed(60)];
    read = trustedNotice({ kruiseNamespace: "kruise-system", now: () => NOW, steady: () => steady });
  });

  test("announcements are trusted at once when both objects are old, and the registration is read every two seconds", async () => {
    expect(await isTrusted()).toBe(true);
    expect(await isTrusted()).toBe(true);
    expect(gets.sort()).toEqual(["configmaps", "configmaps", "validatingwebhookconfigurations"]);
    steady = STARTED + 2_000;
    await isTrusted();
    expect(gets.filter((plural) => plural !== "configmaps")).toHaveLength(2);
  });

  test("announcements are trusted with the clock of this process when no other clock is given", async () => {
    read = trustedNotice({ kruiseNamespace: "kruise-system", now: () => NOW });
    expect(await isTrusted()).toBe(true);
  });

  test("announcements are trusted at once when the ConfigMap is newer than the registration but old", async () => {
    notice = noticed(30);
    expect(await isTrusted()).toBe(true);
  });

  test.each([
    ["a new registration is trusted after its settling time", () => registered(1), () => noticed(1), IN_FORCE_MS],
    [
      "a registration that is five minutes old is trusted after its settling time",
      () => registered(5),
      () => noticed(5),
      IN_FORCE_MS,
    ],
    [
      "a registration that changed a minute ago is trusted after its settling time",
      () => registered(60, { managedFields: [{ time: at(1) }] }),
      () => noticed(60),
      IN_FORCE_MS,
    ],
    [
      "a ConfigMap newer than the registration is trusted when no earlier write can be pending",
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

  test("a trusted registration that changes is trusted again after its settling time", async () => {
    expect(await isTrusted()).toBe(true);
    registration = registered(0, { generation: 2 });
    steady = STARTED + 2_000;
    expect(await isTrusted()).toBe(false);
    steady = STARTED + 2_000 + IN_FORCE_MS;
    expect(await isTrusted()).toBe(true);
  });

  test("a registration that changes after a long time is trusted again after its settling time", async () => {
    expect(await isTrusted()).toBe(true);
    registration = registered(0, { generation: 2 });
    steady = STARTED + 2 * IN_FORCE_MS;
    expect(await isTrusted()).toBe(false);
    steady = STARTED + 3 * IN_FORCE_MS - 1;
    expect(await isTrusted()).toBe(false);
    steady = STARTED + 3 * IN_FORCE_MS;
    expect(await isTrusted()).toBe(true);
  });

  test("a registration that was deleted and created again is another one, although its generation is the same", async () => {
    expect(await isTrusted()).toBe(true);
    registration = registered(0, { uid: "made-again" });
    steady = STARTED + 2 * IN_FORCE_MS;
    expect(await isTrusted()).toBe(false);
  });

  test("a registration without webhooks or without a creation time is not trusted", async () => {
    registration = { metadata: { uid: "r", generation: 1, creationTimestamp: at(60) } };
    expect(await isTrusted()).toBe(false);
    registration = { ...registered(60), metadata: { uid: "r", generation: 1 } };
    steady = STARTED + 2_000;
    expect(await isTrusted()).toBe(false);
  });

  test.each([
    ["the ConfigMap does not exist", 404],
    ["the role may not read the ConfigMap", 403],
  ])("announcements are not trusted, without an error, when %s", async (_, code) => {
    notice = new KubeError("no", { code, reason: "x" });
    expect(await isTrusted()).toBe(false);
  });

  test("only one of the calls within two seconds reads the registration when it announces nothing", async () => {
    registration = { metadata: {}, webhooks: [] };
    for (let times = 0; times < 10; times++) expect(await isTrusted()).toBe(false);
    expect(gets).toHaveLength(2);
  });

  test("a failure of the API server is an error and not a reason to distrust announcements", async () => {
    expect(await isTrusted()).toBe(true);
    notice = new KubeError("away", { code: 503, reason: "ServiceUnavailable" });
    await expect(isTrusted()).rejects.toThrow("away");
  });

  test.each([503, 429, 500, 0])(
    "a registration that cannot be read (%s) is read again by each call until it is read, and its change counts at once",
    async (code) => {
      expect(await isTrusted()).toBe(true);
      const unannounced = { ...registered(60, { generation: 2 }), webhooks: [] };
      registration = new KubeError("away", { code, reason: "x", isOutcomeKnown: true });
      steady = STARTED + 2_000;
      for (let call = 0; call < 3; call++) await expect(isTrusted()).rejects.toThrow("away");
      registration = unannounced;
      expect(await isTrusted()).toBe(false);
    },
  );
});
