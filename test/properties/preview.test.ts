import { expect, test } from "vitest";
import { previewPod } from "../../shared/core/injection/preview.ts";
import { admissionResponse } from "../../shared/webhook/review/response.ts";
import { admission, podRequest } from "./admission.ts";
import { KRUISE_NAMESPACE, NAMESPACE, scenes } from "./arbitraries.ts";
import { holds } from "./holds.ts";

const CONTEXT = { now: "2026-01-02T03:04:05Z", random: () => 0.3, kruiseNamespace: KRUISE_NAMESPACE, gates: {} };

test("a preview has the same patch and the same message as the webhook's answer", () => {
  holds(
    scenes,
    ["patched", "left alone", "refused"],
    (scene, seen) => {
      const { request, admission: decided } = previewPod(
        { ...scene, namespace: "shop", namespaceObject: NAMESPACE },
        CONTEXT,
      );
      const previewed = admissionResponse(request, decided);
      const answered = admissionResponse(podRequest(scene.pod), admission(scene));
      expect(previewed.patch).toBe(answered.patch);
      expect(previewed.status?.message).toBe(answered.status?.message);
      seen("patched", answered.patch !== undefined);
      seen("left alone", answered.allowed && answered.patch === undefined);
      seen("refused", !answered.allowed);
    },
    5_000,
  );
});
