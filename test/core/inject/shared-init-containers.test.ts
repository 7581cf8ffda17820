/**
 * Tests that the parts of a SidecarSet which are equal for all pods are built once. Init containers that share volumes
 * of the pod are built for each pod.
 */
import { expect, it } from "vitest";
import { storedSidecarSet } from "../../../functions/library/pass-input.ts";
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

it("the init container of one SidecarSet gets the volumes of each pod, also when pods with different volumes follow each other", () => {
  // The webhook also reuses this object for each pod.
  const sidecarSets = [storedSidecarSet(SIDECAR_SET)];
  const context = { now: "2026-01-02T03:04:05Z", random: () => 0, kruiseNamespace: KRUISE_NAMESPACE, gates: {} };
  for (const volume of ["a", "b", "a"]) {
    const subject = { pod: podWith(volume), namespace: "shop", sidecarSets, revisions: [] };
    const [init] = previewPod(subject, context).pod?.spec.initContainers ?? [];
    expect(init?.volumeMounts?.map(({ name }) => name)).toEqual([volume]);
  }
});
