import { describe, expect, test } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { Refusal } from "../../../shared/core/admission/refusal.ts";
import { chooseRevision } from "../../../shared/core/sidecarset/revision/choose-revision.ts";
import { restoreRevision } from "../../../shared/core/sidecarset/revision/restore-revision.ts";
import { wantedRevision } from "../../../shared/core/sidecarset/revision/wanted-revision.ts";

const DATA = { spec: { containers: [{ name: "agent", image: "agent:1" }] } };
const NAMESPACE = "kruise-system";
const V1 = "apps.kruise.io/sidecarset-custom-version";
const OF = "kruise.io/sidecarset-name";

const sidecarSet = (spec: SidecarSetSpec): SidecarSet => ({ metadata: { name: "log" }, spec });
const byVersion: SidecarSetSpec = { injectionStrategy: { revision: { customVersion: "v1" } } };
const partial = (partition: string): SidecarSetSpec => ({
  injectionStrategy: { revision: { revisionName: "r", policy: "Partial" } },
  updateStrategy: { partition },
});

/** The image that would be injected, "as it is" for the current one, or why there is none. */
function chosen(given: SidecarSet, revisions: readonly ControllerRevision[]): string | undefined {
  const context = { podLabels: undefined, revisions, kruiseNamespace: NAMESPACE, random: () => 0 };
  const choice = chooseRevision(given, context);
  if (choice instanceof Refusal) return choice.message;
  return choice === given ? "as it is" : choice.spec.containers?.[0]?.image;
}

const named = (data: unknown): ControllerRevision => ({
  metadata: { name: "r", namespace: NAMESPACE },
  revision: 1,
  data,
});

describe("a new pod", () => {
  const labelled = (labels: Readonly<Record<string, string>>): ControllerRevision => ({
    metadata: { namespace: NAMESPACE, labels },
    revision: 1,
    data: DATA,
  });
  const tied = (name: string, creationTimestamp: string): ControllerRevision => ({
    metadata: { name, namespace: NAMESPACE, labels: { [OF]: "log", [V1]: "v1" }, creationTimestamp },
    revision: 2,
    data: { spec: { containers: [{ name: "agent", image: name }] } },
  });
  const [noon, evening] = ["2026-01-02T12:00:00Z", "2026-01-02T18:00:00Z"];
  const noVersion = 'ControllerRevision.apps "log" not found';
  const rows: readonly [
    sentence: string,
    spec: SidecarSetSpec,
    revisions: readonly ControllerRevision[],
    image: string,
  ][] = [
    ["gets the version by its labels, without a name", byVersion, [labelled({ [OF]: "log", [V1]: "v1" })], "agent:1"],
    ["gets no version of another SidecarSet", byVersion, [labelled({ [OF]: "other", [V1]: "v1" })], noVersion],
    ["gets no other version", byVersion, [labelled({ [OF]: "log", [V1]: "v2" })], noVersion],
    ["gets nothing of a revision without labels", byVersion, [{ ...named(DATA) }], noVersion],
    ["gets nothing of a revision without metadata", byVersion, [{ revision: 1, data: DATA }], noVersion],
    [
      "gets the younger of two with one number",
      byVersion,
      [tied("b", noon), tied("a", evening), { ...tied("c", evening), revision: 1 }],
      "a",
    ],
    ["gets the last by name of two as old as each other", byVersion, [tied("a", noon), tied("b", noon)], "b"],
    ["goes by the name in an exponent's share", partial("1e1%"), [named(DATA)], "agent:1"],
    [
      "cannot go by a share that is no number",
      partial("0x1%"),
      [named(DATA)],
      'invalid value "0x1%": strconv.ParseFloat: parsing "0x1": invalid syntax',
    ],
    [
      "cannot go by a share of nothing",
      partial("%"),
      [named(DATA)],
      'invalid value "%": strconv.ParseFloat: parsing "": invalid syntax',
    ],
    [
      "cannot get what does not fit",
      { injectionStrategy: { revision: { revisionName: "r" } } },
      [named({ spec: { containers: 1 } })],
      "revision r: spec: containers must be a list, not the number 1",
    ],
    [
      "gets the current one under Partial without a strategy",
      { injectionStrategy: { revision: { revisionName: "r", policy: "Partial" } } },
      [named(DATA)],
      "as it is",
    ],
  ];
  test.each(rows)("%s", (_, spec, revisions, image) => {
    expect(chosen(sidecarSet(spec), revisions)).toBe(image);
  });

  test("asks a SidecarSet without a name for its version", () => {
    expect(wantedRevision({ spec: byVersion })).toEqual({ sidecarSet: "", customVersion: "v1" });
  });
});

describe("a revision", () => {
  test.each([[null], ["spec"], [{}], [{ spec: null }]])("that records %j restores an empty spec", (data) => {
    const restored = restoreRevision({ spec: {} }, { revision: 1, data });
    expect(restored).toMatchObject({ kind: "Decoded", value: { spec: {} } });
  });

  test("that does not fit is told without a name, too", () => {
    expect(restoreRevision({ spec: {} }, { revision: 1, data: { spec: 1 } })).toEqual({
      kind: "DecodeError",
      message: "revision : spec: the object must be an object, not the number 1",
    });
  });
});
