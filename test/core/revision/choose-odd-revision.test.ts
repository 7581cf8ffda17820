import { describe, expect, test } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { Refusal } from "../../../shared/core/admission/admission.ts";
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

/** Returns the image to inject, "as it is" for the current one, or the reason why there is none. */
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

describe("chooseRevision with unusual objects", () => {
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
    [
      "a revision without a name is found by the label of its custom version",
      byVersion,
      [labelled({ [OF]: "log", [V1]: "v1" })],
      "agent:1",
    ],
    ["a revision of another SidecarSet is not used", byVersion, [labelled({ [OF]: "other", [V1]: "v1" })], noVersion],
    ["a revision of another custom version is not used", byVersion, [labelled({ [OF]: "log", [V1]: "v2" })], noVersion],
    ["a revision without labels is not used", byVersion, [{ ...named(DATA) }], noVersion],
    ["a revision without metadata is not used", byVersion, [{ revision: 1, data: DATA }], noVersion],
    [
      "the younger of two revisions with the same number is used",
      byVersion,
      [tied("b", noon), tied("a", evening), { ...tied("c", evening), revision: 1 }],
      "a",
    ],
    [
      "the revision with the later name is used when number and age are equal",
      byVersion,
      [tied("a", noon), tied("b", noon)],
      "b",
    ],
    ["a partition with an exponent is accepted", partial("1e1%"), [named(DATA)], "agent:1"],
    [
      "a partition in hexadecimal is an error",
      partial("0x1%"),
      [named(DATA)],
      'invalid value "0x1%": strconv.ParseFloat: parsing "0x1": invalid syntax',
    ],
    [
      "a partition of only a percent sign is an error",
      partial("%"),
      [named(DATA)],
      'invalid value "%": strconv.ParseFloat: parsing "": invalid syntax',
    ],
    [
      "a revision whose spec does not fit its type is an error",
      { injectionStrategy: { revision: { revisionName: "r" } } },
      [named({ spec: { containers: 1 } })],
      "revision r: spec: containers must be a list, not the number 1",
    ],
    [
      "under Partial without an updateStrategy, a new pod gets the current revision",
      { injectionStrategy: { revision: { revisionName: "r", policy: "Partial" } } },
      [named(DATA)],
      "as it is",
    ],
  ];
  test.each(rows)("%s", (_, spec, revisions, image) => {
    expect(chosen(sidecarSet(spec), revisions)).toBe(image);
  });

  test("wantedRevision accepts a SidecarSet without a name", () => {
    expect(wantedRevision({ spec: byVersion })).toEqual({ sidecarSet: "", customVersion: "v1" });
  });
});

describe("restoreRevision", () => {
  test.each([[null], ["spec"], [{}], [{ spec: null }]])("a revision that records %j restores an empty spec", (data) => {
    const restored = restoreRevision({ spec: {} }, { revision: 1, data });
    expect(restored).toMatchObject({ kind: "Decoded", value: { spec: {} } });
  });
});
