/** What a SidecarSet brings to every pod alike is made once; an init container that takes from the pod is not alike. */
import { expect, it } from "vitest";
import { storedSidecarSet } from "../../../functions/library/stored-sidecarset.ts";
import type { Pod, Volume } from "../../../shared/api/kubernetes.ts";
import { KRUISE_NAMESPACE } from "../../../shared/api/names.ts";
import { previewPod } from "../../../shared/core/injection/preview.ts";
import { newPod } from "../../support/objects.ts";

const SIDECAR_SET = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "SidecarSet",
  metadata: { name: "prepare" },
  spec: {
    selector: { matchLabels: { app: "web" } },
    initContainers: [{ name: "init", image: "init:1", shareVolumePolicy: { type: "enabled" } }],
    containers: [{ name: "agent", image: "agent:1" }],
  },
};

function podWith(volume: string): Pod {
  const volumeMounts = [{ name: volume, mountPath: `/${volume}` }];
  const volumes = [{ name: volume, emptyDir: {} } as Volume];
  return newPod(
    { name: volume, labels: { app: "web" } },
    { containers: [{ name: "app", image: "app:1", volumeMounts }], volumes },
  );
}

it("pods with volumes of their own get init containers with those, one after the other by the same SidecarSet", () => {
  // Kept from pod to pod, as a webhook keeps it.
  const sidecarSets = [storedSidecarSet(SIDECAR_SET)];
  const context = { now: "2026-01-02T03:04:05Z", random: () => 0, kruiseNamespace: KRUISE_NAMESPACE, gates: {} };
  for (const volume of ["a", "b", "a"]) {
    const subject = { pod: podWith(volume), namespace: "shop", sidecarSets, revisions: [] };
    const [init] = previewPod(subject, context).pod?.spec.initContainers ?? [];
    expect(init?.volumeMounts?.map(({ name }) => name)).toEqual([volume]);
  }
});
