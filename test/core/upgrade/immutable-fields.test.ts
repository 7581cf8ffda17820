import { describe, expect, test } from "vitest";
import { HASH_WITHOUT_IMAGE_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { immutableFields } from "../../../shared/core/rollout/upgrade/immutable-fields.ts";
import { sidecarSetHashWithoutImage } from "../../../shared/core/sidecarset/hash/sidecarset-hash.ts";
import { newRevision } from "../../../shared/core/sidecarset/revision/recorded-revision.ts";
import { podOf, sidecarSetOf } from "../../support/rollout-fixture.ts";

const AGENT: SidecarContainer = { name: "agent", image: "agent:v1", env: [{ name: "A", value: "1" }] };
const MESH: SidecarContainer = { name: "mesh", image: "mesh:v1" };
const NATIVE: SidecarContainer = { name: "proxy", image: "proxy:v1", restartPolicy: "Always" };
const PREPARE: SidecarContainer = { name: "prepare", image: "prepare:v1" };

const also = (container: SidecarContainer, fields: object): SidecarContainer => ({ ...container, ...fields });

function withSpec(spec: SidecarSetSpec): SidecarSet {
  const sidecarSet = sidecarSetOf(spec);
  const annotations = { [HASH_WITHOUT_IMAGE_ANNOTATION]: sidecarSetHashWithoutImage(spec) };
  return { ...sidecarSet, metadata: { ...sidecarSet.metadata, annotations } };
}

function recorded(spec: SidecarSetSpec, revision = 1) {
  return newRevision(withSpec(spec), { namespace: "kruise-system", revision, collisionCount: 0 });
}

const madeWith = (spec: SidecarSetSpec) => podOf({ withoutImage: sidecarSetHashWithoutImage(spec) });

interface Change {
  readonly before: SidecarSetSpec;
  readonly now: SidecarSetSpec;
  readonly fields: readonly string[];
}

const CHANGES: Readonly<Record<string, Change>> = {
  "one field of a container": {
    before: { containers: [AGENT, MESH] },
    now: { containers: [{ ...AGENT, image: "agent:v2", env: [{ name: "A", value: "2" }] }, MESH] },
    fields: ["spec.containers{agent}.env"],
  },
  "added and removed fields": {
    before: { containers: [AGENT] },
    now: { containers: [{ name: "agent", image: "agent:v2", imagePullPolicy: "Always" }] },
    fields: ["spec.containers{agent}.env", "spec.containers{agent}.imagePullPolicy"],
  },
  "a removed container": {
    before: { containers: [AGENT, MESH] },
    now: { containers: [AGENT] },
    fields: ["spec.containers{mesh}"],
  },
  "the containers when their order changes": {
    before: { containers: [AGENT, MESH] },
    now: { containers: [MESH, AGENT] },
    fields: ["spec.containers"],
  },
  "a changed field of a native sidecar": {
    before: { containers: [AGENT], initContainers: [NATIVE] },
    now: { containers: [AGENT], initContainers: [also(NATIVE, { args: ["-v"] })] },
    fields: ["spec.initContainers{proxy}.args"],
  },
  "an added native sidecar and the init container beside it": {
    before: { containers: [AGENT], initContainers: [PREPARE] },
    now: { containers: [AGENT], initContainers: [PREPARE, NATIVE] },
    fields: ["spec.initContainers{prepare}", "spec.initContainers{proxy}"],
  },
  "no init container when there is no native sidecar": {
    before: { containers: [AGENT], initContainers: [PREPARE] },
    now: { containers: [AGENT], initContainers: [also(PREPARE, { args: ["-v"] })] },
    fields: [],
  },
};

describe("fields that prevent an upgrade in place", () => {
  test.each(Object.entries(CHANGES))("immutableFields reports %s", (_what, { before, now, fields }) => {
    expect(immutableFields(withSpec(now), [madeWith(before)], [recorded(before)])).toEqual(fields);
  });

  test("immutableFields combines the fields of pods with different revisions", () => {
    const first = { containers: [MESH] };
    const second = { containers: [also(MESH, { args: ["a"] })] };
    const now = withSpec({ containers: [also(MESH, { tty: true, args: ["a"] })] });
    const pods = [first, second, first].map(madeWith);
    const fields = immutableFields(now, pods, [recorded(first, 1), recorded(second, 2)]);
    expect(fields).toEqual(["spec.containers{mesh}.args", "spec.containers{mesh}.tty"]);
  });

  test.each([
    ["whose revision is gone", [madeWith({ containers: [AGENT] })]],
    ["without a recorded hash", [podOf({ annotations: { [HASH_WITHOUT_IMAGE_ANNOTATION]: "" } })]],
  ])("immutableFields reports nothing for a pod %s", (_what, pods) => {
    expect(immutableFields(withSpec({ containers: [MESH] }), pods, [recorded({ containers: [MESH] })])).toEqual([]);
  });

  test("immutableFields reports the whole container when the revision is malformed", () => {
    const revision = { ...recorded({ containers: [AGENT] }), data: { spec: [] } };
    const fields = immutableFields(withSpec({ containers: [MESH] }), [madeWith({ containers: [AGENT] })], [revision]);
    expect(fields).toEqual(["spec.containers{mesh}"]);
  });
});
