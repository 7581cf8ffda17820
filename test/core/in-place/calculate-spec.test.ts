import { describe, expect, test } from "vitest";
import type { ControllerRevision } from "../../../shared/api/kubernetes.ts";
import { type CalculateOptions, calculateSpec } from "../../../shared/core/statefulset/in-place/calculate-spec.ts";

const OPTIONS: CalculateOptions = {
  gracePeriodSeconds: 0,
  isEnvFromMetadataUpdated: true,
  isVerticalScalingAllowed: true,
};

type Members = Readonly<Record<string, unknown>>;

const revisionOf = (data: unknown): ControllerRevision => ({ revision: 1, data });
const templateOf = (template: Members) => revisionOf({ spec: { template } });

/** Of templates with these containers and this metadata. */
function plan(before: readonly Members[], after: readonly Members[], metadata: readonly [Members, Members] = [{}, {}]) {
  return calculateSpec(
    templateOf({ metadata: metadata[0], spec: { containers: before } }),
    templateOf({ metadata: metadata[1], spec: { containers: after } }),
    OPTIONS,
  );
}

describe("only a new pod gets there", () => {
  const label = (x: string) => ({ metadata: { labels: { x } } });
  const outside: readonly [sentence: string, before: unknown, after: unknown][] = [
    ["when metadata appears as a whole", { spec: { template: {} } }, { spec: { template: { metadata: {} } } }],
    ["when the data is another value", null, {}],
    ["when something changes beside the spec", { other: 1 }, { other: 2 }],
    [
      "when something in the spec but the template changes",
      { spec: { other: label("1") } },
      { spec: { other: label("2") } },
    ],
    [
      "when a template outside the spec changes",
      { other: { template: label("1") } },
      { other: { template: label("2") } },
    ],
  ];
  test.each(outside)("%s", (_, before, after) => {
    expect(calculateSpec(revisionOf(before), revisionOf(after), OPTIONS)).toBeUndefined();
  });

  const named = (members: Members) => [{ name: "a", ...members }];
  const inContainer: readonly [sentence: string, before: readonly Members[], after: readonly Members[]][] = [
    ["when an image appears", named({}), named({ image: "a:2" })],
    ["when the container has no name", [{ image: "a:1" }], [{ image: "a:2" }]],
    ["when an image is no text any more", named({ image: "a:1" }), named({ image: null })],
    ["when something inside an image changes", named({ image: { x: "1" } }), named({ image: { x: "2" } })],
    [
      "when a limit of something but resources changes",
      named({ other: { limits: { cpu: "1" } } }),
      named({ other: { limits: { cpu: "2" } } }),
    ],
    [
      "when other resources than limits and requests change",
      named({ resources: { other: { cpu: "1" } } }),
      named({ resources: { other: { cpu: "2" } } }),
    ],
    [
      "when a limit has a blank before it, which no parser of texts overlooks",
      named({ resources: { limits: { cpu: "1", memory: "1Gi" } } }),
      named({ resources: { limits: { cpu: " 2", memory: "1Gi" } } }),
    ],
    [
      "when a limit is no quantity any more",
      named({ resources: { limits: { cpu: "1" } } }),
      named({ resources: { limits: { cpu: null } } }),
    ],
    [
      "when a limit is no quantity any more, though the quality of service stays",
      [...named({ resources: { limits: { cpu: "1" } } }), { name: "b", resources: { limits: { cpu: "1" } } }],
      [...named({ resources: { limits: { cpu: null } } }), { name: "b", resources: { limits: { cpu: "1" } } }],
    ],
    [
      "when something inside a limit changes",
      named({ resources: { limits: { cpu: { x: "1" } } } }),
      named({ resources: { limits: { cpu: { x: "2" } } } }),
    ],
  ];
  test.each(inContainer)("%s", (_, before, after) => {
    expect(plan(before, after)).toBeUndefined();
  });

  test("when a list in the metadata changes beside a label", () => {
    const metadata = [
      { labels: { x: "1" }, ownerReferences: {} },
      { labels: { x: "2" }, ownerReferences: [{ uid: "1" }] },
    ] as const;
    expect(plan([], [], metadata)).toBeUndefined();
  });
});

describe("finalizers in the metadata", () => {
  const order = "$setElementOrder/finalizers";
  const removed = "$deleteFromPrimitiveList/finalizers";
  const lists: readonly [sentence: string, before: unknown, after: unknown, patch: object][] = [
    ["may come", undefined, ["a"], { finalizers: ["a"] }],
    ["may be exchanged", ["a"], ["b"], { [order]: ["b"], [removed]: ["a"], finalizers: ["b"] }],
    ["may come beside others", ["a"], ["a", "b"], { [order]: ["a", "b"], finalizers: ["b"] }],
    ["may go one by one", ["b", "a", "c"], ["c"], { [order]: ["c"], [removed]: ["a", "b"] }],
    ["may be emptied", ["a"], [], { finalizers: null }],
    ["may go", ["a"], undefined, { finalizers: null }],
  ];
  const patchOf = (before: unknown, after: unknown) => {
    const metadata = (finalizers: unknown) => (finalizers === undefined ? {} : { finalizers });
    return plan([], [], [metadata(before), metadata(after)])?.metaDataPatch ?? "null";
  };
  test.each(lists)("%s", (_, before, after, metadata) => {
    expect(JSON.parse(patchOf(before, after))).toEqual({ metadata });
  });

  test.each([
    [undefined, []],
    [[], null],
  ])("that are none stay none: %j, %j", (before, after) => {
    expect(patchOf(before, after)).toBe("{}");
  });
});

describe("in place", () => {
  test("a revision without a name is named by nothing", () => {
    expect(plan([], [])?.revision).toBe("");
  });

  test("the eleventh container gets its image", () => {
    const eleven = (image: string) =>
      Array.from({ length: 11 }, (_, at) => ({ name: `c${at}`, image: at < 10 ? "x" : image }));
    expect(plan(eleven("c:1"), eleven("c:2"))?.containerImages).toEqual({ c10: "c:2" });
  });

  test("a quantity may be a number", () => {
    const limited = (cpu: number) => [{ name: "a", resources: { limits: { cpu, memory: "1Gi" } } }];
    expect(plan(limited(1), limited(2))?.containerResources).toEqual({ a: { limits: { cpu: "2" } } });
  });

  test("a quantity is written as Kubernetes prints it", () => {
    const limited = (cpu: string) => [{ name: "a", resources: { limits: { cpu, memory: "1Gi" } } }];
    expect(plan(limited("1"), limited("0.5"))?.containerResources).toEqual({ a: { limits: { cpu: "500m" } } });
  });

  test("a quantity that is none is refused", () => {
    const limited = (cpu: string) => [{ name: "a", resources: { limits: { cpu, memory: "1Gi" } } }];
    expect(plan(limited("1"), limited("many"))).toBeUndefined();
  });

  test("resources are all that changes though a container restarts for them", () => {
    const limited = (cpu: string) => [
      {
        name: "a",
        resources: { limits: { cpu, memory: "1Gi" } },
        resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }],
      },
    ];
    expect(plan(limited("1"), limited("2"))?.verticalUpdateOnly).toBe(true);
  });
});

describe("metadata", () => {
  const reading = (name: string, fieldPath: string) => ({
    name,
    env: [{ name: "X", valueFrom: { fieldRef: { fieldPath } } }],
  });
  const containers = [reading("labels", "metadata.labels['x']"), reading("annotations", "metadata.annotations['x']")];

  test("restarts who reads it, and is no part of the patch then", () => {
    const planned = plan(containers, containers, [
      { labels: { x: "1", y: "1" }, annotations: { y: "1" } },
      { labels: { x: "2", y: "2" }, annotations: { y: "2" } },
    ]);
    expect(planned).toMatchObject({
      containerRefMetadata: { labels: { labels: { x: "2" } } },
      updateEnvFromMetadata: true,
      metaDataPatch: '{"metadata":{"annotations":{"y":"2"},"labels":{"y":"2"}}}',
    });
    expect(Object.keys(planned?.containerRefMetadata ?? {})).toEqual(["labels"]);
  });

  test("that is null is as good as absent", () => {
    const [none, nothing] = [{}, { creationTimestamp: null }] as const;
    const patches = [plan([], [], [none, nothing]), plan([], [], [nothing, none])].map((one) => one?.metaDataPatch);
    expect(patches).toEqual(["{}", "{}"]);
    expect(plan([], [], [nothing, { name: "x" }])?.metaDataPatch).toBe('{"metadata":{"name":"x"}}');
  });

  test("of one key is two things, as a label and as an annotation", () => {
    const only = containers.slice(0, 1);
    expect(
      plan(only, only, [
        { labels: { x: "1" }, annotations: { x: "1" } },
        { labels: { x: "2" }, annotations: { x: "2" } },
      ]),
    ).toMatchObject({
      containerRefMetadata: { labels: { labels: { x: "2" } } },
      metaDataPatch: '{"metadata":{"annotations":{"x":"2"}}}',
    });
  });

  const removals: readonly [sentence: string, after: Members, patch: string][] = [
    ["is removed", { labels: { y: "1" } }, '{"metadata":{"labels":{"x":null}}}'],
    ["is no text any more", { labels: { x: null, y: "1" } }, '{"metadata":{"labels":{"x":null}}}'],
    ["goes with all others", {}, '{"metadata":{"labels":null}}'],
  ];
  test.each(removals)("that %s restarts nobody", (_, after, metaDataPatch) => {
    expect(plan(containers, containers, [{ labels: { x: "1", y: "1" } }, after])).toMatchObject({
      containerRefMetadata: {},
      updateEnvFromMetadata: false,
      metaDataPatch,
    });
  });

  test("of other kinds is patched as it is", () => {
    expect(plan([], [], [{ generateName: "a", namespace: "n" }, { generateName: "b" }])?.metaDataPatch).toBe(
      '{"metadata":{"generateName":"b","namespace":null}}',
    );
  });
});
