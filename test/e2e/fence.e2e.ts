/** Tests the policies around the reconciler on a real API server. They refuse calls that its roles would allow. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../shared/api/kubernetes.ts";
import { optionalAccess } from "../../shared/install/rbac/optional-access.ts";
import { type RawAnswer, type RawTarget, sendRaw } from "../contract/raw.ts";
import { addAttacks } from "../support/attacks.ts";
import { controlPlane } from "./support/access.ts";
import { asServiceAccount, clusterOf } from "./support/clients.ts";
import { openFencedScene } from "./support/fence-scene.ts";
import { annotated, create, inNamespace, PODS, patch, type Write } from "./support/fence-write.ts";
import { DENIED_OF_PODS, PERMITTED } from "./support/fence-writes.ts";
import { DENIED_ELSEWHERE } from "./support/fence-writes-elsewhere.ts";
import { WIDENED, type Widening } from "./support/fence-writes-optional.ts";
import { addFigure } from "./support/figures.ts";
import { type Functions, startFunctions } from "./support/functions.ts";
import { createAll, removeAll } from "./support/installed.ts";
import { until } from "./support/until.ts";
import { runsFrom } from "./support/versions.ts";

const LISTED = ["example.com/listed", "mesh.example.com/"];
/** API servers before Kubernetes 1.33 have no path with this ending. */
const isServed = ({ path }: Write) => runsFrom("1.33") || !path.endsWith("/resize");
const DENIED = [...DENIED_OF_PODS, ...DENIED_ELSEWHERE].filter(isServed);
const SERVED = Object.entries(WIDENED).filter(([, { permits }]) => permits.every(isServed));

let functions: Functions;
let reconciler: RawTarget;
let scene: Awaited<ReturnType<typeof openFencedScene>>;
beforeAll(async () => {
  const admin = controlPlane();
  functions = await startFunctions(admin, { hasTicks: false, fenceAnnotations: LISTED });
  scene = await openFencedScene(clusterOf(admin));
  reconciler = await asServiceAccount(admin, "kruise-system", "sidecarset-reconciler");
  const probe = patch("", annotated("example.com/other"));
  await until("the fence is in force", async () => isFenced(await send(reconciler, probe, true)));
});
afterAll(async () => {
  await scene?.close();
  await functions?.close();
});

const TYPES = { json: "json-patch", merge: "merge-patch", strategic: "strategic-merge-patch" } as const;

function send(target: RawTarget, { method, path, body, type }: Write, isTried: boolean): Promise<RawAnswer> {
  const dryRun = isTried ? `${path.includes("?") ? "&" : "?"}dryRun=All` : "";
  return sendRaw(target, {
    method,
    path: path + dryRun,
    ...(body ? { body: scene.withUids(body) } : {}),
    ...(method === "PATCH" ? { headers: { "content-type": `application/${TYPES[type ?? "strategic"]}+json` } } : {}),
  });
}

/** True if a policy refused the call and named its reason; a role's refusal does not count. */
const isFenced = ({ code, text }: RawAnswer) =>
  code === 403 &&
  /ValidatingAdmissionPolicy 'sidecarset-reconciler-[a-z]+' with .* denied request: the reconciler|of /.test(text);

const saying = ({ what }: Write, { code, text }: RawAnswer) =>
  `${what}: ${code} ${code < 300 ? "" : text.slice(0, 400)}`;

async function expectPermitted(writes: readonly Write[]): Promise<void> {
  for (const write of writes) {
    const answer = await send(reconciler, write, false);
    expect(saying(write, answer)).toMatch(/: 2\d\d $/);
  }
  addFigure("writes of a rollout that the fence lets through", writes.length);
}

async function expectDenied(writes: readonly Write[]): Promise<void> {
  for (const write of writes) {
    const answer = await send(reconciler, write, false);
    expect(isFenced(answer), saying(write, answer)).toBe(true);
    // Another account sends the same write. Only the fence could refuse it.
    if (write.isConnect) continue;
    const tried = await send(controlPlane(), write, true);
    expect(saying(write, tried)).toMatch(/: 2\d\d $/);
  }
  addFigure("writes that the fence refuses", writes.length);
  addAttacks(writes.length);
}

it("the fence allows every write of a rollout", () => expectPermitted(PERMITTED));

it("the tables have at least 60 writes to refuse", () => {
  expect(new Set(DENIED.map(({ what }) => what)).size).toBe(DENIED.length);
  expect(DENIED.length).toBeGreaterThanOrEqual(60);
});

it.each(DENIED)("the reconciler may not $what", (write) => expectDenied([write]));

it("the fence does not limit any other account", async () => {
  const write = patch("", annotated("example.com/other"));
  expect((await send(controlPlane(), write, true)).code).toBe(200);
});

describe.each(SERVED)("%s", (feature, { permits, denies }: Widening) => {
  const objects = optionalAccess().find((one) => one.feature === feature)?.objects ?? [];

  it("the write is refused without its role", async () => {
    for (const write of permits.slice(0, 1))
      expect(isFenced(await send(reconciler, write, true)), write.what).toBe(true);
  });

  it("the write is allowed with its role, and no other write is", async () => {
    const cluster = clusterOf(controlPlane());
    await createAll(cluster, objects);
    try {
      const [first] = permits as readonly [Write];
      await until(first.what, async () => (await send(reconciler, first, true)).code < 300);
      await expectPermitted(permits);
      await expectDenied(denies);
    } finally {
      await removeAll(cluster, objects);
    }
  });
});

describe("with every optional role at once", () => {
  const objects = optionalAccess().flatMap((one) => one.objects);
  const namesOf = async (path: string) => {
    const { items } = JSON.parse((await sendRaw(controlPlane(), { method: "GET", path })).text);
    return (items as readonly KubernetesObject[]).map(({ metadata }) => metadata?.name ?? "");
  };
  const isOurs = (name: string) => /^(sidecarset|statefulset)-ledger-|^sidecarset-announcements$|-barrier$/.test(name);

  it("no ConfigMap of another name is written, in any namespace", async () => {
    await createAll(clusterOf(controlPlane()), objects);
    try {
      const tried = create("", inNamespace("kube-public", "configmaps"), { metadata: { name: "tried" } });
      await until("the roles are in force", async () => isFenced(await send(reconciler, tried, true)));
      // Other tests create and delete namespaces meanwhile.
      const lasting = ["default", "fence-shop", "kruise-system", "kube-node-lease", "kube-public", "kube-system"];
      const namespaces = (await namesOf("/api/v1/namespaces")).filter((name) => lasting.includes(name));
      expect(namespaces.toSorted()).toEqual(lasting);
      for (const namespace of namespaces) {
        const maps = inNamespace(namespace, "configmaps");
        const names = (await namesOf(maps)).filter((name) => !isOurs(name));
        await expectDenied([
          create(`make aws-auth-2 in ${namespace}`, maps, { metadata: { name: "aws-auth-2" } }),
          ...names.map((name) => patch(`change ${namespace}/${name}`, { data: { mapRoles: "" } }, `${maps}/${name}`)),
        ]);
      }
    } finally {
      await removeAll(clusterOf(controlPlane()), objects);
    }
  });
});

it("every optional role except the registration's has its writes in this test", () => {
  const features = optionalAccess().map(({ feature }) => feature);
  // An API server asks no policy about registrations of webhooks.
  expect(Object.keys(WIDENED).toSorted()).toEqual(features.filter((one) => one !== "webhook-configuration").toSorted());
  expect(PODS).toContain("fence-shop");
});
