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

describe("the API server tells us of a pod", () => {
  test.each<[string, object | undefined, object | undefined, boolean]>([
    ["that turns ready", ready("False"), ready("True"), true],
    ["that is ready with its first status", undefined, ready("True"), true],
    ["that is ready with its first conditions", {}, ready("True"), true],
    ["that stays ready", ready("True"), ready("True"), false],
    ["that stays unready", ready("False"), ready("False"), false],
    ["that turns unready", ready("True"), ready("False"), false],
    ["that loses its status", ready("True"), undefined, false],
    ["another of whose conditions turns true", {}, { conditions: [{ type: "Initialized", status: "True" }] }, false],
    ["whose container crashes again and again", statuses(running()), statuses(waiting("CrashLoopBackOff")), true],
    ["whose image is not there", statuses(waiting("ContainerCreating")), statuses(waiting("ErrImagePull")), true],
    ["whose image is not there with its first status", undefined, statuses(waiting("ImagePullBackOff")), true],
    ["whose image is still not there", statuses(waiting("ErrImagePull")), statuses(waiting("ImagePullBackOff")), false],
    ["that starts", statuses(waiting("PodInitializing")), statuses(waiting("ContainerCreating")), false],
    ["that runs again", statuses(waiting("CrashLoopBackOff")), statuses(running()), false],
    ["that waits without a reason", statuses(running()), statuses({ name: "agent", state: { waiting: {} } }), false],
    ["whose container has no state", statuses(running()), statuses({ name: "agent" }), false],
    [
      "another container of which fails too",
      statuses(waiting("CrashLoopBackOff"), running("main")),
      statuses(waiting("CrashLoopBackOff"), waiting("CrashLoopBackOff", "main")),
      true,
    ],
    [
      "whose init container fails",
      { initContainerStatuses: [running("init")] },
      { initContainerStatuses: [waiting("CrashLoopBackOff", "init")] },
      true,
    ],
  ])("%s: %#", (_, before, after, expected) => {
    expect(passes(before, after)).toBe(expected);
  });

  test.each(Object.entries(CONTAINER_REASONS))(
    "whose container begins to wait for %s, as it fails or not",
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
    ["whose container begins to wait for its turn", statuses(waiting("ContainerCreating")), statuses(held), true],
    ["whose container waits with its first status", undefined, statuses(held), true],
    ["whose container waits still", statuses(held), statuses(held), false],
    ["whose container turns ready", statuses(isReady(false), held), statuses(isReady(true), held), true],
    ["whose container stays ready", statuses(isReady(true)), statuses(isReady(true)), false],
    ["whose container runs, and is not ready yet", statuses(held), statuses(isReady(false)), false],
    [
      "another container of which turns ready",
      statuses(isReady(true)),
      statuses(isReady(true), isReady(true, "b")),
      true,
    ],
    ["whose launch is complete", statuses(isReady(false)), statuses(isReady(true)), false, { metadata: completed }],
    [
      "whose containers wait for another thing",
      undefined,
      statuses(held),
      false,
      { metadata: {}, spec: barrier("OTHER") },
    ],
    ["whose containers have no environment", undefined, statuses(held), false, { metadata: {}, spec: PLAIN }],
  ])("whose containers start in an order, %s: %#", (...[, before, after, expected, pod = {}]) => {
    expect(passes(before, after, pod.metadata ?? {}, pod.spec ?? barrier())).toBe(expected);
  });

  test.each<[string, object]>([
    ["without annotations", {}],
    ["with others", { annotations: { "example.com/x": "y" } }],
  ])("but of none %s", (_, metadata) => {
    expect(passes(ready("False"), ready("True"), metadata)).toBe(false);
  });
});

test("nobody's status waits for us: a second at most, and whatever we answer", () => {
  expect(webhook).toMatchObject({
    failurePolicy: "Ignore",
    sideEffects: "NoneOnDryRun",
    timeoutSeconds: 1,
    rules: [{ operations: ["UPDATE"], resources: ["pods/status"] }],
    clientConfig: { url: "https://webhooks.example.com/hint-pod-status" },
  });
});
