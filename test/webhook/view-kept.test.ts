/** Tests which facts about the cluster admissions keep, and for how long. */
import { beforeEach, expect, test } from "vitest";
import { ANNOUNCEMENTS_CONFIG_MAP, VALIDATING_CONFIGURATION } from "../../shared/api/names.ts";
import { webhookConfigurations } from "../../shared/install/webhooks/webhook-configurations.ts";
import type { Cluster } from "../../shared/kube/port.ts";
import { LEASE_MS } from "../../shared/webhook/view/announcements.ts";
import { clusterView, type ViewOptions } from "../../shared/webhook/view/cluster-view.ts";

let now: number;
let steady: number;
let lists: number;
let gets: string[];
const creationTimestamp = "2026-11-23T10:00:00Z";
const cluster = {
  list: async () => {
    lists++;
    return { metadata: { resourceVersion: "9" }, items: [] };
  },
  get: async (_: unknown, { name }: { readonly name: string }) => {
    gets.push(name);
    if (name === ANNOUNCEMENTS_CONFIG_MAP) return { metadata: { uid: "n", resourceVersion: "1", creationTimestamp } };
    const { webhooks } = webhookConfigurations({ url: "https://x", pathSecret: "s".repeat(43) })[1] ?? {};
    const registration = { metadata: { uid: "r", generation: 1, creationTimestamp }, webhooks };
    return name === VALIDATING_CONFIGURATION ? registration : { metadata: { name } };
  },
} as unknown as Cluster;
const view = (more: Partial<ViewOptions> = {}) =>
  clusterView({
    connect: async () => cluster,
    kruiseNamespace: "kruise-system",
    freshnessMs: 1_000,
    now: () => now,
    steady: () => steady,
    ...more,
  });

beforeEach(() => {
  [now, steady, lists, gets] = [Date.parse("2026-11-23T12:00:00Z"), 60_000, 0, []];
});

test.each([
  ["the wall clock", () => (now += 1_000)],
  ["the steady clock of a frozen process", () => (steady += 1_000)],
])("a Namespace is read again when %s says that it is too old", async (_, pass) => {
  const { getNamespace } = view();
  await getNamespace("shop");
  await getNamespace("shop");
  expect(gets).toEqual(["shop"]);
  pass();
  await getNamespace("shop");
  expect(gets).toEqual(["shop", "shop"]);
});

test("1000 Namespaces are kept, and the oldest one is dropped for a new one", async () => {
  const { getNamespace } = view();
  const names = Array.from({ length: 1_001 }, (_, index) => `n${index}`);
  for (const name of names.slice(0, 1_000)) await getNamespace(name);
  await getNamespace("n0");
  expect(gets).toHaveLength(1_000);
  await getNamespace("n1000");
  gets = [];
  for (const name of ["n1", "n999", "n1000", "n0"]) await getNamespace(name);
  expect(gets).toEqual(["n0"]);
});

test.each([
  ["for each caller without announcements", false, 0, [1, 2, 3, 4]],
  ["once when each write is announced", true, 0, [1, 1, 1, 1]],
  ["once a second when they may be a second old", true, 1_000, [1, 1, 1, 2]],
])("SidecarSets are listed %s", async (...[, isAnnounced, freshnessMs, times]) => {
  const { listSidecarSets } = view({ isAnnounced, freshnessMs });
  const seen: number[] = [];
  for (const passedMs of [0, LEASE_MS - 1, 1, 1_000]) {
    now += passedMs;
    await listSidecarSets();
    seen.push(lists);
  }
  expect(seen).toEqual(times);
  expect(gets.includes(ANNOUNCEMENTS_CONFIG_MAP)).toBe(isAnnounced && freshnessMs === 0);
});

test("announcements are not read again before a lease ends", async () => {
  const { listSidecarSets } = view({ isAnnounced: true, freshnessMs: 0 });
  const notices = async () => {
    await listSidecarSets();
    return gets.filter((name) => name === ANNOUNCEMENTS_CONFIG_MAP).length;
  };
  expect([await notices(), await notices()]).toEqual([1, 1]);
  now += LEASE_MS;
  expect(await notices()).toBe(2);
});
