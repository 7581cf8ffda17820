import { evaluate } from "@marcbachmann/cel-js";
import { describe, expect, test } from "vitest";
import { CONTAINER_REASONS } from "../../shared/core/pod/container-failure.ts";
import { statusHintsWebhook } from "../../shared/install/webhooks/status-hints.ts";

const [webhook] = statusHintsWebhook({ url: "https://webhooks.example.com" }).webhooks as readonly {
  readonly matchConditions: readonly { readonly expression: string }[];
}[];

const INJECTED = { annotations: { "kruise.io/sidecarset-hash": "{}" } };
const ready = (status: string) => ({
  conditions: [
    { type: "PodScheduled", status: "True" },
    { type: "Ready", status },
  ],
});
const waiting = (reason: string, name = "agent") => ({ name, state: { waiting: { reason } } });
const running = (name = "agent") => ({ name, state: { running: {} } });
const statuses = (...containerStatuses: readonly object[]) => ({ containerStatuses });

const PLAIN = { containers: [{ name: "agent" }] };

function passes(
  oldStatus: object | undefined,
  status: object | undefined,
  metadata: object = INJECTED,
  spec: object = PLAIN,
): boolean {
  const pod = (of: object | undefined) => (of === undefined ? { metadata, spec } : { metadata, spec, status: of });
  const context = { object: pod(status), oldObject: pod(oldStatus) };
  return (webhook?.matchConditions ?? []).every(({ expression }) => evaluate(expression, context) === true);
}

describe("the registration for hints about the status of pods:", () => {
  test.each<[string, object | undefined, object | undefined, boolean]>([
    ["a pod that becomes ready gives a hint", ready("False"), ready("True"), true],
    ["a pod that is ready in its first status gives a hint", undefined, ready("True"), true],
    ["a pod that is ready in its first conditions gives a hint", {}, ready("True"), true],
    ["a pod that stays ready gives no hint", ready("True"), ready("True"), false],
    ["a pod that stays unready gives no hint", ready("False"), ready("False"), false],
    ["a pod that becomes unready gives no hint", ready("True"), ready("False"), false],
    ["a pod that loses its status gives no hint", ready("True"), undefined, false],
    [
      "a pod gives no hint when a condition other than Ready becomes true",
      {},
      { conditions: [{ type: "Initialized", status: "True" }] },
      false,
    ],
    [
      "a pod whose container starts to wait in CrashLoopBackOff gives a hint",
      statuses(running()),
      statuses(waiting("CrashLoopBackOff")),
      true,
    ],
    [
      "a pod whose image cannot be pulled gives a hint",
      statuses(waiting("ContainerCreating")),
      statuses(waiting("ErrImagePull")),
      true,
    ],
    [
      "a pod whose first status has ImagePullBackOff gives a hint",
      undefined,
      statuses(waiting("ImagePullBackOff")),
      true,
    ],
    [
      "a pod whose image still cannot be pulled gives no hint",
      statuses(waiting("ErrImagePull")),
      statuses(waiting("ImagePullBackOff")),
      false,
    ],
    [
      "a pod whose container is being created gives no hint",
      statuses(waiting("PodInitializing")),
      statuses(waiting("ContainerCreating")),
      false,
    ],
    [
      "a pod whose crashed container runs again gives no hint",
      statuses(waiting("CrashLoopBackOff")),
      statuses(running()),
      false,
    ],
    [
      "a pod whose container waits without a reason gives no hint",
      statuses(running()),
      statuses({ name: "agent", state: { waiting: {} } }),
      false,
    ],
    ["a pod whose container has no state gives no hint", statuses(running()), statuses({ name: "agent" }), false],
    [
      "a pod with a second container in CrashLoopBackOff gives a hint",
      statuses(waiting("CrashLoopBackOff"), running("main")),
      statuses(waiting("CrashLoopBackOff"), waiting("CrashLoopBackOff", "main")),
      true,
    ],
    [
      "a pod whose init container starts to wait in CrashLoopBackOff gives a hint",
      { initContainerStatuses: [running("init")] },
      { initContainerStatuses: [waiting("CrashLoopBackOff", "init")] },
      true,
    ],
  ])("%s", (_, before, after, expected) => {
    expect(passes(before, after)).toBe(expected);
  });

  test.each(Object.entries(CONTAINER_REASONS))(
    "a pod whose container starts to wait with reason %s gives a hint unless such a wait soon ends",
    (reason, known) => {
      expect(passes(statuses(running()), statuses(waiting(reason)))).toBe(known.comesBack !== "soon");
    },
  );

  const barrier = (name = "KRUISE_CONTAINER_BARRIER") => ({
    containers: [{ name: "main" }, { name: "agent", env: [{ name: "A", value: "b" }, { name }] }],
  });
  const isReady = (value: boolean, name = "agent") => ({ ...running(name), ready: value });
  const held = waiting("CreateContainerConfigError");
  const completed = { annotations: { "apps.kruise.io/container-launch-priority-completed": "true" } };
  type Launching = { readonly metadata?: object; readonly spec?: object };
  test.each<[string, object | undefined, object | undefined, boolean, Launching?]>([
    [
      "a container that starts to wait for its turn gives a hint",
      statuses(waiting("ContainerCreating")),
      statuses(held),
      true,
    ],
    ["a container that waits for its turn in the first status gives a hint", undefined, statuses(held), true],
    ["a container that still waits for its turn gives no hint", statuses(held), statuses(held), false],
    [
      "a container that becomes ready gives a hint",
      statuses(isReady(false), held),
      statuses(isReady(true), held),
      true,
    ],
    ["a container that stays ready gives no hint", statuses(isReady(true)), statuses(isReady(true)), false],
    ["a container that runs and is not ready yet gives no hint", statuses(held), statuses(isReady(false)), false],
    [
      "a second container that becomes ready gives a hint",
      statuses(isReady(true)),
      statuses(isReady(true), isReady(true, "b")),
      true,
    ],
    [
      "a container that becomes ready after the launch is complete gives no hint",
      statuses(isReady(false)),
      statuses(isReady(true)),
      false,
      { metadata: completed },
    ],
    [
      "a container that waits without the barrier variable gives no hint",
      undefined,
      statuses(held),
      false,
      { metadata: {}, spec: barrier("OTHER") },
    ],
    [
      "a container that waits without an environment gives no hint",
      undefined,
      statuses(held),
      false,
      { metadata: {}, spec: PLAIN },
    ],
  ])("in a pod with a launch order %s", (...[, before, after, expected, pod = {}]) => {
    expect(passes(before, after, pod.metadata ?? {}, pod.spec ?? barrier())).toBe(expected);
  });

  test.each<[string, object]>([
    ["annotations", {}],
    ["the annotations of an injection", { annotations: { "example.com/x": "y" } }],
  ])("a pod that becomes ready without %s gives no hint", (_, metadata) => {
    expect(passes(ready("False"), ready("True"), metadata)).toBe(false);
  });
});

test("an API server waits at most one second for the webhook of hints and ignores its failures", () => {
  expect(webhook).toMatchObject({
    failurePolicy: "Ignore",
    sideEffects: "NoneOnDryRun",
    timeoutSeconds: 1,
    rules: [{ operations: ["UPDATE"], resources: ["pods/status"] }],
    clientConfig: { url: "https://webhooks.example.com/hint-pod-status" },
  });
});
