/** Tests the files that `lint` and `preview` accept, and their remarks about a chart's other objects. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runHere } from "./run-cli.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "files-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function written(text: string): Promise<string> {
  const file = join(folder, "chart.yaml");
  await writeFile(file, text);
  return file;
}

const SET = `apiVersion: apps.kruise.io/v1beta1
kind: SidecarSet
metadata: {name: agent, namespace: odd}
spec:
  selector: {matchLabels: {app: web}}
  containers:
  - name: agent
    image: agent:1
    imagePullpolicy: Always
    env: [{name: A, value: "on"}]
`;
const OTHERS = `---
apiVersion: v1
kind: Service
metadata: {name: web}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
`;
const DEPLOYMENT = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "nginx:1"}]}
`;

it("lint accepts a file without -f and prints the line and column of each field", async () => {
  const file = await written(SET + OTHERS);
  const { code, stdout } = await runHere(["lint", file]);
  expect(code).toBe(3);
  expect(stdout.split("\n")).toEqual([
    `${file}:3:25: warning agent: metadata.namespace: SidecarSets are of the whole cluster; it has no effect`,
    `${file}:9:5: warning agent: SidecarSets have no field spec.containers[0].imagePullpolicy, did you mean imagePullPolicy; it has no effect`,
    "1 SidecarSet: 0 errors, 2 warnings",
    "",
  ]);
});

it("lint prints the line and column of a field whose path lacks spec in OpenKruise's message", async () => {
  const strategy = "updateStrategy: {partition: 1, selector: {matchLabels: {a: b}}}";
  const injection = "injectionStrategy: {revision: {policy: Sometimes, customVersion: v1}}";
  const file = await written(`${SET}  ${strategy}\n  ${injection}\n`);
  const at = (await runHere(["lint", file])).stdout.match(/:\d+:\d+: \w+ agent: (?:revision|updateStrategy)\S*:/g);
  expect(at?.toSorted()).toEqual([
    ":11:3: error agent: updateStrategy:",
    ":12:23: warning agent: revision:",
    ":12:34: error agent: revision.policy:",
  ]);
});

it("lint reports a key that occurs twice in one map", async () => {
  const file = await written(SET.replace("image: agent:1", "image: agent:1\n    image: agent:2"));
  expect((await runHere(["lint", file])).stdout).toContain(
    `${file}:9:5: warning agent: image is given twice in one map; the last one counts\n`,
  );
});

it("preview skips the objects of a chart that create no pods, and says so in one line", async () => {
  const file = await written(SET + OTHERS + DEPLOYMENT);
  const { code, stdout, stderr } = await runHere(["preview", "-f", file]);
  expect(code).toBe(0);
  expect(stdout).toContain('value: "on"');
  expect(stderr.split("\n")).toEqual([
    expect.stringContaining(`${file}:3:25: metadata.namespace: `),
    expect.stringContaining(`${file}:9:5: SidecarSets have no field `),
    "passed over, because they have no pod template: Service, 2 × ConfigMap",
    "",
  ]);
});

it("preview refuses a chart without any pod", async () => {
  const file = await written(SET + OTHERS);
  expect(await runHere(["preview", "-f", file])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("no pod and nothing with a pod template in there; add one with -f\n"),
  });
});
