import { describe, expect, it } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { validateConflicts } from "../../../shared/core/sidecarset/validate/conflict.ts";
import { errorsOf, other, sidecarSet } from "./fixture.ts";

const TAKEN = 'spec.containers: Invalid value: "agent": container agent already exist in other';

describe("conflicts between SidecarSets:", () => {
  const spaces = (name: string): Partial<SidecarSetSpec> => ({
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
  });
  const rows: readonly (readonly [string, SidecarSet, readonly SidecarSet[], readonly string[]])[] = [
    ["a SidecarSet does not conflict with itself", sidecarSet(), [sidecarSet()], []],
    ["two SidecarSets with the same container conflict", sidecarSet(), [other()], [TAKEN]],

    [
      "the error names the SidecarSet whose name sorts last, even if it is first in the list",
      sidecarSet(),
      [other({}, "z"), other({}, "B"), other()],
      [TAKEN.replace("other", "z")],
    ],

    ["two SidecarSets for different namespaces do not conflict", sidecarSet(spaces("a")), [other(spaces("b"))], []],
  ];
  it.each(rows)("%s", (_sentence, given, sidecarSets, errors) => {
    expect(errorsOf(given, { sidecarSets, isAllowedByDefault: true })).toEqual(errors);
  });

  it("a SidecarSet without a selector does not conflict with any other", () => {
    const { selector: _selector, ...nothing } = sidecarSet().spec;
    expect(validateConflicts(sidecarSet(), [{ metadata: { name: "other" }, spec: nothing }])).toEqual([]);
    expect(validateConflicts({ metadata: { name: "logs" }, spec: nothing }, [other()])).toEqual([]);
  });

  it("a SidecarSet without a name conflicts with a named one, but not with another without a name", () => {
    const { spec } = sidecarSet();
    expect(validateConflicts(sidecarSet(), [{ spec }])).toMatchObject([
      { detail: "container agent already exist in " },
    ]);
    expect(validateConflicts({ spec }, [other()])).toHaveLength(1);
    expect(validateConflicts({ spec }, [{ spec }])).toEqual([]);
  });
});

describe("validation of a canary:", () => {
  const CANARY = "apps.kruise.io/sidecarset-canary";
  const BASE = "apps.kruise.io/sidecarset-base";
  const canaryOf = (base: string, isCanary = "true") =>
    sidecarSet({ updateStrategy: { type: "NotUpdate" } }, { annotations: { [CANARY]: isCanary, [BASE]: base } });

  it("a canary with four problems gets four errors", () => {
    const annotations = JSON.stringify({ [CANARY]: "true", [BASE]: "logs" });
    const rolled = { ...canaryOf("logs"), spec: sidecarSet().spec };
    expect(errorsOf(rolled, { sidecarSets: [other(), canaryOf("other")] }, canaryOf("other"))).toEqual([
      `metadata: Invalid value: ${annotations}: base sidecarSet cannot be itself`,
      `metadata: Invalid value: ${annotations}: annotations[${BASE}] is immutable`,
      `metadata: Invalid value: ${annotations}: base sidecarSet cannot be canary`,
      `metadata: Invalid value: ${annotations}: RollingUpdate is not supported for canary sidecarSet`,
    ]);
  });

  it("an update that keeps the base of a canary is accepted", () => {
    expect(errorsOf(canaryOf("other"), { sidecarSets: [{ spec: {} }, other()] }, canaryOf("other"))).toEqual([]);
  });

  it.each([
    ["a SidecarSet with the canary annotation True instead of true conflicts with its base", canaryOf("other", "True")],
    ["a SidecarSet with the canary annotation and an empty base conflicts like any other", canaryOf("")],
  ])("%s", (_sentence, given) => {
    expect(errorsOf(given, { sidecarSets: [other()] })).toEqual([TAKEN]);
  });

  it("a canary without an update strategy gets one error", () => {
    const { updateStrategy: _updateStrategy, ...spec } = sidecarSet().spec;
    expect(errorsOf({ ...canaryOf("other"), spec }, { sidecarSets: [other()] })).toHaveLength(1);
  });
});

describe("validation of the injected revision:", () => {
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
    ["a revisionName that exists is accepted", { revisionName: "r1" }, REVISIONS, []],
    ["a customVersion that exists is accepted", { customVersion: "v1" }, REVISIONS, []],
    [
      "a revisionName that does not exist is refused",
      { revisionName: "r2" },
      REVISIONS,
      [missing('controllerrevisions.apps "r2" not found')],
    ],

    [
      "a revisionName in another namespace is refused",
      { revisionName: "r1" },
      [revision("r1", { namespace: "default" })],
      [missing('controllerrevisions.apps "r1" not found')],
    ],
  ];
  it.each(rows)("%s", (_sentence, wanted, controllerRevisions, errors) => {
    expect(errorsOf(sidecarSet({ injectionStrategy: { revision: wanted } }), { controllerRevisions })).toEqual(errors);
  });

  it("a customVersion of a SidecarSet without a name is refused", () => {
    const { spec } = sidecarSet({ injectionStrategy: { revision: { customVersion: "v1" } } });
    expect(errorsOf({ spec }, { controllerRevisions: REVISIONS })).toContain(
      missing('ControllerRevision.apps "" not found'),
    );
  });
});
