import { describe, expect, test } from "vitest";
import type { Container } from "../../../shared/api/kubernetes.ts";
import type { SidecarContainer } from "../../../shared/api/sidecarset.ts";
import { shareVolumes } from "../../../shared/core/injection/share-with-app.ts";

const APP: Container = {
  name: "app",
  env: [
    { name: "POD", value: "first" },
    { name: "POD", value: "second" },
  ],
  volumeMounts: [
    { name: "data", mountPath: "/data", subPathExpr: "$(POD)/$(MISSING)/$POD/$(1BAD)" },
    { name: "again", mountPath: "/data" },
    { name: "disk", mountPath: "/dev/disk" },
  ],
  volumeDevices: [
    { name: "block", devicePath: "/dev/block" },
    { name: "onMount", devicePath: "/data" },
  ],
};
const SHARING: SidecarContainer = {
  name: "sidecar",
  shareVolumePolicy: { type: "enabled" },
  shareVolumeDevicePolicy: { type: "enabled" },
};

function pathsOf(sidecar: SidecarContainer): {
  readonly mounts: readonly string[];
  readonly devices: readonly string[];
} {
  const { volumeMounts, volumeDevices } = shareVolumes(sidecar, [APP]);
  return {
    mounts: volumeMounts.map(({ name, mountPath }) => `${name} ${mountPath}`),
    devices: volumeDevices.map(({ name, devicePath }) => `${name} ${devicePath}`),
  };
}

describe("shareVolumes:", () => {
  const rows: readonly [sentence: string, sidecar: SidecarContainer, paths: ReturnType<typeof pathsOf>][] = [
    [
      "a sidecar gets each path once, and no device at the path of a mount",
      SHARING,
      { mounts: ["data /data", "disk /dev/disk"], devices: ["block /dev/block"] },
    ],
    [
      "a sidecar keeps its own mounts and devices, and gets nothing else at their paths",
      {
        ...SHARING,
        volumeMounts: [{ name: "own", mountPath: "/data" }],
        volumeDevices: [{ name: "dev", devicePath: "/dev/disk" }],
      },
      { mounts: ["own /data"], devices: ["dev /dev/disk", "block /dev/block"] },
    ],
    [
      "a sidecar without a sharing policy gets no mounts and no devices",
      { name: "sidecar" },
      { mounts: [], devices: [] },
    ],
  ];
  test.each(rows)("%s", (_, sidecar, paths) => {
    expect(pathsOf(sidecar)).toEqual(paths);
  });

  test("a sidecar gets the first variable of each name that a shared subPathExpr uses", () => {
    expect(shareVolumes(SHARING, [APP]).env).toEqual([{ name: "POD", value: "first" }]);
    expect(shareVolumes({ name: "sidecar" }, [APP]).env).toEqual([]);
  });

  test("a sidecar gets no mounts from injected containers", () => {
    const mounting = (name: string, value: string): Container => ({
      name,
      env: [{ name: "IS_INJECTED", value }],
      volumeMounts: [{ name, mountPath: `/${name}` }],
    });
    const { volumeMounts } = shareVolumes(SHARING, [mounting("other", "true"), mounting("alike", "yes")]);
    expect(volumeMounts).toEqual([{ name: "alike", mountPath: "/alike" }]);
  });
});
