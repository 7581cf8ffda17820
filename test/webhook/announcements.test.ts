/** Tests the ConfigMap of announcements on a cluster: writes and reads. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ANNOUNCEMENTS_CONFIG_MAP } from "../../shared/api/names.ts";
import { type Cluster, CONFIG_MAPS } from "../../shared/kube/port.ts";
import { NONE_YET, readNotice, writeNotice } from "../../shared/webhook/view/announcements.ts";
import { KRUISE_NAMESPACE, startTestCluster, type TestCluster } from "../controller/fixture.ts";

const key = { namespace: KRUISE_NAMESPACE, name: ANNOUNCEMENTS_CONFIG_MAP };

describe("the ConfigMap of announcements:", () => {
  let local: TestCluster;
  beforeAll(async () => {
    local = await startTestCluster();
  });
  afterAll(() => local?.close());
  beforeEach(async () => {
    await local.cluster.delete(CONFIG_MAPS, key).catch(() => undefined);
    await local.cluster.create(CONFIG_MAPS, { metadata: key });
  });
  const read = () => readNotice(local.cluster, KRUISE_NAMESPACE);

  test("readNotice returns what writeNotice wrote", async () => {
    const before = await read();
    expect(before.announcements).toEqual(NONE_YET);
    const latest = [
      { sequence: 6, name: "a", from: "", uid: "u", at: 1_000 },
      { sequence: 7, name: "b", from: "12", uid: "v", at: 2_000 },
    ];
    const announcements = { epoch: "e", sequence: 7, latest, begunAgainAt: 500 };
    await writeNotice(local.cluster, KRUISE_NAMESPACE, before, announcements);
    const after = await read();
    expect(after).toMatchObject({ uid: before.uid, createdAt: before.createdAt, announcements });
    expect(after.resourceVersion).not.toBe(before.resourceVersion);
  });

  test("writeNotice refuses to overwrite a write that it has not seen", async () => {
    const before = await read();
    await writeNotice(local.cluster, KRUISE_NAMESPACE, before, { ...NONE_YET, epoch: "first" });
    const writing = writeNotice(local.cluster, KRUISE_NAMESPACE, before, { ...NONE_YET, epoch: "second" });
    await expect(writing).rejects.toMatchObject({ code: expect.toBeOneOf([409, 422]) });
    expect((await read()).announcements.epoch).toBe("first");
  });
});

describe("readNotice without valid announcements:", () => {
  const [created, emptied] = ["2026-11-23T12:00:00Z", "2026-11-23T12:05:00Z"];
  const readFrom = async (configMap: object) => {
    const { announcements } = await readNotice({ get: async () => configMap } as unknown as Cluster, KRUISE_NAMESPACE);
    return announcements;
  };
  const metadata = (...times: readonly string[]) => ({
    creationTimestamp: created,
    managedFields: times.map((time) => ({ time })),
  });

  test.each([
    ["was never changed", metadata(), 0],
    ["was not changed after its creation", metadata(created), 0],
    ["was emptied", metadata(created, emptied), Date.parse(emptied)],
    ["was emptied, with that time first", metadata(emptied, created), Date.parse(emptied)],
    ["has no times", { managedFields: [{}] }, 0],
    ["has no metadata", undefined, 0],
  ])("there are no announcements yet in a ConfigMap that %s", async (_, known, begunAgainAt) => {
    expect(await readFrom({ metadata: known })).toEqual({ ...NONE_YET, begunAgainAt });
  });

  test.each([
    "",
    "{",
    "null",
    '{"epoch":"e","sequence":1}',
    '{"epoch":1,"sequence":1,"latest":[]}',
    '{"sequence":1,"latest":[]}',
    '{"epoch":"e","sequence":"x","latest":[]}',
    '{"epoch":"e","sequence":1.5,"latest":[]}',
    '{"epoch":1,"sequence":1.5,"latest":[]}',
  ])("invalid announcements count as emptied: %s", async (announcements) => {
    const read = await readFrom({ metadata: metadata(emptied), data: { announcements } });
    expect(read).toEqual({ ...NONE_YET, begunAgainAt: Date.parse(emptied) });
  });

  test("announcements of earlier releases have no time of a restart", async () => {
    const announcements = '{"epoch":"e","sequence":1,"latest":[["a","","u",5]]}';
    const latest = [{ sequence: 1, name: "a", from: "", uid: "u", at: 5 }];
    expect(await readFrom({ metadata: metadata(emptied), data: { announcements } })).toEqual({
      epoch: "e",
      sequence: 1,
      begunAgainAt: 0,
      latest,
    });
  });

  test("a ConfigMap without metadata has an empty uid, an empty version and no time", async () => {
    const notice = await readNotice({ get: async () => ({}) } as unknown as Cluster, KRUISE_NAMESPACE);
    expect(notice).toEqual({ uid: "", resourceVersion: "", createdAt: Number.NaN, announcements: NONE_YET });
  });
});
