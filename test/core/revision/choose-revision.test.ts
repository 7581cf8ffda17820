import { describe, expect, test } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import type { SidecarSet, UpdateStrategy } from "../../../shared/api/sidecarset.ts";
import { Refusal } from "../../../shared/core/admission/admission.ts";
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

/** Returns the image that would be injected. */
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

describe("chooseRevision", () => {
  const rows: readonly [sentence: string, sidecarSet: SidecarSet, image: string][] = [
    ["a new pod gets the current revision when the SidecarSet names none", sidecarSet(undefined), "agent:new"],
    ["a new pod gets the current revision when only a policy is given", sidecarSet({ policy: "Always" }), "agent:new"],
    ["a new pod gets the named revision", sidecarSet({ revisionName: "log-1" }), "agent:1"],
    [
      "a new pod gets the newest revision of a custom version in the namespace of OpenKruise",
      sidecarSet({ customVersion: "v1" }),
      "agent:2",
    ],
    [
      "a revision name counts before a custom version",
      sidecarSet({ revisionName: "log-1", customVersion: "v1" }),
      "agent:1",
    ],
    [
      "a revision name that does not exist is an error",
      sidecarSet({ revisionName: "log-9" }),
      'controllerrevisions.apps "log-9" not found',
    ],
    [
      "a custom version that does not exist is an error",
      sidecarSet({ customVersion: "v9" }),
      'ControllerRevision.apps "log" not found',
    ],
    [
      "under Partial, a new pod gets the named revision while updates are paused",
      sidecarSet(PARTIAL, { paused: true }),
      "agent:1",
    ],
    ["under Partial without a partition, a new pod gets the current revision", sidecarSet(PARTIAL), "agent:new"],
    [
      "under Partial with a number as partition, a new pod gets the current revision",
      sidecarSet(PARTIAL, { partition: 5 }),
      "agent:new",
    ],
    [
      "under Partial with a partition of 100%, a new pod gets the named revision",
      sidecarSet(PARTIAL, { partition: "100%" }),
      "agent:1",
    ],
    [
      "under Partial with a partition of 0%, a new pod gets the current revision",
      sidecarSet(PARTIAL, { partition: "0%" }),
      "agent:new",
    ],
    [
      "without the policy Partial, the partition does not change the revision",
      sidecarSet({ revisionName: "log-1" }, { partition: "0%" }),
      "agent:1",
    ],
    [
      "under Partial, a pod that the update selector does not select gets the named revision",
      sidecarSet(PARTIAL, { selector: { matchLabels: { app: "other" } } }),
      "agent:1",
    ],
    [
      "under Partial, an update selector with an unknown operator is an error",
      sidecarSet(PARTIAL, { selector: { matchExpressions: [{ key: "a", operator: "Bad" }] } }),
      '"Bad" is not a valid pod selector operator',
    ],
    [
      "under Partial, a partition that is not a percentage is an error",
      sidecarSet(PARTIAL, { partition: "half" }),
      "invalid type: string is not a percentage",
    ],
  ];
  test.each(rows)("%s", (_, given, image) => {
    expect(chosen(given)).toBe(image);
  });

  test("under Partial, the partition is the share of new pods with the named revision", () => {
    const given = sidecarSet(PARTIAL, { partition: "12.5%" });
    const images = Array.from({ length: 1000 }, (_, index) => chosen(given, index / 1000));
    expect(images.filter((image) => image === "agent:1")).toHaveLength(125);
    expect(images.filter((image) => image === "agent:new")).toHaveLength(875);
  });

  test("a chosen revision has its own hash and revision name", () => {
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

  test("wantedRevision asks for a revision name, or else for a custom version, or else for nothing", () => {
    expect(wantedRevision(sidecarSet({ revisionName: "r", customVersion: "v" }))).toEqual({
      sidecarSet: "log",
      revisionName: "r",
    });
    expect(wantedRevision(sidecarSet({ customVersion: "v" }))).toEqual({ sidecarSet: "log", customVersion: "v" });
    expect(wantedRevision(sidecarSet(undefined))).toBeUndefined();
  });
});
