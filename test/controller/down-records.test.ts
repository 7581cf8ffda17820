/** Tests a pod whose author replaced its record of an update in place. */
import { expect, it } from "vitest";
import { IN_PLACE_UPDATE_STATE_ANNOTATION } from "../../shared/api/names.ts";
import { newPassMemory, runPass } from "../../shared/controller/pass.ts";
import { readObservation } from "../../shared/controller/rollout/read-observation.ts";
import { readDetail } from "../../shared/controller/rollout/read-report.ts";
import { checkBlocked } from "../../shared/core/inspect/check/passes.ts";
import { traceRollout } from "../../shared/core/inspect/explain/trace-rollout.ts";
import { decide } from "../../shared/core/rollout/decide.ts";
import { DEFAULT_ROLLOUT_SETTINGS } from "../../shared/core/rollout/rollout-settings.ts";
import { EVENTS, NAMESPACES, PODS } from "../../shared/kube/port.ts";
import { bareRollout } from "./bare-rollout.ts";
import { KRUISE_NAMESPACE } from "./fixture.ts";
import { sharedClock, steppedClock } from "./stepped-clock.ts";

it("every reader names a pod whose record of an update in place cannot be read, and the rollout continues without it", async () => {
  const on = bareRollout("web", undefined, { ...steppedClock(), ...sharedClock() });
  on.server.put("test", NAMESPACES, { metadata: { name: "default", uid: "default" } });
  on.deploy(3, { maxUnavailable: 1 });
  on.release(2, { maxUnavailable: 1 });
  const settings = DEFAULT_ROLLOUT_SETTINGS;
  const pass = async () => {
    const memory = newPassMemory();
    const options = { deadlineMs: 20_000, kruiseNamespace: KRUISE_NAMESPACE, sidecarSet: "web", settings, memory };
    await on.clock.sleep(10_000);
    return await runPass(on.cluster, { ...options, follow: false, clock: on.clock });
  };
  await pass();
  const index = on.versions().split(" ").indexOf("2");
  on.settle(index);
  const { metadata, ...pod } = on.readPod(index);
  const annotations = { ...metadata?.annotations, [IN_PLACE_UPDATE_STATE_ANNOTATION]: "4" };
  on.server.put("tenant", PODS, { ...pod, metadata: { ...metadata, annotations } });
  await pass();
  await pass();
  const words = `shop/web-${index} (its annotation ${IN_PLACE_UPDATE_STATE_ANNOTATION} cannot be read)`;
  const text = `1 of at most 1 pod is unavailable; ${words}`;
  const { conditions } = on.readSet().status ?? {};
  expect(conditions?.find(({ type }) => type === "Blocked")).toMatchObject({ status: "True", message: text });
  expect(conditions?.find(({ type }) => type === "Degraded")).toMatchObject({
    status: "True",
    message: `1 pod with the latest sidecars: ${words}`,
  });
  expect(JSON.stringify(on.server.all(EVENTS))).toContain(words);

  const context = { cluster: on.cluster, clock: on.clock, kruiseNamespace: KRUISE_NAMESPACE, settings };
  const read = await readObservation(context, "web");
  expect(read).toBeDefined();
  if (!read) return;
  const decision = decide(read.observation, read.context);
  const [finding] = checkBlocked(on.readSet(), decision);
  expect(finding?.message).toContain(text);
  expect(finding?.hint).not.toContain("undo");
  const facts = { ...read.observation, ...read.context, lastPass: undefined };
  const steps = traceRollout(on.readSet(), facts, decision);
  expect(steps).toContainEqual(
    expect.objectContaining({ reason: "RecordUnreadable", message: expect.stringContaining(words) }),
  );
  const detail = await readDetail({ ...context, clusterName: "" }, "web");
  expect(JSON.stringify(detail)).toContain(`its annotation ${IN_PLACE_UPDATE_STATE_ANNOTATION} cannot be read`);

  // `explain` advises to remove the annotation.
  const before = on.versions();
  const { metadata: now, ...same } = on.readPod(index);
  const { [IN_PLACE_UPDATE_STATE_ANNOTATION]: _, ...left } = now?.annotations ?? {};
  on.server.put("tenant", PODS, { ...same, metadata: { ...now, annotations: left } });
  await pass();
  expect([before, on.versions()].map((versions) => versions.split("2").length - 1)).toEqual([1, 2]);
});
