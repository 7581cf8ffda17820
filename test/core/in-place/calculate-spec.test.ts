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

/** Calls calculateSpec for templates with these containers and this metadata. */
function plan(before: readonly Members[], after: readonly Members[], metadata: readonly [Members, Members] = [{}, {}]) {
  return calculateSpec(
    templateOf({ metadata: metadata[0], spec: { containers: before } }),
    templateOf({ metadata: metadata[1], spec: { containers: after } }),
    OPTIONS,
  );
}

describe("calculateSpec when an update in place is impossible:", () => {
  const label = (x: string) => ({ metadata: { labels: { x } } });
  const outside: readonly [sentence: string, before: unknown, after: unknown][] = [
    ["metadata is added to the template", { spec: { template: {} } }, { spec: { template: { metadata: {} } } }],
    ["the data changes from null", null, {}],
    ["a field beside the spec changes", { other: 1 }, { other: 2 }],
    [
      "a field of the spec beside the template changes",
      { spec: { other: label("1") } },
      { spec: { other: label("2") } },
    ],
    ["a template outside the spec changes", { other: { template: label("1") } }, { other: { template: label("2") } }],
  ];
  test.each(outside)("an update in place is impossible if %s", (_, before, after) => {
    expect(calculateSpec(revisionOf(before), revisionOf(after), OPTIONS)).toBeUndefined();
  });

  const named = (members: Members) => [{ name: "a", ...members }];
  const inContainer: readonly [sentence: string, before: readonly Members[], after: readonly Members[]][] = [
    ["an image is added", named({}), named({ image: "a:2" })],
    ["the container has no name", [{ image: "a:1" }], [{ image: "a:2" }]],
    ["an image becomes null", named({ image: "a:1" }), named({ image: null })],
    ["a field inside an image changes", named({ image: { x: "1" } }), named({ image: { x: "2" } })],
    [
      "a limit outside the resources changes",
      named({ other: { limits: { cpu: "1" } } }),
      named({ other: { limits: { cpu: "2" } } }),
    ],
    [
      "another field of the resources changes",
      named({ resources: { other: { cpu: "1" } } }),
      named({ resources: { other: { cpu: "2" } } }),
    ],

    [
      "a limit becomes null",
      named({ resources: { limits: { cpu: "1" } } }),
      named({ resources: { limits: { cpu: null } } }),
    ],

    [
      "a field inside a limit changes",
      named({ resources: { limits: { cpu: { x: "1" } } } }),
      named({ resources: { limits: { cpu: { x: "2" } } } }),
    ],
  ];
  test.each(inContainer)("a change of a container is impossible in place if %s", (_, before, after) => {
    expect(plan(before, after)).toBeUndefined();
  });
});

describe("the finalizers in a metadata patch:", () => {
  const order = "$setElementOrder/finalizers";
  const removed = "$deleteFromPrimitiveList/finalizers";
  const lists: readonly [sentence: string, before: unknown, after: unknown, patch: object][] = [
    ["may be added", undefined, ["a"], { finalizers: ["a"] }],
    ["may be replaced", ["a"], ["b"], { [order]: ["b"], [removed]: ["a"], finalizers: ["b"] }],
    ["may be added beside others", ["a"], ["a", "b"], { [order]: ["a", "b"], finalizers: ["b"] }],
    ["may be removed one by one", ["b", "a", "c"], ["c"], { [order]: ["c"], [removed]: ["a", "b"] }],
    ["may become an empty list", ["a"], [], { finalizers: null }],
    ["may be removed with the list", ["a"], undefined, { finalizers: null }],
  ];
  const patchOf = (before: unknown, after: unknown) => {
    const metadata = (finalizers: unknown) => (finalizers === undefined ? {} : { finalizers });
    return plan([], [], [metadata(before), metadata(after)])?.metaDataPatch ?? "null";
  };
  test.each(lists)("the finalizers of a template %s", (_, before, after, metadata) => {
    expect(JSON.parse(patchOf(before, after))).toEqual({ metadata });
  });

  test.each([
    [undefined, []],
    [[], null],
  ])("the patch is empty if finalizers change from %j to %j", (before, after) => {
    expect(patchOf(before, after)).toBe("{}");
  });
});

describe("calculateSpec when an update in place is possible:", () => {
  test("the revision is empty if the revision has no name", () => {
    expect(plan([], [])?.revision).toBe("");
  });

  test("a quantity may be a number", () => {
    const limited = (cpu: number) => [{ name: "a", resources: { limits: { cpu, memory: "1Gi" } } }];
    expect(plan(limited(1), limited(2))?.containerResources).toEqual({ a: { limits: { cpu: "2" } } });
  });

  test("a quantity is written in the canonical form of Kubernetes", () => {
    const limited = (cpu: string) => [{ name: "a", resources: { limits: { cpu, memory: "1Gi" } } }];
    expect(plan(limited("1"), limited("0.5"))?.containerResources).toEqual({ a: { limits: { cpu: "500m" } } });
  });
});

describe("calculateSpec with changed metadata:", () => {
  const reading = (name: string, fieldPath: string) => ({
    name,
    env: [{ name: "X", valueFrom: { fieldRef: { fieldPath } } }],
  });
  const containers = [reading("labels", "metadata.labels['x']"), reading("annotations", "metadata.annotations['x']")];

  test("a changed label that a container reads restarts the container and is not in the patch", () => {
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

  test("null metadata counts as absent", () => {
    const [none, nothing] = [{}, { creationTimestamp: null }] as const;
    const patches = [plan([], [], [none, nothing]), plan([], [], [nothing, none])].map((one) => one?.metaDataPatch);
    expect(patches).toEqual(["{}", "{}"]);
    expect(plan([], [], [nothing, { name: "x" }])?.metaDataPatch).toBe('{"metadata":{"name":"x"}}');
  });

  test("a label and an annotation with the same key are different", () => {
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
    ["that is removed", { labels: { y: "1" } }, '{"metadata":{"labels":{"x":null}}}'],
    ["that becomes null", { labels: { x: null, y: "1" } }, '{"metadata":{"labels":{"x":null}}}'],
    ["that is removed with all labels", {}, '{"metadata":{"labels":null}}'],
  ];
  test.each(removals)("a label %s restarts no container", (_, after, metaDataPatch) => {
    expect(plan(containers, containers, [{ labels: { x: "1", y: "1" } }, after])).toMatchObject({
      containerRefMetadata: {},
      updateEnvFromMetadata: false,
      metaDataPatch,
    });
  });
});
