import { describe, expect, test } from "vitest";
import { aliasOf } from "../../../shared/core/container-recreate/image-alias.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;
const running = (imageID: string, containerID = "containerd://1") => ({ name: "a", imageID, containerID });

describe("an image is written in another way", () => {
  const rows: readonly [sentence: string, image: string, imageID: string, alias: string][] = [
    [
      "an official one with the digest that runs",
      "nginx:1.25",
      `docker.io/library/nginx@${DIGEST}`,
      `nginx:1.25@${DIGEST}`,
    ],
    ["which docker writes in short", "nginx:1.25", `docker-pullable://nginx@${DIGEST}`, `nginx:1.25@${DIGEST}`],
    ["somebody's with the digest that runs", "acme/app:1", `docker.io/acme/app@${DIGEST}`, `acme/app:1@${DIGEST}`],
    ["one without a known digest with its full name", "nginx:1.25", "", "docker.io/library/nginx:1.25"],
    [
      "with that of another repository too",
      "nginx:1.25",
      `docker.io/acme/nginx@${DIGEST}`,
      "docker.io/library/nginx:1.25",
    ],
    ["and back", "docker.io/library/nginx:1.25", "", "nginx:1.25"],
    ["somebody's with the registry", "acme/app:1", "", "docker.io/acme/app:1"],
    ["and back", "docker.io/acme/app:1", "", "acme/app:1"],
    ["one deeper in the library as it is there", "docker.io/library/x/app:1", "", "library/x/app:1"],
    ["one whose name looks like a host with the registry", "my.image:1", "", "docker.io/library/my.image:1"],
    ["one without a tag with the default one", "registry.example/app", "", "registry.example/app:latest"],
    ["and back", "registry.example/app:latest", "", "registry.example/app"],
    [
      "one of a registry with the digest that runs",
      "registry.example/app:1",
      `registry.example/app@${DIGEST}`,
      `registry.example/app:1@${DIGEST}`,
    ],
    [
      "which docker writes in its own way",
      "registry.example:5000/app:1",
      `docker-pullable://registry.example:5000/app@${DIGEST}`,
      `registry.example:5000/app:1@${DIGEST}`,
    ],
    ["one with a digest without its tag", `registry.example/app:1@${DIGEST}`, "", `registry.example/app@${DIGEST}`],
    ["and with some tag", `registry.example/app@${DIGEST}`, "", `registry.example/app:latest@${DIGEST}`],
    ["one of this machine with its digest", "localhost/app:1", `localhost/app@${DIGEST}`, `localhost/app:1@${DIGEST}`],
  ];
  test.each(rows)("%s: %s", (_, image, imageID, alias) => {
    expect(aliasOf({ image }, running(imageID))).toEqual({ kind: "alias", image: alias });
  });

  test("with its tag where it is always pulled, if there is a way", () => {
    const always = (image: string) =>
      aliasOf({ image, imagePullPolicy: "Always" }, running(`${image.split(":")[0]}@${DIGEST}`));
    expect(always("nginx:1.25")).toMatchObject({ image: "docker.io/library/nginx:1.25" });
    expect(always("registry.example/app:1")).toMatchObject({ image: `registry.example/app:1@${DIGEST}` });
  });

  test("by its digest where a short name may mean another registry", () => {
    const crio = running(`docker.io/library/nginx@${DIGEST}`, "cri-o://1");
    expect(aliasOf({ image: "nginx:1.25" }, crio)).toMatchObject({ kind: "none" });
    expect(aliasOf({ image: "docker.io/library/nginx:1.25" }, crio)).toEqual({
      kind: "alias",
      image: `docker.io/library/nginx:1.25@${DIGEST}`,
    });
  });
});

describe("there is no other way", () => {
  test("for a container of which nothing is known", () => {
    expect(aliasOf({ image: "nginx:1.25" }, undefined)).toEqual({
      kind: "none",
      why: "the image nginx:1.25 can't be written in another way that means the same: it has no imageID",
    });
  });

  const rows: readonly [sentence: string, image: string, imageID: string, why: string][] = [
    ["for what is no reference", "Nginx:1", "", 'the image "Nginx:1" is no image reference'],
    [
      "without a digest",
      "registry.example/app:1",
      "sha256:abc",
      "its imageID sha256:abc names no digest in that repository",
    ],
    [
      "with another repository's digest",
      "registry.example/app:1",
      `mirror.example/app@${DIGEST}`,
      "names no digest in that repository",
    ],
    ["before it ran", "registry.example/app:1", "", "it has no imageID"],
  ];
  test.each(rows)("%s", (_, image, imageID, why) => {
    const alias = aliasOf({ image }, running(imageID));
    expect(alias).toMatchObject({ kind: "none" });
    expect(alias.kind === "none" ? alias.why : "").toContain(why);
  });
});
