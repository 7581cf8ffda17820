import { describe, expect, test } from "vitest";
import type { Container, ContainerStatus, ControllerRevision, Labels, Pod } from "../../../shared/api/kubernetes.ts";
import { IN_PLACE_STATE_ANNOTATION } from "../../../shared/api/names.ts";
import { isRestartUnderWay } from "../../../shared/core/statefulset/in-place/apply-spec.ts";
import { whyNotCompleted } from "../../../shared/core/statefulset/in-place/update-completed.ts";
import { type InPlaceStep, refreshPod, updatePod } from "../../../shared/core/statefulset/in-place/update-pod.ts";
import { listedPod } from "../../support/objects.ts";
import { NOW } from "../../support/rollout-fixture.ts";

const CONTEXT = { now: NOW, revisionLabel: "rev", restartsByAlias: true };
const OPTIONS = { gracePeriodSeconds: 0, isEnvFromMetadataUpdated: true, isVerticalScalingAllowed: false };

const reading = (name: string, image: string, more: Container["env"] = []): Container => ({
  name,
  image,
  env: [{ name: "X", valueFrom: { fieldRef: { fieldPath: "metadata.labels['x']" } } }, ...more],
});
const A = reading("a", "a:1");
const B: Container = { name: "b", image: "b:1" };

function revisionOf(name: string, labels: Labels, containers: readonly Container[]): ControllerRevision {
  return {
    metadata: { name },
    revision: 1,
    data: { spec: { template: { metadata: { labels }, spec: { containers } } } },
  };
}

const ran = (name: string, restartCount = 0): ContainerStatus => ({
  name,
  ready: true,
  imageID: `id-${name}`,
  containerID: `containerd://${name}-${restartCount}`,
  restartCount,
});

function podOf(containers: readonly Container[], statuses = containers.map(({ name }) => ran(name))): Pod {
  return listedPod({ name: "p", labels: { rev: "old", x: "1" } }, { containers }, { containerStatuses: statuses });
}

const revisions = (before: readonly Container[], after = before) => ({
  before: revisionOf("old", { x: "1" }, before),
  after: revisionOf("new", { x: "2" }, after),
});

function podIn(step: InPlaceStep): Pod {
  if (step.kind !== "step") throw new Error(JSON.stringify(step));
  return step.pod;
}

const begin = (pod: Pod, after = pod.spec.containers) =>
  updatePod(pod, revisions(pod.spec.containers, after), OPTIONS, CONTEXT);
const imagesOf = ({ spec }: Pod) => spec.containers.map(({ image }) => image);
const restarted = (pod: Pod, ...statuses: readonly ContainerStatus[]): Pod => ({
  ...pod,
  status: { ...pod.status, containerStatuses: statuses },
});

describe("a container that reads a changed label, without a daemon:", () => {
  test("the container gets an alias of its image together with the label, and other containers do not", () => {
    const begun = podIn(begin(podOf([A, B])));
    expect(imagesOf(begun)).toEqual(["docker.io/library/a:1", "b:1"]);
    expect(begun.metadata?.labels).toMatchObject({ rev: "new", x: "2" });
  });

  test("the update is complete when another container runs in place of the old one", () => {
    const begun = podIn(begin(podOf([A, B])));
    const why = "container a not restarted for its environment";
    expect(whyNotCompleted(begun)).toBe(why);
    expect(whyNotCompleted(restarted(begun, ran("b")))).toBe(why);
    expect(whyNotCompleted(restarted(begun, ran("a", 1), ran("b")))).toBeUndefined();
  });

  test("the new image restarts the container if it gets one", () => {
    const begun = podIn(begin(podOf([A]), [{ ...A, image: "a:2" }]));
    expect(imagesOf(begun)).toEqual(["a:2"]);
    expect(whyNotCompleted(begun)).toBe("container a not restarted for its environment");
    const done = restarted(begun, { ...ran("a", 1), imageID: "id-of-2" });
    expect(whyNotCompleted(done)).toBeUndefined();
  });

  test("the container keeps its image if a daemon reports on the pod or the option is off", () => {
    const pod = podOf([A]);
    const annotations = { "apps.kruise.io/runtime-containers-meta": '{"containers":[]}' };
    const reported = { ...pod, metadata: { ...pod.metadata, annotations } };
    expect(imagesOf(podIn(begin(reported)))).toEqual(["a:1"]);
    const { restartsByAlias: _, ...reference } = CONTEXT;
    const left = podIn(updatePod(pod, revisions([A]), OPTIONS, reference));
    expect(imagesOf(left)).toEqual(["a:1"]);
    expect(whyNotCompleted(left)).toMatch("runtime-container-meta not found");
  });

  test.each([
    ["an image without an alias", reading("a", "registry.example/a:1"), undefined, /imageID id-a names/],
    ["a container that has not run yet", A, { name: "a" }, /it has not run yet/],
  ])("%s makes an update in place impossible, with a reason", (_, container, status, why) => {
    expect(begin(podOf([container], status && [status]))).toEqual({
      kind: "notInPlace",
      why: expect.stringMatching(new RegExp(`^container a reads changed metadata: .*${why.source}`)),
    });
  });

  test("the container gets its alias in its own batch, after the first batch is done", () => {
    const barrier = (key: string) => [{ name: "KRUISE_CONTAINER_BARRIER", valueFrom: { configMapKeyRef: { key } } }];
    const first = { ...B, env: barrier("p_2") as NonNullable<Container["env"]> };
    const second = reading("a", "a:1", barrier("p_1") as NonNullable<Container["env"]>);
    const begun = podIn(begin(podOf([second, first]), [second, { ...first, image: "b:2" }]));
    expect([imagesOf(begun), begun.metadata?.labels?.["x"]]).toEqual([["a:1", "b:2"], "1"]);
    const through = restarted(begun, ran("a"), { ...ran("b", 1), imageID: "id-of-2" });
    const next = podIn(refreshPod(through, CONTEXT));
    expect([imagesOf(next), next.metadata?.labels?.["x"]]).toEqual([["docker.io/library/a:1", "b:2"], "2"]);
    expect(whyNotCompleted(next)).toBe("container a not restarted for its environment");
    const done = restarted(next, ran("a", 1), { ...ran("b", 1), imageID: "id-of-2" });
    expect(whyNotCompleted(done)).toBeUndefined();
  });

  test("isRestartUnderWay is true until the kubelet has restarted the container", () => {
    const parts = { containerImages: {}, containerRefMetadata: { a: { labels: { x: "3" } } } };
    const begun = podIn(begin(podOf([A, B])));
    expect(isRestartUnderWay(podOf([A, B]), parts)).toBe(false);
    expect(isRestartUnderWay(begun, parts)).toBe(true);
    expect(isRestartUnderWay(begun, { ...parts, containerImages: { a: "a:2" } })).toBe(false);
    expect(isRestartUnderWay(restarted(begun, ran("a", 1)), parts)).toBe(false);
  });

  test("the container gets its alias after the grace period", () => {
    const options = { ...OPTIONS, gracePeriodSeconds: 5 };
    const begun = podIn(updatePod(podOf([A]), revisions([A]), options, CONTEXT));
    expect(imagesOf(begun)).toEqual(["a:1"]);
    const later = { ...CONTEXT, now: NOW.replace(":00Z", ":10Z") };
    const due = podIn(refreshPod(begun, later));
    expect(imagesOf(due)).toEqual(["docker.io/library/a:1"]);
    expect(JSON.parse(due.metadata?.annotations?.[IN_PLACE_STATE_ANNOTATION] ?? "{}")).toMatchObject({
      restartedContainers: { a: { containerID: "containerd://a-0" } },
    });
    const gone = { ...begun, status: { containerStatuses: [{ name: "a" }] } };
    expect(refreshPod(gone, later)).toMatchObject({ kind: "refused", message: expect.stringContaining("not run yet") });
  });
});
