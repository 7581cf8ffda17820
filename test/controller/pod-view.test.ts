import { expect, it } from "vitest";
import type { Pod } from "../../shared/api/kubernetes.ts";
import { PodView } from "../../shared/controller/pod-store/pod-view.ts";
import { patchedPod } from "../../shared/controller/rollout/pod-patch.ts";
import { isLater } from "../../shared/go/resource-version.ts";
import { listedPod } from "../support/objects.ts";

const pod = (resourceVersion: string, image = "app:1"): Pod =>
  listedPod({ namespace: "shop", name: "a", uid: "u", resourceVersion }, { containers: [{ name: "app", image }] });
function viewOf(...pods: Pod[]): PodView {
  const view = new PodView({ spec: {} });
  view.complete([pods.map((one) => view.gather(one))]);
  return view;
}

it.each([
  ["10", "9", true],
  ["9", "10", false],
  ["7", "7", false],
  ["18446744073709551616", "18446744073709551615", true],
  [undefined, "1", false],
])("isLater compares resourceVersions as numbers: for %s and %s it returns %s", (version, than, expected) => {
  expect(isLater(version, than)).toBe(expected);
});

it("a view takes newer states of a pod and ignores older ones", () => {
  const view = viewOf(pod("9"));
  expect(view.put(pod("10", "app:2"))).toBe(true);
  expect(view.put(pod("9"))).toBe(false);
  expect(view.put(pod("10"))).toBe(false);
  expect(Array.from(view.pods, ({ spec }) => spec.containers[0]?.image)).toEqual(["app:2"]);
  expect(Array.from(view.records, ({ metadata }) => metadata?.resourceVersion)).toEqual(["10"]);
});

it("a view ignores the removal of an older state than the one it knows", () => {
  const view = viewOf(pod("9"));
  expect(view.remove("u", "8")).toBe(false);
  expect(view.pods).toHaveLength(1);
  expect(view.remove("u", "9")).toBe(true);
  expect([...view.pods]).toEqual([]);
  expect(view.versionOf("u")).toBe("9");
});

it("a deleted pod does not return to a view, and a pod that was only deselected does", () => {
  const view = viewOf(pod("9"));
  view.remove("u", "10");
  expect(view.put(pod("11"))).toBe(true);
  view.remove("u", null);
  expect(view.put(pod("12"))).toBe(false);
  expect(view.versionOf("u")).toBeNull();
});

it("a view knows only the version of a pod outside of its selection", () => {
  const view = viewOf();
  expect(view.versionOf("u")).toBeUndefined();
  view.see(pod("3"));
  expect([...view.pods]).toEqual([]);
  expect(view.versionOf("u")).toBe("3");
});

it.each([
  [4, []],
  [undefined, ["ErrImagePull"]],
])(
  "after a pass writes an image, the status of the earlier image does not count as a failure (observed generation %s)",
  (observedGeneration, reasons) => {
    const state = { waiting: { reason: "ErrImagePull" } };
    const containerStatuses = [{ name: "app", ready: false, restartCount: 0, image: "app:2", imageID: "", state }];
    const status = { ...(observedGeneration ? { observedGeneration } : {}), containerStatuses };
    const { metadata, spec } = pod("9", "app:2");
    const view = viewOf({ metadata: { ...metadata, generation: 4 }, spec, status });
    const written = { ...metadata, generation: 5, resourceVersion: "10" };
    const images = [{ index: 0, container: "app", from: "app:2", to: "app:1" }];
    view.see(patchedPod(view.get("u") as Pod, written, { images }));
    const after = view.get("u")?.status?.containerStatuses ?? [];
    expect(after.flatMap((one) => one.state?.waiting?.reason ?? [])).toEqual(reasons);
  },
);

const named = (name: string, resourceVersion: string): Pod =>
  listedPod({ namespace: "shop", name, uid: `uid of ${name}`, resourceVersion });

it("a view keeps the order of its pods when they change and appends new ones", () => {
  const view = viewOf(named("a", "1"), named("b", "2"));
  view.put(named("c", "3"));
  view.put(named("a", "4"));
  expect(Array.from(view.pods, ({ metadata }) => metadata?.name)).toEqual(["a", "b", "c"]);
});

it("a view does not know pods of a list that was not completed", () => {
  const view = new PodView({ spec: {} });
  view.gather(named("lost", "1"));
  view.complete([[view.gather(named("a", "2"))]]);
  expect(view.get("uid of lost")).toBeUndefined();
  expect(view.versionOf("uid of lost")).toBeUndefined();
  expect(view.get("uid of a")).toMatchObject(named("a", "2"));
});

it("a view can record the deletion of a pod that it never had", () => {
  const view = viewOf();
  expect(view.remove("u", null)).toBe(false);
  expect(view.versionOf("u")).toBeNull();
});

it("reading a pod of a view after the view has changed is an error", () => {
  const view = viewOf(pod("9"));
  const { pods } = view;
  expect(Array.from(pods, ({ metadata }) => metadata?.resourceVersion)).toEqual(["9"]);
  view.put(pod("10"));
  expect(() => [...pods]).toThrow("pods of a view were asked for after it had changed");
  expect(Array.from(view.pods, ({ metadata }) => metadata?.resourceVersion)).toEqual(["10"]);
});
