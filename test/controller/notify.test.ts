/** Tests new notifications that come while another is being sent. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Notification, SidecarSet } from "../../shared/api/sidecarset.ts";
import { systemClock } from "../../shared/controller/loop/clock.ts";
import { beginNotify, notificationsAreSent } from "../../shared/controller/rollout/notify.ts";
import type { Context } from "../../shared/controller/rollout/observe.ts";
import { claimed } from "../../shared/core/rollout/notifications.ts";
import { SIDECARSETS } from "../../shared/kube/port.ts";
import { sidecarSet, startTestCluster, type TestCluster } from "./fixture.ts";

let test: TestCluster;
beforeAll(async () => {
  test = await startTestCluster();
  await test.cluster.create<SidecarSet>(SIDECARSETS, sidecarSet("told", 1, {}));
});
afterAll(() => test?.close());

const newsOf = (id: string): Notification => ({
  id,
  at: new Date().toISOString(),
  event: id === "first" ? "Blocked" : "WavePassed",
  message: "3 pods fail",
});

async function store(...more: readonly Notification[]): Promise<SidecarSet> {
  const { status } = await test.cluster.get<SidecarSet>(SIDECARSETS, { name: "told" });
  const counts = { matchedPods: 0, updatedPods: 0, readyPods: 0 };
  const body = { status: { ...counts, notifications: [...(status?.notifications ?? []), ...more] } };
  const patch = { type: "merge", body } as const;
  return await test.cluster.patch<SidecarSet>(SIDECARSETS, { name: "told" }, patch, { subresource: "status" });
}

it("notifications that arise while another one is being sent are sent right after it", async () => {
  const sent: string[] = [];
  let isNewBegun = false;
  const tally: { notificationProblem?: string } = {};
  const notify = async (_: unknown, { id }: Notification) => {
    sent.push(id);
    if (id === "first") {
      beginNotify(context, undefined, await store(newsOf("second")));
      isNewBegun = true;
    }
    return undefined;
  };
  const context = {
    ...{ cluster: test.cluster, clock: systemClock, tally, gates: { notify } },
    endsAtMs: systemClock.now() + 3_600_000,
  } as unknown as Context;
  beginNotify(context, undefined, await store(newsOf("first")));
  await expect.poll(() => isNewBegun).toBe(true);
  await notificationsAreSent(context);
  expect([sent, tally.notificationProblem]).toEqual([["first", "second"], undefined]);
});

it("while one pass sends notifications, another pass claims none, not even newer ones", () => {
  const now = "2026-11-30T10:00:30Z";
  const set = (...notifications: readonly Notification[]) =>
    ({ ...sidecarSet("told", 1, {}), status: { notifications } }) as unknown as SidecarSet;
  const sent = { ...newsOf("first"), at: now, claimedAt: "2026-11-30T10:00:00Z" };
  const fresh = { ...newsOf("second"), at: now };
  expect(claimed(set(sent, fresh), now)).toBeUndefined();
  const later = "2026-11-30T10:01:00Z";
  expect(claimed(set(sent, fresh), later)?.map(({ claimedAt }) => claimedAt)).toEqual([later, later]);
});

it("the pass says that the newest notification was given up after a week", async () => {
  const tally: { notificationProblem?: string } = {};
  const context = {
    ...{ cluster: test.cluster, clock: systemClock, tally, gates: { notify: async () => undefined } },
    endsAtMs: systemClock.now() + 3_600_000,
  } as unknown as Context;
  const at = new Date(Date.now() - 8 * 86_400_000).toISOString();
  const old = { id: "old", at, event: "RolloutFinished", message: "m", givenUp: 3 };
  beginNotify(context, undefined, await store(old));
  await notificationsAreSent(context);
  expect(tally.notificationProblem).toMatch(/^4 notifications were given up: /);
});
