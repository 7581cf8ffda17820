/** Tests the values and files of an injected sidecar on a real node. */
import { expect, it } from "vitest";
import type { Volume } from "../../../shared/api/kubernetes.ts";
import { scenes } from "../support/open-scene.ts";
import { APP, SIDECAR } from "../support/scene.ts";
import { runInside } from "./inside.ts";

const openScene = scenes();

it("a sidecar with volumes and environment of the app, sub-paths from variables and labels as files is updated", async () => {
  const scene = await openScene({
    containers: [
      {
        ...SIDECAR,
        env: [
          { name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
          { name: "CORES", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } } },
        ],
        resources: { limits: { cpu: "250m", memory: "64Mi" } },
        volumeMounts: [
          { name: "own", mountPath: "/own", subPathExpr: "$(POD)" },
          { name: "facts", mountPath: "/facts" },
        ],
        transferEnv: [{ sourceContainerName: "main", envName: "REGION" }],
        shareVolumePolicy: { type: "enabled" },
      },
    ],
    volumes: [
      { name: "own", emptyDir: {} },
      {
        name: "facts",
        downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] },
      },
    ] as object[] as Volume[],
  });
  const main = {
    ...APP,
    env: [{ name: "REGION", value: "eu" }],
    volumeMounts: [{ name: "data", mountPath: "/data" }],
  };
  await scene.createPod("one", { containers: [main], volumes: [{ name: "data", emptyDir: {} }] });
  await scene.untilReady(1);
  const place = { namespace: scene.name, pod: "one" };
  const agent = (command: string) => runInside({ ...place, container: "agent" }, command);

  const environment = Object.fromEntries(
    (await agent("env")).split("\n").map((line) => line.split("=") as [string, string]),
  );
  expect(environment).toMatchObject({ POD: "one", CORES: "250", REGION: "eu", IS_INJECTED: "true" });
  await runInside({ ...place, container: "main" }, "touch /data/written-by-the-app");
  expect(await agent("ls /data")).toBe("written-by-the-app\n");
  await agent("touch /own/mine");
  expect(await agent("cat /facts/labels")).toContain(`scene="${scene.name}"`);
  expect(await agent("mount")).toMatch(/ on \/own type /);
});
