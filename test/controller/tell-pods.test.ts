/** Tests the Event about a pod whose sidecars are changed in place. */
import { expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { podsAreTold, tellPods } from "../../shared/controller/rollout/notify.ts";
import { beginRollout } from "../../shared/controller/rollout/rollout.ts";
import { KubeError } from "../../shared/kube/error.ts";
import { EVENTS } from "../../shared/kube/port.ts";
import { bareRollout, contextOn } from "./bare-rollout.ts";

interface Told extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly kind: string; readonly namespace: string; readonly name: string };
}

/** Runs a round that updates `count` pods. */
async function updated(count: number, refuse?: Parameters<typeof bareRollout>[1], endsInMs = 60_000) {
  const on = bareRollout("web", refuse);
  on.deploy(count, { maxUnavailable: "100%" });
  on.release(2, { maxUnavailable: "100%" });
  const context = { ...contextOn(on.cluster, on.clock), endsAtMs: on.clock.now() + endsInMs };
  await beginRollout(context, "web");
  await podsAreTold(context);
  const events = on.server.all<Told>(EVENTS).filter(({ reason }) => reason === "SidecarUpdated");
  return { ...on, tally: context.tally, events };
}

it("each pod whose sidecars are changed in place gets one Event that names the SidecarSet, the container and its image", async () => {
  const { events, readPod } = await updated(2);
  const { name, image } = readPod(0).spec.containers.at(-1) ?? {};
  const message = `SidecarSet web updates in place: ${name} to ${image}`;
  expect(events.map(({ type, involvedObject, ...event }) => [type, involvedObject?.name, event.message])).toEqual([
    ["Normal", "web-0", message],
    ["Normal", "web-1", message],
  ]);
});

it("the Event of a pod whose variables change names them and the image with its new spelling", async () => {
  const on = bareRollout("web");
  on.deploy(1);
  const pod = { ...on.keyOf(0), uid: "uid-web-0", resourceVersion: "1" };
  const images = [{ index: 1, container: "proxy", from: "proxy:1", to: "docker.io/library/proxy:1" }];
  const annotations = {
    "web.value.sidecarset.kruise.io/proxy.LEVEL": "warn",
    "values.sidecarset.kruise.io/web": "{}",
    "web-2.value.sidecarset.kruise.io/other.LEVEL": "of another SidecarSet",
  };
  const patch = {
    kind: "PatchPod",
    purpose: "upgrade",
    pod,
    images,
    annotations,
    isFirstAnnotation: false,
    usesBudget: true,
  } as const;
  const context = { ...contextOn(on.cluster, on.clock), endsAtMs: on.clock.now() + 60_000 };
  tellPods(context, on.readSet(), [patch]);
  await podsAreTold(context);
  expect(on.server.all<Told>(EVENTS).map(({ message }) => message)).toEqual([
    "SidecarSet web updates in place: proxy to docker.io/library/proxy:1; new values of proxy.LEVEL",
  ]);
});

it("a pod whose update is refused gets no Event, and the others get theirs", async () => {
  const refused = new KubeError("a policy says no", { code: 403, reason: "Forbidden", isOutcomeKnown: true });
  const { events } = await updated(3, (call, nth) => (call === "PATCH pods" && nth === 1 ? refused : undefined));
  expect(events).toHaveLength(2);
});

it("pods are updated even if no Event may be written", async () => {
  const forbidden = new KubeError("no events", { code: 403, reason: "Forbidden", isOutcomeKnown: true });
  const { tally, events } = await updated(2, (call) => (call === "CREATE events" ? forbidden : undefined));
  expect([tally.upgraded, tally.problems, events]).toEqual([2, [], []]);
});

it("a pass that is about to end writes no Events", async () => {
  const told = async (endsInMs: number) => {
    const { tally, events } = await updated(2, undefined, endsInMs);
    return [tally.upgraded, events.length];
  };
  expect([await told(8_000), await told(1_999)]).toEqual([
    [2, 2],
    [2, 0],
  ]);
});
