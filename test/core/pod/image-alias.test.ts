import { describe, expect, test } from "vitest";
import { aliasOf } from "../../../shared/core/pod/image-alias.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;
const running = (imageID: string, containerID = "containerd://1") => ({ name: "a", imageID, containerID });

describe("aliasOf:", () => {
  const rows: readonly [sentence: string, image: string, imageID: string, alias: string][] = [
    [
      "an official image of docker gets the digest that runs",
      "nginx:1.25",
      `docker-pullable://nginx@${DIGEST}`,
      `nginx:1.25@${DIGEST}`,
    ],
    ["a user's image gets the digest that runs", "acme/app:1", `docker.io/acme/app@${DIGEST}`, `acme/app:1@${DIGEST}`],
    ["an official image without a known digest gets its full name", "nginx:1.25", "", "docker.io/library/nginx:1.25"],

    ["the full name of an official image becomes short", "docker.io/library/nginx:1.25", "", "nginx:1.25"],
    ["a user's image gets the registry", "acme/app:1", "", "docker.io/acme/app:1"],
    ["the full name of a user's image loses the registry", "docker.io/acme/app:1", "", "acme/app:1"],
    ["a deeper name in the library loses the registry only", "docker.io/library/x/app:1", "", "library/x/app:1"],
    [
      "a name that looks like a host gets the registry and the library",
      "my.image:1",
      "",
      "docker.io/library/my.image:1",
    ],
    ["an image without a tag gets the tag latest", "registry.example/app", "", "registry.example/app:latest"],
    ["an image with the tag latest loses it", "registry.example/app:latest", "", "registry.example/app"],

    [
      "an image with a tag and a digest loses the tag",
      `registry.example/app:1@${DIGEST}`,
      "",
      `registry.example/app@${DIGEST}`,
    ],
    [
      "an image with a digest gets the tag latest",
      `registry.example/app@${DIGEST}`,
      "",
      `registry.example/app:latest@${DIGEST}`,
    ],
  ];
  test.each(rows)("%s: %s", (_, image, imageID, alias) => {
    expect(aliasOf({ image }, running(imageID))).toEqual({ kind: "alias", image: alias });
  });

  test("an image with the pull policy Always keeps its tag if possible", () => {
    const always = (image: string) =>
      aliasOf({ image, imagePullPolicy: "Always" }, running(`${image.split(":")[0]}@${DIGEST}`));
    expect(always("nginx:1.25")).toMatchObject({ image: "docker.io/library/nginx:1.25" });
    expect(always("registry.example/app:1")).toMatchObject({ image: `registry.example/app:1@${DIGEST}` });
  });

  test("an image on CRI-O gets only its digest, because a short name may mean another registry", () => {
    const crio = running(`docker.io/library/nginx@${DIGEST}`, "cri-o://1");
    expect(aliasOf({ image: "nginx:1.25" }, crio)).toMatchObject({ kind: "none" });
    expect(aliasOf({ image: "docker.io/library/nginx:1.25" }, crio)).toEqual({
      kind: "alias",
      image: `docker.io/library/nginx:1.25@${DIGEST}`,
    });
  });
});

describe("aliasOf without a result:", () => {
  test("a container without a status has no alias", () => {
    expect(aliasOf({ image: "nginx:1.25" }, undefined)).toEqual({
      kind: "none",
      why: "the image nginx:1.25 can't be written in another way that means the same: it has no imageID",
    });
  });

  const rows: readonly [sentence: string, image: string, imageID: string, why: string][] = [
    ["an invalid image reference", "Nginx:1", "", 'the image "Nginx:1" is no image reference'],
    [
      "an imageID without a digest",
      "registry.example/app:1",
      "sha256:abc",
      "its imageID sha256:abc names no digest in that repository",
    ],

    ["a container that has not run", "registry.example/app:1", "", "it has no imageID"],
  ];
  test.each(rows)("aliasOf returns a reason for %s", (_, image, imageID, why) => {
    const alias = aliasOf({ image }, running(imageID));
    expect(alias).toMatchObject({ kind: "none" });
    expect(alias.kind === "none" ? alias.why : "").toContain(why);
  });
});
