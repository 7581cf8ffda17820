import { describe, expect, it } from "vitest";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { newRevision, revisionData, revisionText } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { restoreRevision } from "../../../shared/core/sidecarset/revision/restore-revision.ts";

const SIDECAR_SET: SidecarSet = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "s", uid: "u", labels: { team: "a" }, annotations: { "kruise.io/sidecarset-hash": "H" } },
  spec: {
    selector: { matchLabels: { app: "web" } },
    containers: [{ name: "c", image: "c:1" }],
    volumes: [],
    updateStrategy: { paused: true },
    customVersion: "v1",
  },
  status: { matchedPods: 3 },
};
const PLACE = { namespace: "kruise-system", revision: 2, collisionCount: 0 };

describe("newRevision", () => {
  it("the data of a revision has sorted keys, so that an API server stores the same bytes again", () => {
    const data = revisionData(SIDECAR_SET);
    expect(JSON.stringify(data)).toBe(revisionText(data));
  });

  it("a revision is named after the hash of its content, and belongs to its SidecarSet", () => {
    const { metadata, revision } = newRevision(SIDECAR_SET, PLACE);
    const hash = metadata?.labels?.["controller.kubernetes.io/hash"];
    expect(revision).toBe(2);
    expect(metadata).toMatchObject({
      name: `s-${hash}`,
      namespace: "kruise-system",
      labels: { team: "a", "kruise.io/sidecarset-name": "s", "apps.kruise.io/sidecarset-custom-version": "v1" },
      annotations: { "kruise.io/sidecarset-hash": "H" },
      ownerReferences: [{ kind: "SidecarSet", uid: "u", controller: true }],
    });
  });

  it("selector and updateStrategy do not change the name of a revision", () => {
    const { containers } = SIDECAR_SET.spec;
    const other: SidecarSet = { ...SIDECAR_SET, spec: { ...(containers === undefined ? {} : { containers }) } };
    expect(newRevision(other, PLACE).metadata?.name).toBe(newRevision(SIDECAR_SET, PLACE).metadata?.name);
  });

  it("a long SidecarSet name is cut to make room for the hash", () => {
    const long = { ...SIDECAR_SET, metadata: { name: "n".repeat(250) } };
    expect(newRevision(long, PLACE).metadata?.name).toMatch(/^n{223}-\w+$/);
  });

  it("newRevision throws when the spec does not fit its type", () => {
    const broken = { spec: { containers: 1 } } as unknown as SidecarSet;
    expect(() => newRevision(broken, PLACE)).toThrow("containers must be a list");
  });
});

describe("restoreRevision", () => {
  const revision = newRevision(SIDECAR_SET, PLACE);
  const current: SidecarSet = {
    ...SIDECAR_SET,
    metadata: { ...SIDECAR_SET.metadata, annotations: { "kruise.io/sidecarset-hash": "now", note: "n" } },
    spec: { containers: [{ name: "c", image: "c:2" }], selector: {} },
  };

  it("a restored SidecarSet has the recorded spec and hash, and otherwise its present metadata", () => {
    const restored = restoreRevision(current, revision);
    expect(restored).toMatchObject({
      kind: "Decoded",
      value: {
        metadata: { uid: "u", annotations: { "kruise.io/sidecarset-hash": "H", note: "n" } },
        spec: { containers: [{ image: "c:1" }] },
        status: { matchedPods: 3, latestRevision: revision.metadata?.name },
      },
    });
    expect(restored).not.toHaveProperty("value.spec.selector");
  });

  it.each([undefined, null, "text", {}])("a revision whose data is %j restores an empty spec", (data) => {
    expect(restoreRevision(current, { ...revision, data })).toMatchObject({ kind: "Decoded", value: { spec: {} } });
  });

  it("restoreRevision accepts a SidecarSet and a revision without metadata", () => {
    const { metadata: _metadata, ...bare } = revision;
    const restored = restoreRevision({ spec: {} }, bare);
    expect(restored).toMatchObject({ kind: "Decoded", value: { spec: { containers: [{ image: "c:1" }] } } });
    expect(restored).not.toHaveProperty("value.status.latestRevision");
    expect(restoreRevision({ spec: {} }, { ...bare, data: { spec: 1 } })).toEqual({
      kind: "DecodeError",
      message: "revision : spec: the object must be an object, not the number 1",
    });
  });
});
