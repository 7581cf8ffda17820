/**
 * Tests that images with equal full names are equal in statuses; OpenKruise compares them as text (vectors
 * inplace-update).
 */
import { expect, test } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { asCompared } from "../../../shared/controller/statefulset/observe.ts";
import { whyNotCompleted } from "../../../shared/core/statefulset/in-place/update-completed.ts";
import { listedPod } from "../../support/objects.ts";

const podOf = (image: string, running: string): Pod =>
  listedPod(
    {
      name: "db-0",
      annotations: {
        "apps.kruise.io/inplace-update-state": JSON.stringify({
          revision: "rev",
          updateTimestamp: "2026-11-26T00:00:00Z",
          lastContainerStatuses: { main: { imageID: "id" } },
        }),
      },
    },
    { containers: [{ name: "main", image }] },
    { containerStatuses: [{ name: "main", image: running, imageID: "id", ready: true }] },
  );

test.each([
  ["app:1", "docker.io/library/app:1"],
  ["app", "docker.io/library/app:latest"],
  ["acme/app:1", "docker.io/acme/app:1"],
])("an update back to image %s is complete although its image id did not change", (image, running) => {
  const pod = podOf(image, running);
  expect(whyNotCompleted(pod)).toBe("container main imageID not changed");
  expect(whyNotCompleted(asCompared(pod))).toBeUndefined();
});

test.each([
  ["app:2", "docker.io/library/app:1"],
  ["registry.example/app:1", "docker.io/library/app:1"],
])("an update to %s is not complete while %s runs", (image, running) => {
  expect(whyNotCompleted(asCompared(podOf(image, running)))).toBe("container main imageID not changed");
});
