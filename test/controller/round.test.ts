/** Tests the Events of a round of hot upgrades that empties the old container. */
import { expect, it } from "vitest";
import type { KubernetesObject, Pod } from "../../shared/api/kubernetes.ts";
import { WORKING_HOT_UPGRADE_ANNOTATION } from "../../shared/api/names.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import { podsAreTold } from "../../shared/controller/rollout/notify.ts";
import { beginRollout } from "../../shared/controller/rollout/rollout.ts";
import { EVENTS, PODS, SIDECARSETS } from "../../shared/kube/port.ts";
import { type Refuse, refusal } from "./bare-cluster.ts";
import { bareRollout, running } from "./bare-rollout.ts";
import { imageOf, injectedPod, NAMESPACE } from "./fixture.ts";

const EMPTY = "registry.example/empty:1";

interface Told extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly involvedObject?: { readonly kind?: string; readonly namespace?: string; readonly name?: string };
}

/**
 * Prepares pods "set-0" and "set-1" at version 2, whose new container runs beside the old one. Both may be upgraded at
 * once.
 */
async function upgradedHot(refuse?: Refuse) {
  let isFlipping = false;
  const on = bareRollout("set", (call, nth) => (isFlipping ? refuse?.(call, nth) : undefined));
  const upgradeStrategy = { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: EMPTY };
  const release = (version: number) => {
    on.release(version, { maxUnavailable: "100%" });
    const set = on.readSet();
    const containers = [{ name: "proxy", upgradeStrategy, image: imageOf(version) }];
    on.server.put("test", SIDECARSETS, { ...set, spec: { ...set.spec, containers } } as SidecarSet);
  };
  release(1);
  for (const name of ["set-0", "set-1"]) {
    const { metadata, spec } = injectedPod("set", name);
    const containers = [
      ...spec.containers.slice(0, 1),
      { name: "proxy-1", image: imageOf(1) },
      { name: "proxy-2", image: EMPTY },
    ];
    const annotations = { ...metadata?.annotations, [WORKING_HOT_UPGRADE_ANNOTATION]: '{"proxy":"proxy-1"}' };
    on.server.put(
      "test",
      PODS,
      running({ metadata: { ...metadata, annotations, uid: `uid-${name}` }, spec: { containers } }),
    );
  }
  release(2);
  await beginRollout(on.context, "set");
  await podsAreTold(on.context);
  const callsBefore = on.calls.length;
  for (const index of [0, 1]) on.settle(index);
  isFlipping = true;
  const isOfFlip = ({ reason }: Told) => reason !== "SidecarUpdated";
  const events = () =>
    on.server
      .all<Told>(EVENTS)
      .filter(isOfFlip)
      .map(({ type, reason, message, involvedObject }) => {
        const { kind, namespace, name } = involvedObject ?? {};
        return [`${kind} ${namespace}/${name}`, type, reason, message];
      });
  const oldImages = () => [0, 1].map((index) => on.readPod(index).spec.containers[1]?.image);
  const writesOfEvents = () =>
    on.calls
      .slice(callsBefore)
      .filter(([, call]) => call.endsWith(" events"))
      .map(([, call]) => call);
  return { ...on, events, oldImages, writesOfEvents, round: () => beginRollout(on.context, "set") };
}

it("one Event per pod says that the old container of a hot upgrade was emptied", async () => {
  const { round, events, oldImages, context, writesOfEvents } = await upgradedHot();
  await round();
  const told = ["Normal", "ResetContainerSucceed", "reset sidecar container image empty successfully"];
  expect(events()).toEqual([
    ["Pod shop/set-0", ...told],
    ["Pod shop/set-1", ...told],
  ]);
  expect(oldImages()).toEqual([EMPTY, EMPTY]);
  expect(context.tally).toMatchObject({ upgraded: 2, flipped: 2, problems: [] });
  expect(writesOfEvents()).toEqual(["CREATE events", "CREATE events"]);
});

it("one Event per pod and pass says why the old container could not be emptied", async () => {
  const refuse: Refuse = (call) => (call === "PATCH pods" ? refusal(403, "a policy says no") : undefined);
  const { round, events, oldImages, context, writesOfEvents } = await upgradedHot(refuse);
  await round();
  await round();
  const told = ["Warning", "ResetContainerFailed", "reset sidecar container image empty failed: a policy says no"];
  expect(events()).toEqual([
    ["Pod shop/set-0", ...told],
    ["Pod shop/set-1", ...told],
  ]);
  expect(oldImages()).toEqual([imageOf(1), imageOf(1)]);
  expect(context.tally.flipped).toBe(0);
  expect(writesOfEvents()).toEqual(["CREATE events", "CREATE events"]);
});

it("a pod that has changed gets no Event until its old container is emptied", async () => {
  const on = await upgradedHot((call, nth) => {
    if (call !== "PATCH pods" || nth !== 3) return undefined;
    on.server.put("test", PODS, {
      ...on.readPod(0),
      metadata: { ...on.readPod(0).metadata, labels: { app: "set" } },
    } as Pod);
    return refusal(422, "Invalid");
  });
  await on.round();
  expect(on.events().map(([pod]) => pod)).toEqual([`Pod ${NAMESPACE}/set-1`]);
  await on.round();
  expect(on.events().map(([pod]) => pod)).toEqual([`Pod ${NAMESPACE}/set-0`, `Pod ${NAMESPACE}/set-1`]);
});
