import { describe, expect, it } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { PatchPodMetadata, SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { validateConflicts } from "../../../shared/core/sidecarset/validate/conflict.ts";
import { container, errorsOf, other, sidecarSet } from "./fixture.ts";

const TAKEN = 'spec.containers: Invalid value: "agent": container agent already exist in other';

describe("a SidecarSet is in conflict", () => {
  const isolated = { containers: [container({ name: "x" })] };
  const patching = (patchPolicy: string | undefined, name?: string): SidecarSet => {
    const patch: PatchPodMetadata = { annotations: { a: "b" }, ...(patchPolicy === undefined ? {} : { patchPolicy }) };
    return name === undefined
      ? sidecarSet({ patchPodMetadata: [patch] })
      : other({ ...isolated, patchPodMetadata: [patch] }, name);
  };
  const spaces = (name: string): Partial<SidecarSetSpec> => ({
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
  });
  const rows: readonly (readonly [string, SidecarSet, readonly SidecarSet[], readonly string[]])[] = [
    ["not with itself", sidecarSet(), [sidecarSet()], []],
    ["over a container", sidecarSet(), [other()], [TAKEN]],
    [
      "with the last that has the container",
      sidecarSet(),
      [other(), other({}, "z"), other(isolated, "y")],
      [TAKEN.replace("other", "z")],
    ],
    [
      "with the last by name, in whatever order they come",
      sidecarSet(),
      [other({}, "z"), other({}, "B"), other()],
      [TAKEN.replace("other", "z")],
    ],
    [
      "over an init container",
      sidecarSet({ initContainers: [container({ name: "i" })] }),
      [other({ ...isolated, initContainers: [container({ name: "i" })] })],
      ['spec.containers: Invalid value: "i": container i already exist in other'],
    ],
    [
      "not over an init container and a container",
      sidecarSet({ initContainers: [container({ name: "x" })] }),
      [other(isolated)],
      [],
    ],
    ["not in other namespaces", sidecarSet(spaces("a")), [other(spaces("b"))], []],
    ["in the same namespace", sidecarSet(spaces("a")), [other(spaces("a"))], [TAKEN]],
    ["in every namespace, seen from one", sidecarSet(spaces("a")), [other()], [TAKEN]],
    ["in one namespace, seen from all", sidecarSet(), [other(spaces("a"))], [TAKEN]],
    ["over an annotation that both overwrite", patching("Overwrite"), [patching("Overwrite", "other")], [patchTaken()]],
    [
      "over an annotation that it overwrites",
      patching("Overwrite"),
      [patching("MergePatchJson", "other")],
      [patchTaken()],
    ],
    [
      "over an annotation that the other overwrites",
      patching("MergePatchJson"),
      [patching("Overwrite", "other")],
      [patchTaken()],
    ],
    ["not over an annotation that both merge", patching("MergePatchJson"), [patching("MergePatchJson", "other")], []],
    ["not over an annotation that it only adds", patching("Retain"), [patching("Overwrite", "other")], []],
    ["not over an annotation that the other only adds", patching("Overwrite"), [patching("Retain", "other")], []],
    [
      "not over another annotation",
      patching("Overwrite"),
      [other({ ...isolated, patchPodMetadata: [{ patchPolicy: "Overwrite" }] })],
      [],
    ],
  ];
  it.each(rows)("%s", (_sentence, given, sidecarSets, errors) => {
    expect(errorsOf(given, { sidecarSets, isAllowedByDefault: true })).toEqual(errors);
  });

  function patchTaken(): string {
    return 'spec.patchPodMetadata: Invalid value: "a": annotation a is in conflict with sidecarset other';
  }

  it("with none that selects nothing, nor when it selects nothing itself", () => {
    const { selector: _selector, ...nothing } = sidecarSet().spec;
    expect(validateConflicts(sidecarSet(), [{ metadata: { name: "other" }, spec: nothing }])).toEqual([]);
    expect(validateConflicts({ metadata: { name: "logs" }, spec: nothing }, [other()])).toEqual([]);
  });

  it("with one without a name, and without one itself", () => {
    const { spec } = sidecarSet();
    expect(validateConflicts(sidecarSet(), [{ spec }])).toMatchObject([
      { detail: "container agent already exist in " },
    ]);
    expect(validateConflicts({ spec }, [other()])).toHaveLength(1);
    expect(validateConflicts({ spec }, [{ spec }])).toEqual([]);
  });

  it("over volumes that differ", () => {
    const volumes = (medium: string) =>
      [{ name: "v", emptyDir: { medium } }] as unknown as NonNullable<SidecarSetSpec["volumes"]>;
    const given = sidecarSet({ volumes: volumes("") });
    expect(validateConflicts(given, [other({ ...isolated, volumes: volumes("") })])).toEqual([]);
    expect(validateConflicts(given, [other({ ...isolated, volumes: volumes("Memory") })])).toHaveLength(1);
  });
});

describe("a canary", () => {
  const CANARY = "apps.kruise.io/sidecarset-canary";
  const BASE = "apps.kruise.io/sidecarset-base";
  const canaryOf = (base: string, isCanary = "true") =>
    sidecarSet({ updateStrategy: { type: "NotUpdate" } }, { annotations: { [CANARY]: isCanary, [BASE]: base } });

  it("says all that is wrong with it", () => {
    const annotations = JSON.stringify({ [CANARY]: "true", [BASE]: "logs" });
    const rolled = { ...canaryOf("logs"), spec: sidecarSet().spec };
    expect(errorsOf(rolled, { sidecarSets: [other(), canaryOf("other")] }, canaryOf("other"))).toEqual([
      `metadata: Invalid value: ${annotations}: base sidecarSet cannot be itself`,
      `metadata: Invalid value: ${annotations}: annotations[${BASE}] is immutable`,
      `metadata: Invalid value: ${annotations}: base sidecarSet cannot be canary`,
      `metadata: Invalid value: ${annotations}: RollingUpdate is not supported for canary sidecarSet`,
    ]);
  });

  it("keeps its base", () => {
    expect(errorsOf(canaryOf("other"), { sidecarSets: [{ spec: {} }, other()] }, canaryOf("other"))).toEqual([]);
  });

  it("is found by the name of its base, not by its place", () => {
    const sidecarSets = [canaryOf("z"), other({ containers: [container({ name: "x" })] })];
    expect(errorsOf(canaryOf("other"), { sidecarSets })).toEqual([]);
  });

  it.each([
    ["is none that says so in another way", canaryOf("other", "True")],
    ["is none without a base", canaryOf("")],
  ])("%s", (_sentence, given) => {
    expect(errorsOf(given, { sidecarSets: [other()] })).toEqual([TAKEN]);
  });

  it("needs an update strategy to say that it is not rolled out", () => {
    const { updateStrategy: _updateStrategy, ...spec } = sidecarSet().spec;
    expect(errorsOf({ ...canaryOf("other"), spec }, { sidecarSets: [other()] })).toHaveLength(1);
  });
});

describe("the revision that is injected", () => {
  const revision = (name: string, changes: Readonly<Record<string, unknown>> = {}): ControllerRevision => ({
    metadata: {
      name,
      namespace: "kruise-system",
      labels: { "kruise.io/sidecarset-name": "logs", "apps.kruise.io/sidecarset-custom-version": "v1" },
      ...changes,
    },
    revision: 1,
  });
  const REVISIONS = [
    { revision: 1 },
    { metadata: {}, revision: 1 },
    revision("bare", { labels: undefined }),
    revision("r1"),
  ];
  const missing = (text: string) =>
    `revision: Invalid value: null: Cannot find specific ControllerRevision, err: ${text}`;
  const rows: readonly (readonly [
    string,
    Readonly<Record<string, unknown>>,
    readonly ControllerRevision[],
    readonly string[],
  ])[] = [
    ["may be named", { revisionName: "r1" }, REVISIONS, []],
    ["may be a version", { customVersion: "v1" }, REVISIONS, []],
    [
      "is not found by another name",
      { revisionName: "r2" },
      REVISIONS,
      [missing('controllerrevisions.apps "r2" not found')],
    ],
    [
      "is not found by another version",
      { customVersion: "v2" },
      REVISIONS,
      [missing('ControllerRevision.apps "logs" not found')],
    ],
    [
      "is not another SidecarSet's version",
      { customVersion: "v1" },
      [
        revision("r1", {
          labels: { "kruise.io/sidecarset-name": "x", "apps.kruise.io/sidecarset-custom-version": "v1" },
        }),
      ],
      [missing('ControllerRevision.apps "logs" not found')],
    ],
    [
      "is not in another namespace",
      { revisionName: "r1" },
      [revision("r1", { namespace: "default" })],
      [missing('controllerrevisions.apps "r1" not found')],
    ],
    ["may be for a part of the pods", { revisionName: "r1", policy: "Partial" }, REVISIONS, []],
    [
      "has a policy that is known",
      { revisionName: "r1", policy: "Some" },
      REVISIONS,
      [
        'revision.policy: Invalid value: {"revisionName":"r1","policy":"Some"}: Invalid policy Some, supported: [Always, Partial]',
      ],
    ],
    [
      "must be given",
      {},
      REVISIONS,
      ["revision: Invalid value: {}: revisionName and customVersion cannot be empty simultaneously"],
    ],
  ];
  it.each(rows)("%s", (_sentence, wanted, controllerRevisions, errors) => {
    expect(errorsOf(sidecarSet({ injectionStrategy: { revision: wanted } }), { controllerRevisions })).toEqual(errors);
  });

  it("is not found for a SidecarSet without a name", () => {
    const { spec } = sidecarSet({ injectionStrategy: { revision: { customVersion: "v1" } } });
    expect(errorsOf({ spec }, { controllerRevisions: REVISIONS })).toContain(
      missing('ControllerRevision.apps "" not found'),
    );
  });
});
