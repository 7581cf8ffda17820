import { describe, expect, test } from "vitest";
import type { ControllerRevision, Pod } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { planHistory } from "../../../shared/core/rollout/history/history.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { listedPod } from "../../support/objects.ts";

const NAMESPACE = "kruise-system";
const HASH_LABEL = "controller.kubernetes.io/hash";
const VERSION_LABEL = "apps.kruise.io/sidecarset-custom-version";

function sidecarSet(image: string, spec: SidecarSetSpec = {}): SidecarSet {
  return { metadata: { name: "log", uid: "set" }, spec: { containers: [{ name: "agent", image }], ...spec } };
}

/** Returns the revision of the SidecarSet with this image. Without changes its name, labels and owner are correct. */
function revisionOf(
  image: string,
  revision: number,
  metadata: ControllerRevision["metadata"] = {},
): ControllerRevision {
  const made = newRevision(sidecarSet(image), { namespace: NAMESPACE, revision, collisionCount: 0 });
  return { ...made, metadata: { ...made.metadata, ...metadata } };
}

function plan(
  given: SidecarSet,
  revisions: readonly ControllerRevision[],
  { taken = [], matched = [] }: { taken?: readonly ControllerRevision[]; matched?: readonly Pod[] } = {},
) {
  return planHistory(
    { sidecarSet: given, revisions, taken },
    matched.map((pod) => ({ pod })),
    NAMESPACE,
  );
}

const nameOf = (revision: ControllerRevision) => revision.metadata?.name ?? "";

describe("planHistory", () => {
  test("the first revision has the number 1", () => {
    const { actions, latest } = plan(sidecarSet("a:1"), []);
    const created = revisionOf("a:1", 1);
    expect(actions).toEqual([{ kind: "CreateRevision", revision: created }]);
    expect(latest).toEqual({ name: nameOf(created), collisionCount: 0 });
  });

  test("a new revision has the next number", () => {
    const { actions } = plan(sidecarSet("a:2"), [revisionOf("a:1", 7)]);
    expect(actions).toMatchObject([{ kind: "CreateRevision", revision: { revision: 8 } }]);
  });

  test("nothing is written while the newest revision has the same content", () => {
    const newest = revisionOf("a:2", 2);
    expect(plan(sidecarSet("a:2"), [newest, revisionOf("a:1", 1)])).toEqual({
      actions: [],
      latest: { name: nameOf(newest), collisionCount: 0 },
    });
  });

  test("an older revision with the same content gets the newest number", () => {
    const older = revisionOf("a:1", 1);
    expect(plan(sidecarSet("a:1"), [older, revisionOf("a:2", 2)])).toEqual({
      actions: [{ kind: "RenumberRevision", name: nameOf(older), namespace: NAMESPACE, revision: 3 }],
      latest: { name: nameOf(older), collisionCount: 0 },
    });
  });

  const ties: readonly [
    sentence: string,
    first: ControllerRevision["metadata"],
    second: ControllerRevision["metadata"],
  ][] = [
    [
      "the one that was created later",
      { creationTimestamp: "2025-01-01T00:00:00Z" },
      { creationTimestamp: "2025-01-02T00:00:00Z" },
    ],
    ["the one with a creation time", {}, { creationTimestamp: "2025-01-02T00:00:00Z" }],
    ["the one with the later name", { name: "a" }, { name: "b" }],
  ];
  test.each(ties)("when two revisions have the same number, the newest is %s", (_, first, second) => {
    const [older, newer] = [revisionOf("a:1", 3, first), revisionOf("a:2", 3, second)];
    for (const revisions of [
      [older, newer],
      [newer, older],
    ]) {
      expect(plan(sidecarSet("a:2"), revisions).actions).toEqual([]);
      expect(plan(sidecarSet("a:1"), revisions).actions).toMatchObject([{ kind: "RenumberRevision", revision: 4 }]);
    }
  });

  const owners: readonly [sentence: string, uid: string, controller: boolean, isOurs: boolean][] = [
    ["a revision that the SidecarSet controls counts", "set", true, true],
    ["a revision that another object controls does not count", "other", true, false],
    ["a revision that another object owns but does not control counts", "other", false, true],
  ];
  test.each(owners)("%s", (_, uid, controller, isOurs) => {
    const owner = { apiVersion: "v1", kind: "K", name: "n", uid, controller };
    const { actions } = plan(sidecarSet("a:2"), [revisionOf("a:1", 4, { ownerReferences: [owner] })]);
    expect(actions).toMatchObject([{ kind: "CreateRevision", revision: { revision: isOurs ? 5 : 1 } }]);
  });

  test("a revision without an owner or without metadata counts", () => {
    const { metadata: _, ...bare } = revisionOf("a:1", 4);
    expect(plan(sidecarSet("a:2"), [bare]).actions).toMatchObject([{ revision: { revision: 5 } }]);
    expect(plan(sidecarSet("a:1"), [bare])).toEqual({ actions: [], latest: { name: "", collisionCount: 0 } });
    expect(plan({ spec: sidecarSet("a:1").spec }, [bare]).actions).toEqual([]);
  });

  const hashes: readonly [sentence: string, hash: string, isSame: boolean][] = [
    ["found under its own hash", "", true],
    ["not found under another hash that is a 32-bit number", "7", false],
    ["not found under another hash with a minus sign", "-7", false],
    ["found under the same number with a plus sign", "+5", true],
    ["found under another hash that is not a number", "7a", true],
    ["found under another hash that is a number beyond 32 bits", "2147483648", true],
    ["found under another hash with a decimal point", "7.0", true],
  ];
  test.each(hashes)("a revision with the same content is %s", (_, hash, isSame) => {
    const image = numericImage();
    const labels = { ...revisionOf(image, 1).metadata?.labels, ...(hash === "" ? {} : { [HASH_LABEL]: hash }) };
    const own = revisionOf(image, 1).metadata?.labels?.[HASH_LABEL] ?? "";
    if (hash === "+5") labels[HASH_LABEL] = `+${own}`;
    const { actions } = plan(sidecarSet(image), [revisionOf(image, 1, { labels, name: "found" })]);
    expect(actions.map(({ kind }) => kind)).toEqual(isSame ? [] : ["CreateRevision"]);
  });

  /** Returns an image whose revision has a hash of only digits; most hashes have letters. */
  function numericImage(): string {
    for (let tag = 0; ; tag++) {
      const hash = revisionOf(`a:${tag}`, 1).metadata?.labels?.[HASH_LABEL] ?? "";
      if (/^\d+$/.test(hash) && Number(hash) < 2 ** 31) return `a:${tag}`;
    }
  }
});

describe("revision names that are taken", () => {
  const other = revisionOf("b:1", 1);
  const wanted = nameOf(revisionOf("a:1", 1));

  test("a new revision gets another name when other content has its name", () => {
    const { actions, latest } = plan(sidecarSet("a:1"), [], { taken: [{ ...other, metadata: { name: wanted } }] });
    expect(latest.collisionCount).toBe(1);
    expect(latest.name).not.toBe(wanted);
    expect(actions).toMatchObject([
      { kind: "CreateRevision", revision: { revision: 1, metadata: { name: latest.name } } },
    ]);
  });

  test("a revision with the same name and content is used again", () => {
    const taken = [revisionOf("a:1", 9, { labels: {} })];
    const { actions, latest } = plan(sidecarSet("a:1"), [], { taken });
    expect([actions, latest]).toEqual([[], { name: wanted, collisionCount: 0 }]);
  });

  test("the collision count starts at the value in the status", () => {
    const { latest } = plan({ ...sidecarSet("a:1"), status: { collisionCount: 3 } }, []);
    expect(latest.collisionCount).toBe(3);
  });

  test("a SidecarSet without a name has a revision name that starts with a dash", () => {
    expect(plan({ spec: sidecarSet("a:1").spec }, []).latest.name).toMatch(/^-\w+$/);
  });
});

describe("customVersion", () => {
  const newest = revisionOf("a:1", 1);

  test("a custom version labels the latest revision once", () => {
    const given = sidecarSet("a:1", { customVersion: "v1" });
    expect(plan(given, [newest]).actions).toEqual([
      { kind: "LabelRevision", name: nameOf(newest), namespace: NAMESPACE, customVersion: "v1" },
    ]);
    const labels = { ...newest.metadata?.labels, [VERSION_LABEL]: "v1" };
    expect(plan(given, [revisionOf("a:1", 1, { labels })]).actions).toEqual([]);
  });

  test("a removed custom version leaves its label on the revision", () => {
    const labels = { ...newest.metadata?.labels, [VERSION_LABEL]: "v1" };
    expect(plan(sidecarSet("a:1"), [revisionOf("a:1", 1, { labels })]).actions).toEqual([]);
  });

  test("a custom version labels a revision without labels or metadata", () => {
    const { labels: _, ...metadata } = newest.metadata ?? {};
    const { metadata: __, ...bare } = newest;
    const given = sidecarSet("a:1", { customVersion: "v1" });
    for (const revision of [{ ...bare, metadata }, bare]) {
      expect(plan(given, [revision]).actions).toMatchObject([{ kind: "LabelRevision" }]);
    }
  });
});

describe("revisionHistoryLimit", () => {
  /** The images of r1 to r12; r12 has the content of the SidecarSet. */
  const images = Array.from({ length: 12 }, (_, index) => `a:${index + 1}`);
  const revisions = images.map((image, index) =>
    revisionOf(image, index + 1, { name: `r${index + 1}`, uid: `u${index + 1}` }),
  );
  const deleted = (spec: SidecarSetSpec, matched: readonly Pod[] = [], history = revisions) =>
    plan(sidecarSet("a:12", spec), history, { matched }).actions.map((action) =>
      action.kind === "DeleteRevision" ? `${action.name} ${action.uid}` : action.kind,
    );
  const podAt = (controllerRevision: string): Pod =>
    listedPod({
      annotations: { "kruise.io/sidecarset-hash": JSON.stringify({ log: { hash: "h", controllerRevision } }) },
    });

  test("revisions beyond ten are deleted, the oldest first", () => {
    expect(deleted({})).toEqual(["r1 u1", "r2 u2"]);
  });

  test("revisions up to revisionHistoryLimit are kept", () => {
    expect(deleted({ revisionHistoryLimit: 12 })).toEqual([]);
    expect(deleted({ revisionHistoryLimit: 11 })).toEqual(["r1 u1"]);
  });

  test("one revision is kept when revisionHistoryLimit is 0 or negative", () => {
    expect(deleted({ revisionHistoryLimit: 0 })).toHaveLength(11);
    expect(deleted({ revisionHistoryLimit: -5 })).toHaveLength(11);
  });

  test("a revision that a pod has is kept", () => {
    const unknown: readonly Pod[] = [
      { spec: { containers: [] } },
      { metadata: {}, spec: { containers: [] } },
      podAt(""),
    ];
    expect(deleted({}, [podAt("r1"), ...unknown])).toEqual(["r2 u2", "r3 u3"]);
  });

  test("a revision that is injected by name is kept", () => {
    expect(deleted({ injectionStrategy: { revision: { revisionName: "r2" } } })).toEqual(["r1 u1", "r3 u3"]);
  });

  test("the newest revision of an injected custom version is kept", () => {
    const labels = { [VERSION_LABEL]: "v1" };
    const labelled = revisions.map((revision, index) =>
      index < 2 ? { ...revision, metadata: { ...revision.metadata, labels } } : revision,
    );
    const spec = { injectionStrategy: { revision: { customVersion: "v1" } } };
    expect(deleted(spec, [], labelled)).toEqual(["r1 u1", "r3 u3"]);
  });

  test("the newest revision without a version is kept when the empty custom version is injected", () => {
    const labels = { [VERSION_LABEL]: "v1" };
    const labelled = revisions.map((revision, index) =>
      index === 0 ? revision : { ...revision, metadata: { ...revision.metadata, labels } },
    );
    const spec = { customVersion: "v1", injectionStrategy: { revision: { customVersion: "" } } };
    expect(deleted(spec, [], labelled)).toEqual(["r2 u2", "r3 u3"]);
  });

  test("no revision is deleted when pods have all of them", () => {
    const matched = revisions.map((revision) => podAt(nameOf(revision)));
    expect(deleted({}, matched)).toEqual([]);
  });

  test("a revision without metadata is deleted with an empty name and without a uid", () => {
    const { metadata: _, ...bare } = revisionOf("b:1", 0);
    const { actions } = plan(sidecarSet("a:12", { revisionHistoryLimit: 12 }), [bare, ...revisions]);
    expect(actions).toEqual([{ kind: "DeleteRevision", name: "", namespace: NAMESPACE }]);
  });

  test("a SidecarSet without a name does not keep the revisions that pods record for another name", () => {
    const { spec } = sidecarSet("a:12");
    const { actions } = planHistory(
      { sidecarSet: { metadata: { uid: "set" }, spec }, revisions, taken: [] },
      [{ pod: podAt("r1") }],
      NAMESPACE,
    );
    expect(actions).toMatchObject([{ name: "r1" }, { name: "r2" }]);
  });
});
