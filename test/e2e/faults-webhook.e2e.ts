/** Creates pods while the webhooks cannot read a real API server, and checks the warnings for their creators. */
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { type RawAnswer, sendRaw } from "../contract/raw.ts";
import { newPod } from "../support/objects.ts";
import { PATIENT } from "../support/patient.ts";
import { controlPlane } from "./support/access.ts";
import { type FaultProxy, startFaultProxy } from "./support/fault-proxy.ts";
import { type FaultName, strikes, sum } from "./support/faults.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { APP, Scene, setImage } from "./support/scene.ts";
import { size } from "./support/size.ts";

const PODS = size({ ci: 3, soak: 50 });

let functions: Functions;
let proxy: FaultProxy;
let scene: Scene;
let aheadMs = 0;

beforeAll(async () => {
  proxy = await startFaultProxy(controlPlane());
  const now = () => Date.now() + aheadMs;
  functions = await startFunctions(controlPlane(), { hasTicks: false, route: proxy.route, now });
  scene = new Scene(functions);
  await scene.open();
});
afterEach(async () => {
  proxy?.disturb(undefined);
  aheadMs = 0;
  // After a slow read the webhook uses its last list until a read in the background succeeds.
  await vi.waitFor(async () => expect(injected(await tryPod("calm")).isStale).toBe(false), PATIENT);
});
afterAll(async () => {
  await scene?.close();
  await functions?.close();
  await proxy?.close();
});

/** Sends a dry run of a pod's creation. */
function tryPod(name: string): Promise<RawAnswer> {
  const metadata = { name, namespace: scene.name, labels: { scene: scene.name } };
  const body = newPod(metadata, { containers: [APP] });
  return sendRaw(controlPlane(), { method: "POST", path: `/api/v1/namespaces/${scene.name}/pods?dryRun=All`, body });
}

function injected({ code, body, headers }: RawAnswer) {
  const { spec } = body as { readonly spec?: { readonly containers: readonly { readonly name: string }[] } };
  const warnings = [headers["warning"] ?? []].flat().join(" ");
  return {
    code,
    containers: spec?.containers.map(({ name }) => name),
    isStale: /earlier state/.test(warnings),
    warnings,
  };
}

const STALE = expect.stringMatching(/decided on an earlier state of SidecarSets, which cannot be read now: /);
const INJECTED = { code: 201, containers: ["agent", APP.name] };

it("a pod gets its sidecar from the present objects", async () => {
  expect(injected(await tryPod("calm"))).toEqual({ ...INJECTED, isStale: false, warnings: "" });
});

it.each([
  ["429 with Retry-After", true],
  ["500", true],
  ["503", true],
  ["504 after it took effect", true],
  ["reset before it took effect", true],
  ["reset after it took effect", true],
  ["truncated JSON", true],
  // The webhook waits a second for this read, and then uses its last list.
  ["slow body", expect.any(Boolean)],
] as const satisfies (readonly [FaultName, unknown])[])(
  "%s, at every read: pods are still injected",
  async (name, isStale) => {
    const { disturb, hits } = strikes(name, 1);
    proxy.disturb(disturb);
    const answers = await Promise.all(Array.from({ length: PODS }, (_, index) => tryPod(`pod-${index}`)));
    for (const answer of answers) expect(injected(answer)).toMatchObject({ ...INJECTED, isStale });
    expect(sum(hits.values())).toBeGreaterThan(0);
    addFigure("pods admitted while the API server could not be read", answers.length);
    addFigure("calls with faults", sum(hits.values()));
  },
);

it("after five minutes a pod is refused with the cause, and admitted again once the fault is over", async () => {
  expect(injected(await tryPod("before"))).toMatchObject(INJECTED);
  proxy.disturb(strikes("503", 1).disturb);
  aheadMs = 5 * 60_000 - 10_000;
  expect(injected(await tryPod("in-time"))).toMatchObject({ ...INJECTED, isStale: true });
  aheadMs = 5 * 60_000 + 1;
  const { code, text } = await tryPod("too-late");
  expect({ code, text }).toMatchObject({ code: 500, text: expect.stringContaining("503 Service Unavailable") });
  proxy.disturb(undefined);
  expect(injected(await tryPod("after"))).toEqual({ ...INJECTED, isStale: false, warnings: "" });
});

it("a SidecarSet is compared with the last known objects for five minutes, and its author gets a warning", async () => {
  const tryImage = (image: string) =>
    sendRaw(controlPlane(), {
      method: "PATCH",
      path: `/apis/apps.kruise.io/v1beta1/sidecarsets/${scene.name}?dryRun=All`,
      headers: { "content-type": "application/json-patch+json" },
      body: [setImage(image)],
    });
  expect(await tryImage("agent:v2")).toMatchObject({ code: 200 });
  proxy.disturb(strikes("503", 1).disturb);
  const { code, headers } = await tryImage("agent:v3");
  expect({ code, warning: headers["warning"] }).toMatchObject({ code: 200, warning: STALE });
  aheadMs = 5 * 60_000 + 1;
  const refused = await tryImage("agent:v4");
  expect(refused).toMatchObject({ code: 500, text: expect.stringContaining("503 Service Unavailable") });
});
