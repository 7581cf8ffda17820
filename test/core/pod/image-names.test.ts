import { describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { withSpecImages } from "../../../shared/core/pod/image-names.ts";
import { listedPod } from "../../support/objects.ts";

const podWith = (image: string, running: string, init?: string): Pod =>
  listedPod(
    { name: "p" },
    { containers: [{ name: "a", image }], ...(init ? { initContainers: [{ name: "i", image: init }] } : {}) },
    {
      containerStatuses: [{ name: "a", image: running, imageID: "id", ready: true }],
      ...(init
        ? { initContainerStatuses: [{ name: "i", image: `docker.io/${init}`, imageID: "id", ready: true }] }
        : {}),
    },
  );
const shown = (pod: Pod) => withSpecImages(pod).status?.containerStatuses?.map(({ image }) => image);

describe("an image that is written in short is the runtime's full name", () => {
  it.each([
    ["of the library", "nginx:1.29", "docker.io/library/nginx:1.29"],
    ["of a user", "fluent/fluent-bit:4.1.0", "docker.io/fluent/fluent-bit:4.1.0"],
    ["without a tag", "nginx", "docker.io/library/nginx:latest"],
    ["by digest", `nginx@sha256:${"a".repeat(64)}`, `docker.io/library/nginx@sha256:${"a".repeat(64)}`],
  ])("%s", (_what, image, full) => {
    expect(shown(podWith(image, full))).toEqual([image]);
  });
});

describe("images of statuses", () => {
  it.each([
    ["another tag", "nginx:1.29", "docker.io/library/nginx:1.28"],
    ["another registry", "example.com/nginx:1", "docker.io/library/nginx:1"],
    ["a port that looks like a tag", "localhost:5000/nginx:1", "docker.io/localhost:5000/nginx:1"],
    ["what is written in full", "docker.io/library/nginx:1", "docker.io/library/nginx:1"],
  ])("stay as they are: %s", (_what, image, running) => {
    expect(shown(podWith(image, running))).toEqual([running]);
  });

  it("of init containers too, and a pod with none of them is the same object", () => {
    const pod = withSpecImages(podWith("example.com/a:1", "example.com/a:1", "envoyproxy/envoy:1"));
    expect(pod.status?.initContainerStatuses?.[0]?.image).toBe("envoyproxy/envoy:1");
    const plain = podWith("example.com/a:1", "example.com/a:1");
    expect(withSpecImages(plain)).toBe(plain);
    const bare = listedPod({ name: "p" }, { containers: [] }, { containerStatuses: null } as object);
    expect(withSpecImages(bare)).toBe(bare);
  });
});
