import { describe, expect, test } from "vitest";
import { WAVES_ANNOTATION } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { steeringOf } from "../../../shared/core/pod/steering/steering.ts";
import { namespaceLabelsRead, waveOf } from "../../../shared/core/pod/steering/waves.ts";
import { isProjectedAlike } from "../../../shared/core/rollout/upgrade/project-pod.ts";
import { sidecarSetOf } from "../../support/rollout-fixture.ts";

function setWith(value: string | undefined): SidecarSet {
  const set = sidecarSetOf();
  const waves = value === undefined ? {} : { [WAVES_ANNOTATION]: value };
  return { ...set, metadata: { ...set.metadata, annotations: { ...set.metadata?.annotations, ...waves } } };
}

const selecting = (stage: string) => ({ matchLabels: { stage } });
const DEV = { name: "dev", namespaceSelector: selecting("dev") };

describe("the waves annotation:", () => {
  test("steeringOf returns the waves in the order of the annotation, with defaults", () => {
    const production = { name: "production", namespaceSelector: {}, soakSeconds: 60, paused: true };
    expect(steeringOf(setWith(JSON.stringify([DEV, production]))).waves).toEqual([
      { ...DEV, soakSeconds: 0, isPaused: false },
      { name: "production", namespaceSelector: {}, soakSeconds: 60, isPaused: true },
    ]);
    expect(steeringOf(setWith(undefined))).toMatchObject({ waves: undefined, problems: [] });
  });

  const EXAMPLE = '[{"name": "dev", "namespaceSelector": {"matchLabels": {"stage": "dev"}}}]';
  const operator = { matchExpressions: [{ key: "stage", operator: "Like", values: ["dev"] }] };
  test.each<[string, unknown, readonly string[]]>([
    ["is not JSON", "dev, staging", [`is no list in JSON: write one such as ${EXAMPLE}`]],
    ["is not a list", {}, [`is no list in JSON: write one such as ${EXAMPLE}`]],
    ["is an empty list", [], [`names no wave: write one at least, such as ${EXAMPLE}, or remove the annotation`]],
    [
      "has more than 50 waves",
      Array.from({ length: 51 }, (_, at) => ({ ...DEV, name: `w${at}` })),
      ["names 51 waves: 50 are the most"],
    ],
    ["has a string instead of a wave", ["dev"], [`has a wave (number 1) that is no object: write ${EXAMPLE}`]],
    [
      "has a wave without a name and a wave with an invalid name",
      [{ namespaceSelector: {} }, { name: "Dev!", namespaceSelector: {} }],
      [1, 2].map(
        (at) => `has a wave (number ${at}) without a good name: write up to 63 of a-z, 0-9 and -, such as dev`,
      ),
    ],
    [
      "has two waves of the same name",
      [DEV, DEV],
      ["names the wave dev more than once: give each wave a name of its own"],
    ],
    [
      "has an unknown field",
      [{ ...DEV, soakSecs: 3 }],
      [
        "gives the wave dev the unknown field soakSecs: it may have name, namespaceSelector, soakSeconds, paused, checks",
      ],
    ],
    [
      "has a wave without a selector",
      [{ name: "dev" }],
      [
        'has a bad namespaceSelector in the wave dev: write one such as {"matchLabels": {"stage": "dev"}}, or {} for all namespaces',
      ],
    ],
    [
      "has a selector with an unknown field",
      [{ name: "dev", namespaceSelector: { stage: "dev" } }],
      [
        "has a bad namespaceSelector in the wave dev: it has the unknown field stage, and may have matchLabels and matchExpressions",
      ],
    ],
    [
      "has a selector with a number as a label value",
      [{ name: "dev", namespaceSelector: { matchLabels: { stage: 1 } } }],
      ["has a bad namespaceSelector in the wave dev: its matchLabels do not map labels to texts"],
    ],
    [
      "has a selector with an incomplete requirement",
      [{ name: "dev", namespaceSelector: { matchExpressions: [{ key: "stage" }] } }],
      [
        "has a bad namespaceSelector in the wave dev: its matchExpressions are not a list of objects with key, operator and values",
      ],
    ],
    [
      "has a selector with an unknown operator",
      [{ name: "dev", namespaceSelector: operator }],
      ["has a bad namespaceSelector in the wave dev: Like is none of In, NotIn, Exists, DoesNotExist"],
    ],
    ...[-1, 1.5, "60", 31_536_001].map((soakSeconds): [string, unknown, readonly string[]] => [
      `has soakSeconds ${JSON.stringify(soakSeconds)}`,
      [{ ...DEV, soakSeconds }],
      ["has bad soakSeconds in the wave dev: write whole seconds from 0 to 31536000, such as 3600"],
    ]),
    [
      "has a string for paused",
      [{ ...DEV, paused: "true" }],
      ["says paused in the wave dev without true or false: write one of them, without quotes"],
    ],
    [
      "has two mistakes",
      [{ ...DEV, soakSeconds: -1, paused: 1 }],
      [
        "has bad soakSeconds in the wave dev: write whole seconds from 0 to 31536000, such as 3600",
        "says paused in the wave dev without true or false: write one of them, without quotes",
      ],
    ],
  ])(
    "a waves annotation that %s is reported, with a sentence for each problem, and stops the rollout",
    (_what, value, problems) => {
      const set = setWith(typeof value === "string" ? value : JSON.stringify(value));
      const annotation = WAVES_ANNOTATION;
      const all = problems.map((one) => ({
        annotation,
        text: `the annotation ${annotation} ${one}`,
        isStopping: true,
      }));
      expect(steeringOf(set)).toMatchObject({ waves: undefined, problems: all });
    },
  );
});

describe("waveOf:", () => {
  const { waves } = steeringOf(
    setWith(
      JSON.stringify([
        DEV,
        { name: "early", namespaceSelector: { matchExpressions: [{ key: "team", operator: "In", values: ["mesh"] }] } },
      ]),
    ),
  );
  test.each([
    ["a namespace is in the first wave that selects it", { stage: "dev", team: "mesh" }, 0],
    ["a namespace can be in a later wave only", { stage: "production", team: "mesh" }, 1],
    ["a namespace that no wave selects comes after all waves", { stage: "production" }, 2],
    ["a namespace with unknown labels comes after all waves", undefined, 2],
  ])("%s", (_what, labels, rank) => {
    expect(waveOf(waves ?? [], labels)).toBe(rank);
  });
});

test("namespaceLabelsRead returns the labels that the waves select by, and other labels need a new projection", () => {
  const [none, dev] = [setWith(undefined), setWith(JSON.stringify([DEV]))];
  const soaking = setWith(JSON.stringify([{ ...DEV, soakSeconds: 5 }]));
  const byTeam = setWith(JSON.stringify([{ name: "dev", namespaceSelector: { matchLabels: { team: "a" } } }]));
  expect([none, dev, soaking, byTeam].map((one) => namespaceLabelsRead(steeringOf(one).waves))).toEqual([
    undefined,
    ["stage"],
    ["stage"],
    ["team"],
  ]);
  expect([none, soaking, byTeam].map((other) => isProjectedAlike(dev, other))).toEqual([false, true, false]);
  const all = setWith(JSON.stringify([{ name: "all", namespaceSelector: {} }]));
  expect(isProjectedAlike(none, all)).toBe(false);
});
