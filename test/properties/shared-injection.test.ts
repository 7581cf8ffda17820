import fc from "fast-check";
import { expect, test } from "vitest";
import { admissionResponse } from "../../shared/webhook/review/response.ts";
import { deepFreeze } from "../support/deep-freeze.ts";
import { admission, podRequest } from "./admission.ts";
import { type Scene, scenes } from "./arbitraries.ts";
import { holds } from "./holds.ts";

const SECONDS = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", "2026-01-02T03:04:05Z"];

/** Returns the whole answer, and the patch as it is sent. */
function answerOf(scene: Scene, now: string) {
  const decided = deepFreeze(admission(scene, { now }));
  return { decided, response: deepFreeze(admissionResponse(podRequest(scene.pod), decided)) };
}

test("cached parts of SidecarSets do not change the answer for a later pod", () => {
  const classes = ["injected", "alone", "with others", "refused", "left alone"];
  holds(fc.tuple(scenes, scenes), classes, ([{ pod, sidecarSets, revisions }, other], seen) => {
    deepFreeze(sidecarSets);
    for (const [turn, now] of SECONDS.entries()) {
      const scene: Scene = { pod: turn === 1 ? other.pod : pod, sidecarSets, revisions };
      const shared = answerOf(scene, now);
      const alone = answerOf({ ...scene, sidecarSets: structuredClone(sidecarSets) }, now);
      expect(shared).toEqual(alone);
      const isInjected = shared.response.patch !== undefined;
      seen("injected", isInjected);
      seen("alone", isInjected && sidecarSets.length === 1);
      seen("with others", isInjected && sidecarSets.length > 1);
      seen("refused", !shared.response.allowed);
      seen("left alone", shared.response.allowed && !isInjected);
    }
  });
});
