/** Tests a hot upgrade while clients send requests. No client may see an error. */
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, expect, it } from "vitest";
import { disturbRegistry } from "../support/access.ts";
import { addFigure } from "../support/figures.ts";
import { scenes } from "../support/open-scene.ts";
import { imageOf, setImage } from "../support/scene.ts";
import { eventually } from "../support/until.ts";

const openScene = scenes();
const CLIENTS = 8;

afterEach(() => disturbRegistry({ delay: 0 }));

const MESH = {
  name: "mesh",
  image: "mesh-serves:v1",
  upgradeStrategy: { upgradeType: "HotUpgrade", hotUpgradeEmptyImage: "idle:v1" },
  // Files say which of the two containers listens, because they share the port.
  readinessProbe: { exec: { command: ["test", "-f", "/tmp/ready"] }, periodSeconds: 1 },
  // The server needs this right so that the kernel moves waiting connections.
  securityContext: { privileged: true },
};

/** Sends a request on its own connection. */
function ask(host: string): Promise<string> {
  return new Promise((done, failed) => {
    const asked = request({ host, port: 8080, agent: false, timeout: 10_000 }, (answer) =>
      text(answer).then(done, failed),
    );
    asked.on("timeout", () => asked.destroy(new Error("no answer within 10 s")));
    asked.on("error", failed);
    asked.end();
  });
}

/** Sends requests without a pause until it is stopped, and then returns the answers and the failures. */
function traffic(host: string) {
  const answers = new Map<string, number>();
  const failures: string[] = [];
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      const [answer, failure] = await ask(host).then(
        (said) => [said, undefined] as const,
        (error: Error) => ["", error.message] as const,
      );
      if (failure === undefined) answers.set(answer, (answers.get(answer) ?? 0) + 1);
      else failures.push(failure);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  return {
    answers,
    end: async () => {
      isOver = true;
      await clients;
      return failures;
    },
  };
}

it("no request fails during a hot upgrade and the way back", async () => {
  const scene = await openScene({ containers: [MESH] });
  await scene.deploy(1);
  await scene.untilSettled();
  const [pod] = await scene.pods();
  const since = await scene.now();
  const clients = traffic((pod?.status as { readonly podIP?: string } | undefined)?.podIP ?? "");
  await eventually(
    async () => clients.answers.get("library/mesh-serves:v1") ?? 0,
    (count) => expect(count).toBeGreaterThan(100),
  );
  for (const [image, slots] of [
    ["mesh-serves:v2", ["idle:v1", "mesh-serves:v2"]],
    ["mesh-serves:v3", ["mesh-serves:v3", "idle:v1"]],
  ] as const) {
    await scene.patchSet(setImage(image));
    await eventually(
      () => scene.pods(),
      ([one]) => expect(one && ["mesh-1", "mesh-2"].map((name) => imageOf(one, name))).toEqual(slots),
    );
    await scene.untilUpdated(1);
    await eventually(
      async () => clients.answers.get(`library/${image}`) ?? 0,
      (count) => expect(count).toBeGreaterThan(100),
    );
  }
  const failures = await clients.end();
  expect(failures).toEqual([]);
  expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0 });
  addFigure(
    "requests answered during two hot upgrades",
    [...clients.answers.values()].reduce((a, b) => a + b, 0),
  );
  addFigure("requests that failed during two hot upgrades", failures.length);
});

it("a hot upgrade to an image that cannot be pulled is taken back", async () => {
  const scene = await openScene({ containers: [MESH] });
  await scene.deploy(1);
  await scene.untilSettled();
  const since = await scene.now();
  const slots = async () => (await scene.pods()).map((pod) => ["mesh-1", "mesh-2"].map((name) => imageOf(pod, name)));
  await disturbRegistry({ delay: Number.POSITIVE_INFINITY });
  await scene.patchSet(setImage("mesh-serves:absent"));
  await eventually(slots, (found) => expect(found).toEqual([["mesh-serves:v1", "mesh-serves:absent"]]));
  await scene.patchSet(setImage("mesh-serves:v1"));
  await eventually(slots, (found) => expect(found).toEqual([["mesh-serves:v1", "idle:v1"]]));
  await scene.untilSettled();
  expect(await scene.record(since)).toMatchObject({ appContainerRestarts: 0 });
});
