import { describe, expect, it } from "vitest";
import type { Pod } from "../../../shared/api/kubernetes.ts";
import { withSpecImages } from "../../../shared/core/pod/image-alias.ts";
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

describe("withSpecImages with a short image name:", () => {
  it.each([
    ["of an official image", "nginx:1.29", "docker.io/library/nginx:1.29"],
    ["of a user's image", "fluent/fluent-bit:4.1.0", "docker.io/fluent/fluent-bit:4.1.0"],
    ["without a tag", "nginx", "docker.io/library/nginx:latest"],
    ["with a digest", `nginx@sha256:${"a".repeat(64)}`, `docker.io/library/nginx@sha256:${"a".repeat(64)}`],
  ])(
    "the status has the short name of the spec instead of the runtime's full name: an image %s",
    (_what, image, full) => {
      expect(shown(podWith(image, full))).toEqual([image]);
    },
  );
});

describe("withSpecImages with other images:", () => {
  it.each([
    ["another tag", "nginx:1.29", "docker.io/library/nginx:1.28"],
    ["another registry", "example.com/nginx:1", "docker.io/library/nginx:1"],
    ["a port that looks like a tag", "localhost:5000/nginx:1", "docker.io/localhost:5000/nginx:1"],
    ["a full name", "docker.io/library/nginx:1", "docker.io/library/nginx:1"],
  ])("the status keeps its image if the spec has %s", (_what, image, running) => {
    expect(shown(podWith(image, running))).toEqual([running]);
  });

  it("withSpecImages covers init containers and returns the same pod if nothing changes", () => {
    const pod = withSpecImages(podWith("example.com/a:1", "example.com/a:1", "envoyproxy/envoy:1"));
    expect(pod.status?.initContainerStatuses?.[0]?.image).toBe("envoyproxy/envoy:1");
    const plain = podWith("example.com/a:1", "example.com/a:1");
    expect(withSpecImages(plain)).toBe(plain);
    const bare = listedPod({ name: "p" }, { containers: [] }, { containerStatuses: null } as object);
    expect(withSpecImages(bare)).toBe(bare);
  });
});
