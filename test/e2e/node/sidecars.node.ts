/** Tests a sidecar on a real node: hooks, probes, init containers, images by digest. */
import { expect, it } from "vitest";
import type { Pod, Volume } from "../../../shared/api/kubernetes.ts";
import type { SidecarContainer } from "../../../shared/api/sidecarset.ts";
import { scenes } from "../support/open-scene.ts";
import { SIDECAR, setImage } from "../support/scene.ts";
import { runInside } from "./inside.ts";

const openScene = scenes();
const PROBED_AFTER_SECONDS = 3;
/** Container fields that only Kubernetes defines. */
const sidecar = (container: object) => container as SidecarContainer;
const say = (what: string) => ({ exec: { command: ["sh", "-c", `echo ${what} $IMAGE >> /shared/log`] } });

it("hooks of the old and the new container run in turn, and the next pod waits for the probe", async () => {
  const scene = await openScene({
    containers: [
      sidecar({
        ...SIDECAR,
        lifecycle: { postStart: say("started"), preStop: say("stopped") },
        readinessProbe: {
          exec: { command: ["test", "-f", "/tmp/ready"] },
          initialDelaySeconds: PROBED_AFTER_SECONDS,
          periodSeconds: 1,
        },
        volumeMounts: [{ name: "shared", mountPath: "/shared" }],
      }),
    ],
    volumes: [{ name: "shared", emptyDir: {} }] as object[] as Volume[],
    updateStrategy: { type: "RollingUpdate", maxUnavailable: 1 },
  });
  const pods = await scene.deploy(3);
  await scene.untilSettled();
  const since = await scene.now();
  const beganMs = performance.now();
  await scene.patchSet(setImage("agent:v2"));
  await scene.untilUpdated(3);
  expect(performance.now() - beganMs).toBeGreaterThan(3 * PROBED_AFTER_SECONDS * 1_000);
  expect(await scene.record(since)).toMatchObject({
    appContainerRestarts: 0,
    podPatches: 3,
    maxUnavailableObserved: 1,
  });
  for (const { metadata } of pods) {
    const log = await runInside(
      { namespace: scene.name, pod: metadata?.name ?? "", container: "agent" },
      "cat /shared/log",
    );
    expect(log.trim().split("\n")).toEqual([
      "started library/agent:v1",
      "stopped library/agent:v1",
      "started library/agent:v2",
    ]);
  }
});

it("a sidecar with a probe by port name and an init container that ends is updated", async () => {
  // A startup probe gets no defaults, as in OpenKruise.
  const probe = { httpGet: { path: "/", port: "web", scheme: "HTTP" }, periodSeconds: 1, successThreshold: 1 };
  const startupProbe = { ...probe, timeoutSeconds: 1, failureThreshold: 30 };
  const scene = await openScene({
    initContainers: [{ name: "prepare", image: "prepare-completes:v1" }],
    containers: [
      sidecar({
        name: "web",
        image: "web-serves:v1",
        ports: [{ name: "web", containerPort: 8080 }],
        startupProbe,
        // hot-upgrade.node.ts gives the reason.
        securityContext: { privileged: true },
        readinessProbe: probe,
      }),
    ],
  });
  await scene.deploy(2);
  await scene.untilSettled();
  const since = await scene.now();
  await scene.patchSet(setImage("web-serves:v2"));
  const pods = await scene.untilUpdated(2);
  for (const { status } of pods)
    expect(status?.initContainerStatuses).toMatchObject([
      { name: "prepare", restartCount: 0, state: { terminated: { reason: "Completed" } } },
    ]);
  expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0, podPatches: 2 });
});

it("an image changes from a tag to a digest, back, and to both together", async () => {
  const scene = await openScene();
  const [pod] = await scene.deploy(2);
  await scene.untilSettled();
  const imageId = ({ status }: Pod) => status?.containerStatuses?.find(({ name }) => name === "agent")?.imageID ?? "";
  const first = imageId(pod as Pod);
  const digest = /@(sha256:[0-9a-f]{64})$/.exec(first)?.[1];
  await scene.patchSet(setImage("agent:v2"));
  for (const one of await scene.untilUpdated(2)) expect(imageId(one)).not.toBe(first);
  for (const image of [`agent@${digest}`, "agent:v3", `agent:v1@${digest}`, "agent:v4"]) {
    const since = await scene.now();
    await scene.patchSet(setImage(image));
    await scene.untilToldThat(/2 of 2 pods updated, 2 of them ready/);
    expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0, podPatches: 2 });
    const ids = new Set((await scene.pods()).map(imageId));
    if (image.includes("@")) expect(ids).toEqual(new Set([first]));
    else expect(ids).not.toContain(first);
  }
});
