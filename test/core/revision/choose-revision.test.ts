import { describe, expect, test } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { Refusal } from "../../../shared/core/admission/refusal.ts";
import { chooseRevision } from "../../../shared/core/sidecarset/revision/choose-revision.ts";
import { wantedRevision } from "../../../shared/core/sidecarset/revision/wanted-revision.ts";

function revision(name: string, image: string, number: number, customVersion: string): ControllerRevision {
  const labels = { "kruise.io/sidecarset-name": "log", "apps.kruise.io/sidecarset-custom-version": customVersion };
  return {
    metadata: {
      name,
      namespace: "kruise-system",
      labels,
      annotations: { "kruise.io/sidecarset-hash": `hash of ${name}` },
    },
    revision: number,
    data: { spec: { $patch: "replace", containers: [{ name: "agent", image }] } },
  };
}

const REVISIONS = [
  revision("log-1", "agent:1", 1, "v1"),
  revision("log-2", "agent:2", 2, "v1"),
  {
    ...revision("log-3", "agent:3", 3, "v1"),
    metadata: { ...revision("log-3", "", 3, "v1").metadata, namespace: "other" },
  },
];

type Wanted = NonNullable<NonNullable<SidecarSet["spec"]["injectionStrategy"]>["revision"]>;

function sidecarSet(wanted: Wanted | undefined, updateStrategy: UpdateStrategy = {}): SidecarSet {
  return {
    metadata: { name: "log" },
    spec: {
      selector: { matchLabels: { app: "web" } },
      containers: [{ name: "agent", image: "agent:new" }],
      updateStrategy,
      injectionStrategy: wanted ? { revision: wanted } : {},
    },
    status: { latestRevision: "log-new" },
  };
}

/** The image that would be injected. */
function chosen(given: SidecarSet, random = 0.5): string | undefined {
  const choice = chooseRevision(given, {
    podLabels: { app: "web" },
    revisions: REVISIONS,
    kruiseNamespace: "kruise-system",
    random: () => random,
  });
  return choice instanceof Refusal ? choice.message : choice.spec.containers?.[0]?.image;
}

const PARTIAL = { revisionName: "log-1", policy: "Partial" };

describe("the revision that a new pod gets", () => {
  const rows: readonly [sentence: string, sidecarSet: SidecarSet, image: string][] = [
    ["is the current one", sidecarSet(undefined), "agent:new"],
    ["is the current one where only a policy is given", sidecarSet({ policy: "Always" }), "agent:new"],
    ["is the named one", sidecarSet({ revisionName: "log-1" }), "agent:1"],
    ["is the newest of a custom version, in the right namespace", sidecarSet({ customVersion: "v1" }), "agent:2"],
    ["goes by its name before its version", sidecarSet({ revisionName: "log-1", customVersion: "v1" }), "agent:1"],
    ["must exist by name", sidecarSet({ revisionName: "log-9" }), 'controllerrevisions.apps "log-9" not found'],
    ["must exist by version", sidecarSet({ customVersion: "v9" }), 'ControllerRevision.apps "log" not found'],
    ["is the named one while updates pause", sidecarSet(PARTIAL, { paused: true }), "agent:1"],
    ["is the current one under Partial without partition", sidecarSet(PARTIAL), "agent:new"],
    ["is the current one under Partial with a count", sidecarSet(PARTIAL, { partition: 5 }), "agent:new"],
    ["is the named one at 100%", sidecarSet(PARTIAL, { partition: "100%" }), "agent:1"],
    ["is the current one at 0%", sidecarSet(PARTIAL, { partition: "0%" }), "agent:new"],
    ["ignores the partition under Always", sidecarSet({ revisionName: "log-1" }, { partition: "0%" }), "agent:1"],
    [
      "is the named one for pods that updates do not select",
      sidecarSet(PARTIAL, { selector: { matchLabels: { app: "other" } } }),
      "agent:1",
    ],
    [
      "refuses an update selector that cannot be evaluated",
      sidecarSet(PARTIAL, { selector: { matchExpressions: [{ key: "a", operator: "Bad" }] } }),
      '"Bad" is not a valid pod selector operator',
    ],
    [
      "refuses a partition that is no percentage",
      sidecarSet(PARTIAL, { partition: "half" }),
      "invalid type: string is not a percentage",
    ],
  ];
  test.each(rows)("%s", (_, given, image) => {
    expect(chosen(given)).toBe(image);
  });

  test("is the named one as often as the partition says", () => {
    const given = sidecarSet(PARTIAL, { partition: "12.5%" });
    const images = Array.from({ length: 1000 }, (_, index) => chosen(given, index / 1000));
    expect(images.filter((image) => image === "agent:1")).toHaveLength(125);
    expect(images.filter((image) => image === "agent:new")).toHaveLength(875);
  });

  test("brings its own hash and name", () => {
    const choice = chooseRevision(sidecarSet({ revisionName: "log-1" }), {
      podLabels: {},
      revisions: REVISIONS,
      kruiseNamespace: "kruise-system",
      random: () => 0,
    });
    expect(choice).toMatchObject({
      metadata: { name: "log", annotations: { "kruise.io/sidecarset-hash": "hash of log-1" } },
      status: { latestRevision: "log-1" },
    });
  });

  test("is asked for by name or by version, or not at all", () => {
    expect(wantedRevision(sidecarSet({ revisionName: "r", customVersion: "v" }))).toEqual({
      sidecarSet: "log",
      revisionName: "r",
    });
    expect(wantedRevision(sidecarSet({ customVersion: "v" }))).toEqual({ sidecarSet: "log", customVersion: "v" });
    expect(wantedRevision(sidecarSet(undefined))).toBeUndefined();
  });
});
